package build

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// work is the build of one Dockerfile. It belongs to one goroutine.
type work struct {
	*native
	dockerfile
	files *folder
	ready map[int]*stage

	layers, made int
}

// dockerfile is one that was read.
type dockerfile struct {
	source Source
	name   string // with its directory
	lex    *shell.Lex
	global []string // "K=V": variables before the first stage, and the platform's
	list   []instructions.Stage
}

// read reads a Dockerfile.
func (n *native) read(source Source) (*work, error) {
	file := source.File()
	w := &work{native: n, dockerfile: dockerfile{source: source, name: source.Path()}, ready: map[int]*stage{}}
	fail := func(err error) (*work, error) {
		if w.files != nil {
			w.files.close()
		}
		e := &Error{Dockerfile: w.name, Reason: Parse, Err: err}
		if at, ok := errors.AsType[*parser.LocationError](err); ok && len(at.Locations) > 0 && len(at.Locations[0]) > 0 {
			e.Line = at.Locations[0][0].Start.Line
		}
		return nil, e
	}
	var err error
	if w.files, err = openFolder(source.Dir, file); err != nil {
		return fail(err)
	}
	data, err := w.files.read(file)
	if err != nil {
		return fail(err)
	}
	parsed, err := parser.Parse(bytes.NewReader(data))
	if err != nil {
		return fail(err)
	}
	w.lex = shell.NewLex(parsed.EscapeToken)
	var metas []instructions.ArgCommand
	if w.list, metas, err = instructions.Parse(parsed.AST, nil); err != nil {
		return fail(err)
	}
	if len(w.list) == 0 {
		return fail(errors.New("it has no FROM"))
	}
	w.global = platformArgs()
	for _, meta := range metas {
		if err := meta.Expand(w.expander(w.global)); err != nil {
			return fail(err)
		}
		for _, arg := range meta.Args {
			if value := w.given(arg); value != nil {
				w.global = set(w.global, arg.Key, *value)
			}
		}
	}
	return w, nil
}

// given is the value of an ARG before any stage: that of the caller, or its default.
func (d *dockerfile) given(arg instructions.KeyValuePairOptional) *string {
	if value, ok := d.source.Args[arg.Key]; ok {
		return &value
	}
	return arg.Value
}

// platformArgs are the variables that say what machine the image is for.
func platformArgs() (all []string) {
	for _, of := range []string{"BUILD", "TARGET"} {
		all = append(all, of+"PLATFORM=linux/"+runtime.GOARCH, of+"OS=linux", of+"ARCH="+runtime.GOARCH, of+"VARIANT=")
	}
	return all
}

// set sets a variable in a list of "K=V".
func set(env []string, key, value string) []string {
	env = slices.Clone(env)
	i := slices.IndexFunc(env, func(kv string) bool { return strings.HasPrefix(kv, key+"=") })
	if i < 0 {
		return append(env, key+"="+value)
	}
	env[i] = key + "=" + value
	return env
}

func lookup(env []string, key string) (string, bool) {
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, key+"="); ok {
			return value, true
		}
	}
	return "", false
}

// expander replaces variables in a word.
func (d *dockerfile) expander(env []string) instructions.SingleWordExpander {
	return func(word string) (string, error) {
		expanded, _, err := d.lex.ProcessWord(word, shell.EnvsFromSlice(env))
		return expanded, err
	}
}

// target is the number of the stage that is wanted.
func (d *dockerfile) target() (int, error) {
	if d.source.Target == "" {
		return len(d.list) - 1, nil
	}
	if i, ok := d.named(d.source.Target, len(d.list)); ok {
		return i, nil
	}
	return 0, &Error{Reason: Parse, Err: fmt.Errorf("it has no stage %q", d.source.Target)}
}

// named finds one of the first stages, by its name or number. The last of a name wins.
func (d *dockerfile) named(name string, before int) (int, bool) {
	for i := before - 1; i >= 0; i-- {
		if strings.EqualFold(d.list[i].Name, name) {
			return i, true
		}
	}
	i, err := strconv.Atoi(name)
	return i, err == nil && i >= 0 && i < before
}

// fault completes an error, whose place is known.
func (d *dockerfile) fault(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Reason: Machine, Err: err}
	}
	e.Dockerfile = d.name
	return e
}

// at adds the place of an instruction to an error.
func at(text string, location []parser.Range, reason string, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Reason: reason, Err: err}
	}
	if e.Line == 0 && len(location) > 0 {
		e.Line, e.Instruction = location[0].Start.Line, text
	}
	return e
}

func refuse(format string, args ...any) error {
	return &Error{Reason: Unsupported, Err: fmt.Errorf(format, args...)}
}
