package registry

import (
	"cmp"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"trajgen/pipeline/where/nearest"
)

// catalogue has the tools of a Toolset that the bridge hides. It is immutable.
type catalogue struct {
	tools  map[string]*Tool
	names  []string // sorted
	quirks Quirks
	docs   []document // of names
	found  map[string]int
	length float64 // of an average document
}

// document is a tool as search sees it.
type document struct {
	count  map[string]int // of each term
	length int
}

// The usual constants of BM25: the saturation of a term's frequency, and the penalty for long documents.
const (
	bm25K = 1.5
	bm25B = 0.75
)

func newCatalogue(names []string, tools map[string]*Tool, quirks Quirks) *catalogue {
	c := &catalogue{tools: map[string]*Tool{}, names: names, quirks: quirks, found: map[string]int{}}
	for _, name := range names {
		tool := tools[name]
		c.tools[name] = tool
		said := append(terms(name), terms(tool.Description)...)
		for _, name := range known(tool.plan().root) {
			said = append(said, terms(name)...)
		}
		doc := document{count: map[string]int{}, length: len(said)}
		for _, term := range said {
			if doc.count[term]++; doc.count[term] == 1 {
				c.found[term]++
			}
		}
		c.docs = append(c.docs, doc)
		c.length += float64(doc.length) / float64(len(names))
	}
	return c
}

var camelCase = regexp.MustCompile(`(\p{Ll})(\p{Lu})`)

// terms are the words of a text or a name: runs of letters and digits, in lower case, camelCase split.
func terms(text string) []string {
	text = strings.ToLower(camelCase.ReplaceAllString(text, "$1 $2"))
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

type searchResult struct {
	Query   string  `json:"query"`
	Total   int     `json:"total_available"`
	Matches []match `json:"matches"`
}

type match struct {
	Name        string `json:"name"`
	Source      string `json:"source"`
	SourceName  string `json:"source_name"`
	Description string `json:"description"`
}

// maxMatchText is how much of a description a search shows, in characters.
const maxMatchText = 400

func (c *catalogue) search(query string, limit int) (any, error) {
	asked := terms(query)
	if strings.TrimSpace(query) == "" {
		return nil, Failf("empty_query", "the query is empty; say in a few words what the tool should do")
	}
	type hit struct {
		at    int
		score float64
	}
	var hits []hit
	for i := range c.docs {
		if score := c.score(i, asked); score > 0 {
			hits = append(hits, hit{i, score})
		}
	}
	if len(hits) == 0 {
		for i, name := range c.names {
			if short := bare(query); short != "" && strings.Contains(bare(name), short) {
				hits = append(hits, hit{at: i})
			}
		}
	}
	// Names are sorted, so that equal scores have a fixed order.
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	result := searchResult{Query: query, Total: len(c.names), Matches: []match{}}
	for _, h := range hits[:min(limit, len(hits))] {
		tool := c.tools[c.names[h.at]]
		source, name := sourceOf(tool.Toolset)
		result.Matches = append(result.Matches, match{tool.Name, source, name, shorten(tool.Description, maxMatchText)})
	}
	return result, nil
}

func (c *catalogue) score(at int, asked []string) float64 {
	doc, all, score := c.docs[at], float64(len(c.docs)), 0.0
	for i, term := range asked {
		n := float64(doc.count[term])
		if n == 0 || slices.Contains(asked[:i], term) {
			continue
		}
		with := float64(c.found[term])
		rare := math.Log(1 + (all-with+0.5)/(with+0.5))
		score += rare * n * (bm25K + 1) / (n + bm25K*(1-bm25B+bm25B*float64(doc.length)/c.length))
	}
	return score
}

// sourceOf says where the tools of a toolset come from.
func sourceOf(toolset string) (source, name string) {
	for _, source := range []string{"mcp", "plugin"} {
		if name, ok := strings.CutPrefix(toolset, source+"-"); ok {
			return source, name
		}
	}
	return "toolset", toolset
}

type description struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

func (c *catalogue) describe(name string) (any, error) {
	tool := c.tools[name]
	if tool == nil {
		for _, each := range c.names {
			if bare(each) == bare(name) {
				tool = c.tools[each]
			}
		}
	}
	if tool == nil {
		return nil, Failf("unknown_tool", "tool_search finds no tool %s%s", quote(shorten(name, 100)), nearest.DidYouMean(name, c.names))
	}
	return description{tool.Name, tool.Description, tool.shown(c.quirks)}, nil
}
