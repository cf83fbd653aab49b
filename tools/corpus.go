package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"trajgen/registry"
	"trajgen/tools/internal/chars"
	"trajgen/tools/web"
	"trajgen/tools/web/corpus"
)

// Corpus returns the tools over a fixed set of documents: search, open and find. Only a run with a corpus has them, as models that
// mean search_files say search.
func Corpus() []registry.Tool {
	define := func(name, description string) registry.Definition {
		return registry.Definition{
			Name: name, Toolset: corpusToolset, NoSandbox: true, Outside: "corpus", ReadOnly: true, Untrusted: "corpus", Timeout: webTimeout, Description: description,
			Access: func(json.RawMessage) registry.Access { return registry.Access{} },
		}
	}
	return []registry.Tool{
		registry.Define(define("search", "Searches the documents of the corpus. It returns ids, titles and a passage of each, the best "+
			"first; open reads a document."), corpusSearch),
		registry.Define(define("open", "Reads a document of the corpus from a line on, with line numbers."), corpusOpen),
		registry.Define(define("find", "Finds the lines of a document of the corpus that match a pattern."), corpusFind),
	}
}

type corpusSearchArgs struct {
	Query string `json:"query" alias:"q" doc:"What to look for." minlen:"1" maxlen:"2000"`
	Limit int    `json:"limit,omitempty" alias:"max_results,topk,top_k" doc:"Most documents to return." default:"5" min:"1" max:"20"`
}

type corpusHit struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	URL     string `json:"url,omitempty"`
	Snippet string `json:"snippet"`
}

type corpusHits struct {
	Results []corpusHit `json:"results"`
	Message string      `json:"message,omitempty"`
}

func corpusSearch(ctx context.Context, env *registry.Env, args corpusSearchArgs) (any, error) {
	view, about, err := corpusOf(env)
	if err != nil {
		return nil, err
	}
	hits, err := view.Corpus().Search(ctx, args.Query, args.Limit)
	if err != nil {
		return nil, webFailure(view, err)
	}
	result := corpusHits{Results: []corpusHit{}}
	for _, hit := range hits {
		about.Threats = suspect(about.Threats, hit.Title, hit.Snippet)
		result.Results = append(result.Results, corpusHit{hit.ID, hit.Title, hit.URL, hit.Snippet})
	}
	if len(hits) == 0 {
		result.Message = "Nothing matches; try other words."
	}
	return result, nil
}

// corpusOf is the episode's web, which has a corpus, and what the call's row says of it.
func corpusOf(env *registry.Env) (*web.View, *web.About, error) {
	view, err := webView(env)
	if err != nil {
		return nil, nil, err
	}
	if view.Corpus() == nil {
		return nil, nil, registry.Failf("no_corpus", "this episode has no corpus")
	}
	about := view.Have()
	env.Source = &about
	return view, &about, nil
}

type corpusOpenArgs struct {
	ID     string `json:"id" alias:"url,document_id" doc:"The document: its id or its URL." minlen:"1"`
	Offset int    `json:"offset,omitempty" alias:"start_line,line" doc:"The first line to show, from 1." default:"1" min:"1"`
	Lines  int    `json:"lines,omitempty" alias:"limit" doc:"Most lines to show." default:"100" min:"1" max:"500"`
}

type corpusText struct {
	ID         string `json:"id"`
	Title      string `json:"title"`
	URL        string `json:"url,omitempty"`
	Content    string `json:"content"`
	TotalLines int    `json:"total_lines"`
	NextOffset int    `json:"next_offset,omitempty"`
}

func corpusOpen(ctx context.Context, env *registry.Env, args corpusOpenArgs) (any, error) {
	d, lines, about, err := document(ctx, env, args.ID)
	if err != nil {
		return nil, err
	}
	if args.Offset > len(lines) {
		return nil, registry.Failf("beyond_end", "%s has %d lines, and offset is %d", d.ID, len(lines), args.Offset)
	}
	result := corpusText{ID: d.ID, Title: d.Title, URL: d.URL, TotalLines: len(lines)}
	var b strings.Builder
	n := args.Offset - 1
	for ; n < len(lines) && n < args.Offset-1+args.Lines; n++ {
		text := fmt.Sprintf("%d|%s\n", n+1, lines[n])
		if b.Len()+len(text) > registry.DefaultMaxResult/4 && b.Len() > 0 { // room for the escapes of JSON
			break
		}
		b.WriteString(text)
	}
	about.Threats = suspect(nil, d.Title, strings.Join(lines[args.Offset-1:n], "\n"))
	if result.Content = b.String(); n < len(lines) {
		result.NextOffset = n + 1
	}
	return result, nil
}

// document is a document of the episode's corpus, its lines, and what the call's row says of it.
func document(ctx context.Context, env *registry.Env, id string) (corpus.Document, []string, *web.About, error) {
	view, about, err := corpusOf(env)
	if err != nil {
		return corpus.Document{}, nil, nil, err
	}
	d, err := view.Corpus().Document(ctx, id)
	if err != nil {
		return d, nil, nil, webFailure(view, err)
	}
	return d, strings.Split(strings.TrimRight(d.Text, "\n"), "\n"), about, nil
}

type corpusFindArgs struct {
	ID      string `json:"id" alias:"url,document_id" doc:"The document: its id or its URL." minlen:"1"`
	Pattern string `json:"pattern" alias:"query,text,regex" doc:"A regular expression, or a text; case does not matter." minlen:"1" maxlen:"1000"`
	Limit   int    `json:"limit,omitempty" alias:"max_results" doc:"Most lines to return." default:"20" min:"1" max:"100"`
}

type corpusLine struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

type corpusLines struct {
	ID      string       `json:"id"`
	Matches []corpusLine `json:"matches"`
	Total   int          `json:"total"`
	Message string       `json:"message,omitempty"`
}

// longestLine is how many characters of a line find shows.
const longestLine = 500

func corpusFind(ctx context.Context, env *registry.Env, args corpusFindArgs) (any, error) {
	d, lines, about, err := document(ctx, env, args.ID)
	if err != nil {
		return nil, err
	}
	pattern, err := regexp.Compile("(?i)" + args.Pattern)
	if err != nil { // a text, such as "f(x"
		pattern = regexp.MustCompile("(?i)" + regexp.QuoteMeta(args.Pattern))
	}
	result := corpusLines{ID: d.ID, Matches: []corpusLine{}}
	for i, line := range lines {
		if !pattern.MatchString(line) {
			continue
		}
		if result.Total++; result.Total <= args.Limit {
			shown := chars.First(line, longestLine, "…")
			about.Threats = suspect(about.Threats, shown)
			result.Matches = append(result.Matches, corpusLine{i + 1, shown})
		}
	}
	if result.Total == 0 {
		result.Message = "No line matches; try another pattern, or search for another document."
	}
	return result, nil
}
