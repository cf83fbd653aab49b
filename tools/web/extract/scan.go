package extract

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"trajgen/tools/internal/chars"
	"trajgen/tools/web/source"
)

// facts is what the tags of a page say, one after another. No tree is made for them, as some pages are too deep for one.
type facts struct {
	base     *url.URL // what links are relative to
	title    string   // of the element title, else Open Graph's, else the first heading
	links    []source.Link
	frames   []source.Link
	text     string // all that is not within a tag, in lines
	elements int    // of a tree, at most
}

// scanner gathers facts.
type scanner struct {
	facts
	limit            int // bytes of text
	text             strings.Builder
	graph, heading   strings.Builder
	name             strings.Builder  // of the page
	into             *strings.Builder // where text goes besides
	hidden           atom.Atom        // the element whose text is not the page's
	at               map[string]int   // the index of each link
	targets          int              // links that were looked at
	link             int              // of the element a that is open, or -1
	label            strings.Builder  // the text of that
	alt              string           // of a picture in it
	formats          int              // elements of a format that are open
	hasBase, hasName bool
}

// scan reads the tags of a page. Links are relative to base where the page does not say otherwise.
func scan(page string, base *url.URL, limit int) facts {
	s := scanner{facts: facts{base: base}, limit: limit, at: map[string]int{}, link: -1}
	tokens := html.NewTokenizer(strings.NewReader(page))
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return s.end()
		case html.TextToken:
			s.words(tokens.Token().Data)
		case html.StartTagToken, html.SelfClosingTagToken:
			if name := s.start(tokens); name == atom.Noscript {
				tokens.NextIsNotRawText()
			}
		case html.EndTagToken:
			name, _ := tokens.TagName()
			s.stop(atom.Lookup(name))
		}
	}
}

// attributes reads the attributes of a tag, and returns how many more there are than a tag has in earnest.
func attributes(tokens *html.Tokenizer) (attrs []html.Attribute, more int) {
	const most = 100
	for n := 0; ; n++ {
		key, value, further := tokens.TagAttr()
		if n < most {
			attrs = append(attrs, html.Attribute{Key: string(key), Val: string(value)})
		}
		if !further {
			return attrs, max(n-most, 0)
		}
	}
}

// count adds to the number of elements that the parser would make of a tag: itself, and again each element of a format that
// is open, as these go on in the next paragraph.
func (s *scanner) count(name atom.Atom, by int) {
	switch name {
	case atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small, atom.Strike,
		atom.Strong, atom.Tt, atom.U:
		s.formats = max(s.formats+by, 0)
		s.elements++
	default:
		s.elements += 1 + s.formats
	}
}

// words takes the text between two tags.
func (s *scanner) words(text string) {
	if s.hidden != 0 {
		return
	}
	if s.into != nil && s.into.Len() < 4*maxTitle {
		s.into.WriteString(text)
	}
	if s.into == &s.name {
		return
	}
	if s.link >= 0 && s.label.Len() < 4*maxTitle {
		s.label.WriteString(text)
	}
	if s.text.Len() < s.limit {
		s.text.WriteString(strings.ReplaceAll(text, "\n", " "))
	}
}

// start takes the beginning of an element.
func (s *scanner) start(tokens *html.Tokenizer) (name atom.Atom) {
	tag, _ := tokens.TagName()
	name = atom.Lookup(tag)
	attrs, more := attributes(tokens)
	s.elements += more
	s.count(name, 1)
	s.separate(name)
	attr := func(name string) string {
		for _, a := range attrs {
			if a.Key == name {
				return a.Val
			}
		}
		return ""
	}
	switch name {
	case atom.Base:
		if u, err := s.base.Parse(attr("href")); err == nil && !s.hasBase && strings.HasPrefix(u.Scheme, "http") &&
			len(attr("href")) <= maxURL {
			s.base, s.hasBase = u, true
		}
	case atom.Meta:
		what := strings.ToLower(attr("property") + attr("name"))
		if what == "og:title" && s.graph.Len() == 0 {
			s.graph.WriteString(chars.First(attr("content"), maxTitle, ""))
		}
	case atom.Title:
		if !s.hasName {
			s.into, s.hasName = &s.name, true
		} else {
			s.hidden = atom.Title // of a drawing
		}
	case atom.H1:
		if s.heading.Len() == 0 {
			s.into = &s.heading
		}
	case atom.Script, atom.Style, atom.Template, atom.Textarea, atom.Select, atom.Noframes, atom.Noembed:
		s.hidden = name
	case atom.A, atom.Area:
		s.endLink()
		s.beginLink(attr("href"), attr("alt"))
	case atom.Img:
		if s.alt == "" {
			s.alt = attr("alt")
		}
	case atom.Frame, atom.Iframe:
		if name == atom.Iframe {
			s.hidden = atom.Iframe
		}
		if s.targets++; s.targets > maxTargets || len(s.frames) >= maxLinks {
			break
		}
		if u, ok := resolve(s.base, attr("src")); ok {
			s.frames = append(s.frames, source.Link{URL: u, Text: chars.First(attr("title")+attr("name"), maxTitle, "")})
		}
	}
	return name
}

// stop takes the end of an element.
func (s *scanner) stop(name atom.Atom) {
	s.count(name, -1)
	s.separate(name)
	switch name {
	case s.hidden:
		s.hidden = 0
	case atom.A:
		s.endLink()
	case atom.Title, atom.H1:
		s.into = nil
	}
}

// separate divides the text where an element does that on the screen.
func (s *scanner) separate(name atom.Atom) {
	switch name {
	case atom.A, atom.Abbr, atom.B, atom.Bdi, atom.Bdo, atom.Cite, atom.Code, atom.Em, atom.Font, atom.I, atom.Img, atom.Kbd,
		atom.Mark, atom.Q, atom.S, atom.Samp, atom.Small, atom.Span, atom.Strong, atom.Sub, atom.Sup, atom.Time, atom.U, atom.Var, atom.Wbr:
	case atom.Td, atom.Th:
		s.text.WriteByte(' ')
	default:
		s.text.WriteByte('\n')
	}
}

func (s *scanner) beginLink(ref, label string) {
	if s.targets++; s.targets > maxTargets || len(s.links) >= maxLinks {
		return
	}
	u, ok := resolve(s.base, ref)
	if !ok || !strings.HasPrefix(u, "http") {
		return
	}
	i, known := s.at[u]
	if !known {
		i = len(s.links)
		s.at[u] = i
		s.links = append(s.links, source.Link{URL: u})
	}
	s.link, s.alt = i, label
}

// endLink gives the link that is open its text, unless it has one from another place in the page.
func (s *scanner) endLink() {
	if s.link >= 0 && s.links[s.link].Text == "" {
		label := strings.TrimSpace(s.label.String())
		if label == "" {
			label = s.alt
		}
		s.links[s.link].Text = chars.First(strings.Join(strings.Fields(label), " "), maxTitle, "…")
	}
	s.link, s.alt = -1, ""
	s.label.Reset()
}

func (s *scanner) end() facts {
	s.endLink()
	for _, title := range []*strings.Builder{&s.name, &s.graph, &s.heading} {
		if s.title == "" {
			s.title = strings.TrimSpace(title.String())
		}
	}
	var lines []string
	for line := range strings.Lines(s.text.String()) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	s.facts.text = strings.Join(lines, "\n")
	return s.facts
}
