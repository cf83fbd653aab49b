package provider

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"trajgen/tools/web/source"
)

// Generic describes a service that is asked over HTTP and answers in JSON.
type Generic struct {
	Search *Template `yaml:"search,omitempty" experiment:"always" help:"how the service searches"`
	Read   *Template `yaml:"read,omitempty" experiment:"always" help:"how the service reads a page"`
}

// Template is a request, and where in the answer something is. URL, Headers and Body are Go templates with .Query, .Limit,
// .Language, .Site, .After, or .URL of the page to read, and .Key; {{json .Query}} writes JSON, and {{urlquery .Query}} a part
// of a URL. The others are expressions over answer, and those of a search over item, too, which is one of List.
type Template struct {
	Method  string            `yaml:"method,omitempty" experiment:"always" help:"GET, or POST where there is a body"`
	URL     string            `yaml:"url" experiment:"always" help:"template of the address"`
	Headers map[string]string `yaml:"headers,omitempty" experiment:"always" help:"templates of headers"`
	Body    string            `yaml:"body,omitempty" experiment:"always" help:"template of the body"`

	List        string `yaml:"list,omitempty" experiment:"always" help:"expression for the list of results, such as answer.results"`
	Title       string `yaml:"title,omitempty" experiment:"always" help:"expression for a title, such as item.title"`
	Link        string `yaml:"link,omitempty" experiment:"always" help:"expression for a result's address, such as item.url"`
	Description string `yaml:"description,omitempty" experiment:"always" help:"expression for a result's description"`
	Published   string `yaml:"published,omitempty" experiment:"always" help:"expression for a date"`
	Text        string `yaml:"text,omitempty" experiment:"always" help:"expression for the text of a page, such as answer.markdown"`
}

var genericKind = kind{keyless: true, open: openGeneric}

type (
	generic struct {
		*Client
		template *compiled
	}
	genericSearch struct{ generic }
	genericRead   struct{ generic }
)

func openGeneric(s *Client, c Config) (Provider, error) {
	described, err := json.Marshal(c.Generic)
	if err != nil {
		return nil, err
	}
	for _, f := range []filter{language, site, after} {
		field := "." + strings.ToUpper(string(f[:1])) + string(f[1:])
		if strings.Contains(string(described), field) {
			s.kind.filters = append(s.kind.filters, f)
		}
	}
	search, wrong1 := c.Generic.Search.compile("search", "list", "link")
	read, wrong2 := c.Generic.Read.compile("read", "text")
	searcher, reader := genericSearch{generic{s, search}}, genericRead{generic{s, read}}
	switch {
	case wrong1 != nil || wrong2 != nil:
		return nil, errors.Join(wrong1, wrong2)
	case search == nil && read == nil:
		return nil, errors.New("web provider generic: it needs search or read")
	case read == nil:
		return searcher, nil
	case search == nil:
		return reader, nil
	}
	return struct {
		Provider
		source.Searcher
		source.Reader
	}{s, searcher, reader}, nil
}

// compiled is a Template that can be used.
type compiled struct {
	method    string
	url, body *template.Template
	headers   map[string]*template.Template
	fields    map[string]*vm.Program
}

// asked is what templates know.
type asked struct {
	Query, Language, Site, After, URL, Key string
	Limit                                  int
}

// compile makes a Template usable, in which these expressions must not be missing; nil where there is none.
func (t *Template) compile(part string, needed ...string) (*compiled, error) {
	if t == nil {
		return nil, nil
	}
	var wrong []error
	parse := func(name, text string) *template.Template {
		parsed, err := template.New(name).Funcs(template.FuncMap{"json": inJSON}).Parse(text)
		if err == nil {
			err = parsed.Execute(&bytes.Buffer{}, asked{})
		}
		wrong = append(wrong, err)
		return parsed
	}
	c := &compiled{
		method: t.Method, url: parse("url", t.URL), headers: map[string]*template.Template{}, fields: map[string]*vm.Program{},
	}
	if t.Body != "" {
		c.body, c.method = parse("body", t.Body), cmp.Or(t.Method, http.MethodPost)
	}
	for name, text := range t.Headers {
		c.headers[name] = parse("header "+name, text)
	}
	names := types.Map{"answer": types.Any}
	for _, f := range []struct{ name, code string }{
		{"list", t.List}, {"title", t.Title}, {"link", t.Link}, {"description", t.Description}, {"published", t.Published}, {"text", t.Text},
	} {
		if f.code == "" {
			if slices.Contains(needed, f.name) {
				wrong = append(wrong, fmt.Errorf("%s is missing", f.name))
			}
			continue
		}
		program, err := expr.Compile(f.code, expr.Env(names))
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", f.name, err))
		}
		c.fields[f.name] = program
		if f.name == "list" {
			names = types.Map{"answer": types.Any, "item": types.Any}
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, fmt.Errorf("web provider generic: %s: %w", part, err)
	}
	return c, nil
}

// inJSON is a value as JSON.
func inJSON(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

// request fills a template in and asks.
func (g generic) request(ctx context.Context, a asked) (answer any, err error) {
	c := g.template
	a.Key = g.key
	var wrong error
	fill := func(t *template.Template) string {
		var b strings.Builder
		if t != nil {
			wrong = errors.Join(wrong, t.Execute(&b, a))
		}
		return b.String()
	}
	r := Request{Method: c.method, Path: fill(c.url), Text: fill(c.body), Header: map[string]string{}}
	if c.body != nil {
		r.Header["Content-Type"] = "application/json"
	}
	for name, t := range c.headers {
		r.Header[name] = fill(t)
	}
	if wrong != nil {
		return nil, g.Errorf(source.Operator, source.Malformed, "%s", g.hide(wrong.Error()))
	}
	if !strings.HasPrefix(r.Path, "http://") && !strings.HasPrefix(r.Path, "https://") {
		return nil, g.Errorf(source.Operator, source.Malformed, "the template of its address gives %q, which is none", g.hide(r.Path))
	}
	err = g.Ask(ctx, r, &answer)
	return answer, err
}

// misplaced is the error about an answer in which an expression finds nothing.
func (g generic) misplaced(what string, err error) *source.Error {
	return g.Errorf(source.Outage, source.Malformed, "its answer has no %s where it should: %s", what, g.Excerpt(err.Error()))
}

// field evaluates an expression as text. What is not there is "".
func (g generic) field(name string, env map[string]any) (string, error) {
	program := g.template.fields[name]
	if program == nil {
		return "", nil
	}
	value, err := expr.Run(program, env)
	if err != nil {
		return "", g.misplaced(name, err)
	}
	switch v := value.(type) {
	case nil:
		return "", nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	}
	return fmt.Sprint(value), nil
}

func (g genericSearch) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	if err := g.accept(&q); err != nil {
		return nil, err
	}
	a := asked{Query: q.Text, Limit: q.Limit, Language: q.Language, Site: q.Site, After: q.After}
	answer, err := g.request(ctx, a)
	if err != nil {
		return nil, err
	}
	listed, err := expr.Run(g.template.fields["list"], map[string]any{"answer": answer})
	if err != nil {
		return nil, g.misplaced("list", err)
	}
	items, ok := listed.([]any)
	if !ok && listed != nil {
		return nil, g.misplaced("list", fmt.Errorf("there is %T", listed))
	}
	var found []source.Result
	for _, item := range items[:min(len(items), q.Limit)] {
		env, r := map[string]any{"answer": answer, "item": item}, source.Result{}
		for _, f := range []struct {
			name  string
			value *string
		}{{"title", &r.Title}, {"link", &r.URL}, {"description", &r.Description}, {"published", &r.Published}} {
			if *f.value, err = g.field(f.name, env); err != nil {
				return nil, err
			}
		}
		found = append(found, r)
	}
	return results(found, q.Limit, func(r source.Result) source.Result { return r }), nil
}

func (g genericRead) Read(ctx context.Context, urls []string) ([]source.Page, error) {
	return g.each(ctx, urls, func(ctx context.Context, address string) (p source.Page, err error) {
		answer, err := g.request(ctx, asked{URL: address})
		if err != nil {
			return p, err
		}
		env := map[string]any{"answer": answer}
		title, err := g.field("title", env)
		text, inText := g.field("text", env)
		return g.page(address, title, text), errors.Join(err, inText)
	})
}
