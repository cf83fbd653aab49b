package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"trajgen/pipeline/episode"
)

// Bridge says when tools outside the core are hidden behind three others: one that searches them, one that describes them and one
// that calls them. A model then reads only the schemas that it needs.
//
// The trace records a call through the bridge as a call of the tool that ran, with Via.
type Bridge struct {
	// Enabled is auto, on or off; true and false mean auto and off, and "" means auto. On is whenever there is a tool to
	// hide, auto when the schemas to hide are worth it.
	Enabled string `yaml:"enabled,omitempty" json:"enabled,omitempty"`
	// ThresholdPct is the share of the model's context that the schemas to hide must reach with auto; nil is 10.
	ThresholdPct *float64 `yaml:"threshold_pct,omitempty" json:"threshold_pct,omitempty"`
	// ContextWindow is the model's, in tokens. If it is 0, which means unknown, the schemas must reach 20,000 tokens.
	ContextWindow int `yaml:"context_window,omitempty" json:"context_window,omitempty"`
	// DefaultLimit and MaxLimit bound how many tools a search returns; 0 is 5 and 20.
	DefaultLimit int `yaml:"search_default_limit,omitempty" json:"search_default_limit,omitempty"`
	MaxLimit     int `yaml:"max_search_limit,omitempty" json:"max_search_limit,omitempty"`
}

// The defaults of a Bridge.
const (
	DefaultThresholdPct   = 10
	defaultHiddenTokens   = 20_000
	defaultSearchLimit    = 5
	defaultMaxSearchLimit = 20
	maxSearchLimit        = 50
)

const (
	toolSearch    = "tool_search"
	toolDescribe  = "tool_describe"
	toolCall      = "tool_call"
	bridgeToolset = "bridge"
)

var bridgeTools = []string{toolCall, toolDescribe, toolSearch}

// UnmarshalText reads the short form of a run file, where Enabled alone stands for the whole.
func (b *Bridge) UnmarshalText(text []byte) error {
	*b = Bridge{Enabled: string(text)}
	return nil
}

// Validate returns everything that is wrong.
func (b Bridge) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("tool_search: "+format, args...)) }
	if modes := words("auto on off true false"); b.Enabled != "" && !slices.Contains(modes, b.Enabled) {
		bad("enabled is %q; auto, on or off", b.Enabled)
	}
	if pct := b.threshold(); !(pct >= 0 && pct <= 100) {
		bad("threshold_pct is %v; from 0 to 100", pct)
	}
	if b.ContextWindow < 0 {
		bad("context_window is %d; not below 0", b.ContextWindow)
	}
	if _, most := b.limits(); most < 1 || most > maxSearchLimit {
		bad("max_search_limit is %d; from 1 to %d", b.MaxLimit, maxSearchLimit)
	}
	if first, most := b.limits(); first < 1 || first > most {
		bad("search_default_limit is %d; from 1 to max_search_limit, which is %d", first, most)
	}
	return errors.Join(errs...)
}

func (b Bridge) threshold() float64 {
	if b.ThresholdPct == nil {
		return DefaultThresholdPct
	}
	return *b.ThresholdPct
}

func (b Bridge) limits() (first, most int) {
	most = cmp.Or(b.MaxLimit, defaultMaxSearchLimit)
	return cmp.Or(b.DefaultLimit, min(defaultSearchLimit, max(most, 1))), most
}

// hides lists the tools that the bridge hides; none when it is not worth it.
func (b Bridge) hides(names []string, schemas map[string]json.RawMessage) []string {
	if b.Enabled == "off" || b.Enabled == "false" {
		return nil
	}
	var hidden []string
	size := 0
	for _, name := range names {
		if !slices.Contains(coreTools, name) {
			hidden = append(hidden, name)
			size += len(schemas[name])
		}
	}
	needed := float64(defaultHiddenTokens)
	if b.ContextWindow > 0 {
		needed = b.threshold() / 100 * float64(b.ContextWindow)
	}
	if b.Enabled != "on" && float64(size)/4 < needed { // four characters to a token
		return nil
	}
	return hidden
}

// tools are the tools of a bridge to a number of hidden tools.
func (b Bridge) tools(hidden int) []Tool {
	first, most := b.limits()
	return []Tool{
		bridgeTool(toolSearch, fmt.Sprintf("Search the %d tools that you can use and that are not listed here. Returns names "+
			"and what they do, best match first. Read a tool's parameters with tool_describe before you call it with tool_call.",
			hidden),
			fmt.Sprintf(`{"type":"object","properties":{"query":{"type":"string","description":"What the tool should do, in a `+
				`few words.","minLength":1},"limit":{"type":"integer","description":"How many matches to return.","minimum":1,`+
				`"maximum":%d,"default":%d}},"required":["query"]}`, most, first),
			func(c *catalogue, args bridgeArgs) (any, error) { return c.search(args.Query, args.Limit) }),
		bridgeTool(toolDescribe, "Read the description and the parameters of a tool that tool_search has found.",
			`{"type":"object","properties":{"name":{"type":"string","description":"The tool's name, as tool_search returns it."}},`+
				`"required":["name"]}`,
			func(c *catalogue, args bridgeArgs) (any, error) { return c.describe(args.Name) }),
		bridgeCall(),
	}
}

type bridgeArgs struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
	Name  string `json:"name"`
}

func bridgeTool(name, description, parameters string, fn func(c *catalogue, args bridgeArgs) (any, error)) Tool {
	tool, err := Definition{
		Name: name, Toolset: bridgeToolset, Description: description, NoSandbox: true,
		Access: func(json.RawMessage) Access { return Access{} },
	}.tool(json.RawMessage(parameters), reflect.TypeFor[bridgeArgs]())
	if err != nil {
		panic(fmt.Sprintf("define tool %q: %v", name, err))
	}
	tool.bind = decoded(func(_ context.Context, env *Env, args bridgeArgs) (any, error) {
		return fn(env.Session.tools.hidden, args)
	})
	return tool
}

// bridgeCall shows its arguments as an object. The tool that is called checks them, as models also write them as a string, or leave
// them out when there are none.
func bridgeCall() Tool {
	tool := bridgeTool(toolCall, "Call a tool that tool_search has found. The result is that of the tool.",
		`{"type":"object","properties":{"name":{"type":"string"},"arguments":{}},"required":["name"]}`,
		func(*catalogue, bridgeArgs) (any, error) { return nil, errors.New("a call that was not unwrapped") })
	tool.NoSandbox, tool.Access = false, nil
	tool.Parameters = json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","description":"The tool's ` +
		`name, as tool_search returns it."},"arguments":{"type":"object","description":"The tool's arguments, as ` +
		`tool_describe shows them.","properties":{}}},"required":["name","arguments"]}`)
	return tool
}

// unwrap turns a call of tool_call into the call that it carries, so that dispatch and trace treat it as a call of that tool. The
// arguments keep their spelling, except for the white space between them.
func (p *prepared) unwrap() {
	t := p.session.tools
	if t.hidden == nil {
		return
	}
	name, tool, _ := t.lookup(p.call.Name)
	if tool == nil || name != toolCall {
		return
	}
	args := p.parse(tool, p.call.RawArguments)
	for _, path := range args.coerced { // marked, as they are not the inner tool's
		p.call.Coerced = append(p.call.Coerced, toolCall+":"+path)
	}
	if p.call.Toolset = bridgeToolset; p.refused != nil {
		return
	}
	outer := parseValue(string(args.given))
	inner, raw := unquote(outer.member("name").text), "{}"
	switch given := outer.member("arguments"); {
	case given == nil || given.kind == kindNull:
	case given.kind == kindString:
		raw = unquote(given.text)
	default:
		raw = string(given.append(nil))
	}
	meant, found, _ := t.lookup(inner)
	if _, hidden := t.hidden.tools[meant]; found != nil && !hidden {
		p.refused = &Failure{
			Class: "not_hidden", Status: episode.CallInvalidArguments,
			Message: fmt.Sprintf("tool_call is for the tools that tool_search finds; call %s itself", meant),
		}
		return
	}
	p.call.Name, p.call.RawArguments, p.call.Via, p.call.Repaired = inner, raw, toolCall, args.repaired
}
