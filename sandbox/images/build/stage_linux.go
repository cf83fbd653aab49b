package build

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"

	"trajgen/sandbox/images"
)

// stage is the state of a stage after an instruction.
type stage struct {
	config v1.Config
	layers []string // the lowest first
	key    string   // of the file system: a hash of all that made it
	args   []string // "K=V": values of ARG
	cmd    bool     // CMD was set in this stage, and not by its base

	view *images.View // of layers, once it is asked for
}

// env are the variables that instructions see. ENV goes before ARG.
func (s *stage) env() []string {
	all := slices.Clone(s.args)
	for _, kv := range s.config.Env {
		key, value, _ := strings.Cut(kv, "=")
		all = set(all, key, value)
	}
	return all
}

// adder adds an entry of a layer.
type adder = func(header *tar.Header, content io.Reader) error

// stage builds a stage, unless that has happened.
func (w *work) stage(ctx context.Context, number int) (*stage, error) {
	if s := w.ready[number]; s != nil {
		return s, nil
	}
	def := w.list[number]
	s, err := w.from(ctx, def, number)
	if err != nil {
		return nil, at(def.SourceCode, def.Location, FromImage, err)
	}
	if _, ok := lookup(s.config.Env, "PATH"); !ok {
		s.config.Env = append(s.config.Env, usualPath)
	}
	triggers := s.config.OnBuild
	s.config.OnBuild = nil
	for _, text := range triggers {
		command, err := trigger(text)
		if err == nil {
			err = w.apply(ctx, s, number, command)
		}
		if err != nil {
			return nil, at("ONBUILD "+text, def.Location, Parse, err)
		}
	}
	for _, command := range def.Commands {
		if err := w.apply(ctx, s, number, command); err != nil {
			text := command.Name()
			if full, ok := command.(fmt.Stringer); ok {
				text = full.String()
			}
			return nil, at(text, command.Location(), Parse, err)
		}
	}
	w.ready[number] = s
	return s, nil
}

// trigger parses an instruction that the base image has left.
func trigger(text string) (instructions.Command, error) {
	parsed, err := parser.Parse(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	if len(parsed.AST.Children) != 1 {
		return nil, errors.New("want one instruction")
	}
	return instructions.ParseCommand(parsed.AST.Children[0])
}

// from begins a stage.
func (w *work) from(ctx context.Context, def instructions.Stage, number int) (*stage, error) {
	platform, err := w.expander(w.global)(def.Platform)
	if err != nil {
		return nil, err
	}
	if own := "linux/" + runtime.GOARCH; platform != "" && platform != own && platform != "linux" {
		return nil, &Error{Reason: Platform, Err: fmt.Errorf("--platform=%s: this machine is %s", platform, own)}
	}
	name, err := w.expander(w.global)(def.BaseName)
	if err != nil {
		return nil, err
	}
	switch i, ok := w.named(name, number); {
	case name == "":
		return nil, &Error{Reason: Parse, Err: fmt.Errorf("%s is empty", def.BaseName)}
	case ok:
		below, err := w.stage(ctx, i)
		if err != nil {
			return nil, err
		}
		return below.fork(), nil
	case name == "scratch":
		s := &stage{config: v1.Config{WorkingDir: "/"}, key: "scratch"}
		layers, made := w.layers, w.made
		err := w.layer(ctx, s, "scratch", func(context.Context, adder) error { return nil })
		w.layers, w.made = layers, made // an image of nothing is not worth counting
		return s, err
	}
	return w.base(ctx, name)
}

// fork returns a stage that begins where another one has ended.
func (s *stage) fork() *stage {
	n := *s
	n.config = *s.config.DeepCopy()
	n.layers, n.args, n.cmd = slices.Clone(s.layers), nil, false
	return &n
}

// base finds an image in the store, or the one that is taken instead.
func (w *work) base(ctx context.Context, reference string) (*stage, error) {
	if other, ok := w.opts.Map[reference]; ok {
		reference = other
	}
	base, err := w.store.Base(ctx, reference)
	if err != nil {
		return nil, &Error{Reason: FromImage, Err: err}
	}
	return &stage{config: *base.Config.DeepCopy(), layers: base.Layers, key: base.Digest}, nil
}

// see returns the files of a stage.
func (w *work) see(ctx context.Context, s *stage) (*images.View, error) {
	if s.view == nil {
		image, err := w.store.Stack(ctx, s.layers)
		if err != nil {
			return nil, err
		}
		s.view = w.opts.Store.View(image)
	}
	return s.view, nil
}

// layer puts a layer on a stage. what is all that makes it, beside what lies below.
func (w *work) layer(ctx context.Context, s *stage, what any, fill func(context.Context, adder) error) error {
	text, err := json.Marshal([]any{"layer 1", s.key, what})
	if err != nil {
		return err
	}
	key := fmt.Sprintf("%x", sha256.Sum256(text))
	name, made, err := w.store.Layer(ctx, key, func(ctx context.Context, add adder) error { return fill(ctx, bounded(add, w.opts.Limits.Disk)) })
	if err != nil {
		return err
	}
	w.layers++
	if made {
		w.made++
	}
	s.layers, s.key, s.view = append(s.layers, name), key, nil
	return nil
}

// maxEntries is how many files a layer may have.
const maxEntries = 1 << 20

// bounded adds no more to a layer than a command may write: tarballs are small until they are unpacked.
func bounded(add adder, most int64) adder {
	bytes, entries := most, maxEntries
	return func(h *tar.Header, content io.Reader) error {
		entries--
		if h.Typeflag == tar.TypeReg {
			bytes -= h.Size
		}
		if bytes < 0 || entries < 0 {
			return &Error{Reason: Copy, Err: fmt.Errorf("a layer may have %d bytes in %d files, and this one has more", most, maxEntries)}
		}
		return add(h, content)
	}
}

// apply carries out an instruction.
func (w *work) apply(ctx context.Context, s *stage, number int, command instructions.Command) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if words, ok := command.(instructions.SupportsSingleWordExpansion); ok {
		if err := words.Expand(w.expander(s.env())); err != nil {
			return err
		}
	}
	if texts, ok := command.(instructions.SupportsSingleWordExpansionRaw); ok {
		raw := shell.NewLex('\\')
		raw.SkipProcessQuotes = true
		err := texts.ExpandRaw(func(text string) (string, error) {
			expanded, _, err := raw.ProcessWord(text, shell.EnvsFromSlice(s.env()))
			return expanded, err
		})
		if err != nil {
			return err
		}
	}
	switch c := command.(type) {
	case *instructions.RunCommand:
		return w.run(ctx, s, number, c)
	case *instructions.CopyCommand:
		return w.copy(ctx, s, number, c)
	case *instructions.AddCommand:
		return w.add(ctx, s, c)
	case *instructions.WorkdirCommand:
		return w.workdir(ctx, s, c.Path)
	case *instructions.ArgCommand:
		w.argument(s, c)
	default:
		return s.configure(command)
	}
	return nil
}

// argument declares variables: without a value of the caller or of their own, with that from before the first stage.
func (w *work) argument(s *stage, c *instructions.ArgCommand) {
	for _, arg := range c.Args {
		value := w.given(arg)
		if value == nil {
			if global, ok := lookup(w.global, arg.Key); ok {
				value = &global
			}
		}
		if value != nil {
			s.args = set(s.args, arg.Key, *value)
		}
	}
}

// absolute joins a path to the working directory.
func (s *stage) absolute(name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join("/", s.config.WorkingDir, name)
}

// workdir changes the working directory, and makes it.
func (w *work) workdir(ctx context.Context, s *stage, name string) error {
	dir := s.absolute(name)
	s.config.WorkingDir = dir
	view, err := w.see(ctx, s)
	if err != nil {
		return err
	}
	resolved, info, err := view.Resolve(dir)
	switch {
	case err != nil:
		return err
	case info != nil && info.IsDir():
		return nil
	case info != nil:
		return &Error{Reason: Copy, Err: fmt.Errorf("%s is not a directory", dir)}
	}
	owner, err := ownerOf(view, s.config.User)
	if err != nil {
		return err
	}
	return w.layer(ctx, s, []any{"dir", resolved, owner}, func(_ context.Context, add adder) error {
		return parents(view, resolved+"/.", owner, add)
	})
}

// parents adds the directories above a file that do not exist.
func parents(view *images.View, name string, owner [2]int, add adder) error {
	var missing []string
	for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
		if _, info, err := view.Resolve(dir); err != nil {
			return err
		} else if info != nil {
			break
		}
		missing = append(missing, dir)
	}
	for _, dir := range slices.Backward(missing) {
		if err := add(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, Uid: owner[0], Gid: owner[1]}, nil); err != nil {
			return err
		}
	}
	return nil
}
