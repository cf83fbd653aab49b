package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"trajgen/tools/internal/chars"
	"trajgen/tools/threats"
)

// Bounds of what a server says of itself.
const (
	maxPages  = 50
	maxTools  = 500
	maxManual = 4 << 10 // bytes of a description
	quiet     = 100 * time.Millisecond
	settling  = time.Second // for which a server may go on changing its list after it was connected
)

// Described is what a server said of itself, as a run's fingerprint and a lock file have it.
type Described struct {
	Declared     string   `json:"declared"` // digest of how it is declared, and of its files
	Name         string   `json:"name"`
	Version      string   `json:"version"`
	Protocol     string   `json:"protocol"`
	Client       []string `json:"client,omitempty"` // what it was told that we can do: elicitation, sampling
	Instructions string   `json:"instructions_sha256,omitempty"`
	Resources    bool     `json:"resources,omitempty"`
	Prompts      bool     `json:"prompts,omitempty"`
	Tools        []Tool   `json:"tools"`
}

// Tool is a tool as its server described it, in the order of the tools' names.
type Tool struct {
	Name        string          `json:"name"`
	Shown       string          `json:"shown,omitempty"` // to the model
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	ReadOnly    bool            `json:"read_only,omitempty"`  // both are the server's own claims: they allow only that a call is
	Idempotent  bool            `json:"idempotent,omitempty"` // repeated after its connection broke, and what recordings say of it
	Headers     bool            `json:"headers,omitempty"`    // some of its arguments travel as headers, too
	SHA256      string          `json:"sha256"`               // of all that the server said of it
	// Suspicious are the patterns of attacks on a model that its description matches.
	Suspicious []string `json:"suspicious,omitempty"`
	Refused    string   `json:"refused,omitempty"` // why it is not shown
}

// digest identifies what a server said of itself.
func (d *Described) digest() string { return hash(encoded(d)) }

// headed reports whether arguments of some tool travel as headers.
func (d *Described) headed() bool {
	return slices.ContainsFunc(d.Tools, func(t Tool) bool { return t.Headers })
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// ask asks a connected server for what it has.
func (s *server) ask(ctx context.Context, c *conn) (*Described, error) {
	if err := c.settle(ctx); err != nil {
		return nil, err
	}
	is := c.session.InitializeResult()
	d := &Described{Declared: s.declared, Client: s.cfg.offers(), Protocol: is.ProtocolVersion}
	if is.ServerInfo != nil {
		d.Name, d.Version = chars.First(is.ServerInfo.Name, 200, "…"), chars.First(is.ServerInfo.Version, 100, "…")
	}
	if is.Instructions != "" {
		d.Instructions = hash([]byte(is.Instructions))
	}
	can := cmp.Or(is.Capabilities, &sdk.ServerCapabilities{})
	d.Resources, d.Prompts = can.Resources != nil && on(s.cfg.Resources), can.Prompts != nil && on(s.cfg.Prompts)
	if can.Tools == nil {
		return d, nil
	}
	tools, err := c.tools(ctx)
	if err != nil {
		return nil, fmt.Errorf("list its tools: %w", err)
	}
	d.Tools = s.describe(tools)
	return d, nil
}

// settle waits until the server has stopped changing its list: some do so when they hear that they are connected.
func (c *conn) settle(ctx context.Context) error {
	limit := time.After(settling)
	for {
		select {
		case <-c.changed:
		case <-limit:
			return nil
		case <-time.After(quiet):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tools are all tools of a server.
func (c *conn) tools(ctx context.Context) ([]*sdk.Tool, error) {
	var all []*sdk.Tool
	params := &sdk.ListToolsParams{}
	for range maxPages {
		page, err := c.session.ListTools(ctx, params)
		if err != nil {
			return nil, err
		}
		if all = append(all, page.Tools...); len(all) > maxTools {
			return nil, fmt.Errorf("it has more than %d", maxTools)
		}
		if params.Cursor = page.NextCursor; params.Cursor == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("its list has more than %d pages", maxPages)
}

// describe makes what is kept of a server's tools, sorted by name.
func (s *server) describe(given []*sdk.Tool) []Tool {
	given = slices.DeleteFunc(slices.Clone(given), func(t *sdk.Tool) bool { return t == nil || !s.cfg.Tools.takes(t.Name) })
	slices.SortStableFunc(given, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	var names []string
	for _, t := range given {
		names = append(names, t.Name)
	}
	shown := shownNames(s.name, names)
	var all []Tool
	for i, t := range given {
		schema, _ := t.Meta[metaSchema].(string)
		tool := Tool{Name: chars.First(t.Name, 300, "…"), Description: cut(t.Description)}
		if t.Annotations != nil {
			tool.ReadOnly, tool.Idempotent = t.Annotations.ReadOnlyHint, t.Annotations.IdempotentHint
		}
		tool.Headers = strings.Contains(schema, `"x-mcp-header"`)
		tool.SHA256 = hash(encoded([]any{t.Name, t.Description, schema, tool.ReadOnly, tool.Idempotent}))
		for _, found := range threats.Scan(t.Name + "\n" + t.Description + "\n" + schema) {
			tool.Suspicious = append(tool.Suspicious, found.ID)
		}
		var err error
		switch tool.Parameters, err = parameters(json.RawMessage(schema)); {
		case t.Name == "":
			err = errors.New("it has no name")
		case i > 0 && given[i-1].Name == t.Name:
			err = errors.New("the server has another of that name")
		}
		if err == nil {
			tool.Shown = shown[t.Name]
			_, err = s.define(tool)
		}
		if err != nil {
			tool.Shown, tool.Parameters, tool.Refused = "", nil, err.Error()
		}
		all = append(all, tool)
	}
	return all
}

// cut is a description that is not too long.
func cut(text string) string {
	if len(text) <= maxManual {
		return text
	}
	return strings.ToValidUTF8(text[:maxManual], "") + "…"
}

func on(b *bool) bool { return b == nil || *b }

// differs says what a server says now that it did not say before.
func (d *Described) differs(now *Described) []string {
	var lines []string
	note := func(what, was, is string) {
		if was != is {
			lines = append(lines, fmt.Sprintf("%s: was %q, is %q", what, was, is))
		}
	}
	note("its declaration", d.Declared[:min(12, len(d.Declared))], now.Declared[:min(12, len(now.Declared))])
	note("name", d.Name, now.Name)
	note("version", d.Version, now.Version)
	note("protocol", d.Protocol, now.Protocol)
	note("what it may ask", strings.Join(d.Client, " "), strings.Join(now.Client, " "))
	note("instructions", d.Instructions, now.Instructions)
	note("resources and prompts", fmt.Sprint(d.Resources, d.Prompts), fmt.Sprint(now.Resources, now.Prompts))
	was, is := map[string]Tool{}, map[string]Tool{}
	for _, t := range d.Tools {
		was[t.Name] = t
	}
	for _, t := range now.Tools {
		is[t.Name] = t
		if old, ok := was[t.Name]; !ok {
			lines = append(lines, "tool "+t.Name+" is new")
		} else if string(encoded(old)) != string(encoded(t)) {
			lines = append(lines, "tool "+t.Name+" is another")
		}
	}
	for _, t := range d.Tools {
		if _, ok := is[t.Name]; !ok {
			lines = append(lines, "tool "+t.Name+" is gone")
		}
	}
	return lines
}
