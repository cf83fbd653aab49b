package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
	generic       struct{ *service }
	genericSearch struct {
		generic
		template *compiled
	}
	genericRead struct {
		generic
		template *compiled
	}
	genericBoth struct {
		generic
		searcher genericSearch
		reader   genericRead
	}
)

func openGeneric(s *service, c Config) (Provider, error) {
	described, err := json.Marshal(c.Generic)
	if err != nil {
		return nil, err
	}
	g := generic{s}
	for _, f := range []filter{language, site, after} {
		field := "." + strings.ToUpper(string(f[:1])) + string(f[1:])
		if strings.Contains(string(described), field) {
			s.kind.filters = append(s.kind.filters, f)
		}
	}
	var search, read *compiled
	var wrong []error
	if t := c.Generic.Search; t != nil {
		search, err = t.compile("search", map[string]string{"list": t.List, "link": t.Link})
		wrong = append(wrong, err)
	}
	if t := c.Generic.Read; t != nil {
		read, err = t.compile("read", map[string]string{"text": t.Text})
		wrong = append(wrong, err)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	switch {
	case search != nil && read != nil:
		return genericBoth{g, genericSearch{g, search}, genericRead{g, read}}, nil
	case search != nil:
		return genericSearch{g, search}, nil
	case read != nil:
		return genericRead{g, read}, nil
	}
	return nil, errors.New("web provider generic: it needs search or read")
}

// compiled is a Template that can be used.
type compiled struct {
	method    string
	url, body *template.Template
	headers   map[string]*template.Template
	list      *vm.Program
	fields    map[string]*vm.Program
}

// asked is what templates know.
type asked struct {
	Query, Language, Site, After, URL, Key string
	Limit                                  int
}

func (t *Template) compile(part string, needed map[string]string) (*compiled, error) {
	var wrong []error
	for _, name := range []string{"list", "link", "text"} {
		if expression, ok := needed[name]; ok && expression == "" {
			wrong = append(wrong, fmt.Errorf("%s is missing", name))
		}
	}
	parse := func(name, text string) *template.Template {
		parsed, err := template.New(name).Funcs(template.FuncMap{"json": inJSON}).Parse(text)
		if err == nil {
			err = parsed.Execute(&bytes.Buffer{}, asked{})
		}
		wrong = append(wrong, err)
		return parsed
	}
	compile := func(name, code string, names types.Map) *vm.Program {
		program, err := expr.Compile(code, expr.Env(names))
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
		}
		return program
	}
	c := &compiled{method: t.Method, headers: map[string]*template.Template{}, fields: map[string]*vm.Program{}}
	c.url = parse("url", t.URL)
	if t.Body != "" {
		c.body = parse("body", t.Body)
	}
	if c.method == "" && t.Body != "" {
		c.method = http.MethodPost
	}
	for name, text := range t.Headers {
		c.headers[name] = parse("header "+name, text)
	}
	names := types.Map{"answer": types.Any}
	if t.List != "" {
		c.list = compile("list", t.List, names)
		names = types.Map{"answer": types.Any, "item": types.Any}
	}
	for _, f := range []struct{ name, code string }{
		{"title", t.Title}, {"link", t.Link}, {"description", t.Description}, {"published", t.Published}, {"text", t.Text},
	} {
		if f.code != "" {
			c.fields[f.name] = compile(f.name, f.code, names)
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
func (g generic) request(ctx context.Context, c *compiled, a asked) (answer any, err error) {
	a.Key = g.key
	var wrong error
	fill := func(t *template.Template) string {
		var b strings.Builder
		if t != nil {
			wrong = errors.Join(wrong, t.Execute(&b, a))
		}
		return b.String()
	}
	r := request{method: c.method, path: fill(c.url), text: fill(c.body), header: map[string]string{}}
	if c.body != nil {
		r.header["Content-Type"] = "application/json"
	}
	for name, t := range c.headers {
		r.header[name] = fill(t)
	}
	if wrong != nil {
		return nil, g.fault(source.Operator, source.Malformed, "%s", g.hide(wrong.Error()))
	}
	if !strings.HasPrefix(r.path, "http://") && !strings.HasPrefix(r.path, "https://") {
		return nil, g.fault(source.Operator, source.Malformed, "the template of its address gives %q, which is none", g.hide(r.path))
	}
	err = g.ask(ctx, r, &answer)
	return answer, err
}

// misplaced is the error about an answer in which an expression finds nothing.
func (g generic) misplaced(what string, err error) *source.Error {
	return g.fault(source.Outage, source.Malformed, "its answer has no %s where it should: %s", what, g.excerpt([]byte(err.Error())))
}

// field evaluates an expression as text. What is not there is "".
func (g generic) field(c *compiled, name string, env map[string]any) (string, error) {
	program := c.fields[name]
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
	answer, err := g.request(ctx, g.template, a)
	if err != nil {
		return nil, err
	}
	listed, err := expr.Run(g.template.list, map[string]any{"answer": answer})
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
			if *f.value, err = g.field(g.template, f.name, env); err != nil {
				return nil, err
			}
		}
		found = append(found, r)
	}
	return results(found, q.Limit, func(r source.Result) source.Result { return r }), nil
}

func (g genericRead) Read(ctx context.Context, urls []string) ([]source.Page, error) {
	return g.each(ctx, urls, func(ctx context.Context, address string) (p source.Page, err error) {
		answer, err := g.request(ctx, g.template, asked{URL: address})
		if err != nil {
			return p, err
		}
		env := map[string]any{"answer": answer}
		title, err := g.field(g.template, "title", env)
		text, inText := g.field(g.template, "text", env)
		published, inDate := g.field(g.template, "published", env)
		if err := errors.Join(err, inText, inDate); err != nil {
			return p, err
		}
		p = g.page(address, title, text)
		p.Published = published
		return p, nil
	})
}

func (g genericBoth) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	return g.searcher.Search(ctx, q)
}

func (g genericBoth) Read(ctx context.Context, urls []string) ([]source.Page, error) {
	return g.reader.Read(ctx, urls)
}
