package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"sync"
)

// Define makes a tool from an argument struct: its fields are the schema, the parser and the manual, so that they
// cannot disagree. Each field has a json name; omitempty or a pointer makes it optional. The other tags are doc,
// enum:"a,b", default (a JSON literal or a bare string, filled in when the argument is absent), example, min and max
// of numbers, minlen and maxlen of strings, minitems and maxitems of lists. Models also use the names of other tools that they
// know: alias:"file_path,filename" lists other names of an argument (case and separators never matter),
// last:"offset:end_line" is for a number of lines that may be given by the last line, and idle:"encoding=utf-8,verbose", at
// a field _, lists arguments that make no difference. The trace flags them; other unknown arguments are refused.
//
// fn returns a value that is encoded as the result; a json.RawMessage is the result. It must return soon after ctx ends.
// Define panics on a struct that it cannot describe: that is a bug in our source.
func Define[A any](d Definition, fn func(ctx context.Context, env *Env, args A) (any, error)) Tool {
	args := reflect.TypeFor[A]()
	tool, err := d.tool(json.RawMessage(describe(args)), args)
	if err != nil {
		panic(fmt.Sprintf("define tool %q: %v", d.Name, err))
	}
	tool.bind = decoded(fn)
	return tool
}

// run is a tool bound to the arguments of one call. They are decoded on the goroutine of the call, so that the stack of the tool's
// goroutine need not grow for it.
type run func(ctx context.Context, env *Env) (any, error)

// decoded binds a function to its arguments.
func decoded[A any](fn func(ctx context.Context, env *Env, args A) (any, error)) func(json.RawMessage) (run, error) {
	return func(arguments json.RawMessage) (run, error) {
		var args A
		if string(arguments) != "{}" { // the zero value
			if err := json.Unmarshal(arguments, &args); err != nil {
				return nil, undecodable(err)
			}
		}
		return func(ctx context.Context, env *Env) (any, error) { return fn(ctx, env, args) }, nil
	}
}

// Planned makes an entry for a tool that trajgen knows by its name alone: a call says so, and nothing resolves to it. Any tool of
// its name may replace it.
func Planned(d Definition) Tool {
	return Tool{Definition: d, planned: true}
}

// Planned reports whether trajgen knows the tool by its name alone.
func (t Tool) Planned() bool { return t.planned }

// DefineSchema makes a tool with a given schema, such as an MCP server's. fn gets the arguments after coercion and the check.
// References may only lead into the schema itself.
func DefineSchema(d Definition, parameters json.RawMessage,
	fn func(ctx context.Context, env *Env, arguments json.RawMessage) (any, error),
) (Tool, error) {
	tool, err := d.tool(parameters, nil)
	if err != nil {
		return Tool{}, fmt.Errorf("define tool %q: %w", d.Name, err)
	}
	tool.bind = func(arguments json.RawMessage) (run, error) {
		return func(ctx context.Context, env *Env) (any, error) { return fn(ctx, env, arguments) }, nil
	}
	return tool, nil
}

// The form that OpenAI's API accepts.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// tool makes the entry; args is the argument struct, or nil if there is none.
func (d Definition) tool(parameters json.RawMessage, args reflect.Type) (Tool, error) {
	if !toolName.MatchString(d.Name) {
		return Tool{}, errors.New("a name is 1 to 64 letters, digits, '_' and '-'")
	}
	if d.Toolset == "" {
		return Tool{}, errors.New("no toolset")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, parameters); err != nil {
		return Tool{}, fmt.Errorf("parameters: %w", err)
	}
	compiled := sync.OnceValues(func() (*plan, error) { return compile(compact.Bytes(), args) })
	if args == nil { // a process calls few of its tools, and compiling all of ours would take 20 ms at its start
		if _, err := compiled(); err != nil {
			return Tool{}, err
		}
	}
	plan := func() *plan {
		p, err := compiled()
		if err != nil {
			panic(fmt.Sprintf("compile the schema of tool %q: %v", d.Name, err))
		}
		return p
	}
	return Tool{Definition: d, Parameters: compact.Bytes(), args: args, plan: plan}, nil
}

// undecodable is an argument that passed the schema but not the decoder, e.g. an integer over 64 bits.
func undecodable(err error) *problem {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &problem{Field: wrong.Field, Expected: fmt.Sprintf("a value that fits %s", wrong.Type), Got: wrong.Value}
	}
	return &problem{Field: "arguments", Expected: "an object of the schema", Got: err.Error()}
}
