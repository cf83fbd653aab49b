package build

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/become"
)

// scratch is a directory of the sandbox for what no layer keeps.
const scratch = "/.trajgen-build"

// runTime bounds one command.
const runTime = time.Hour

// opaque is the entry of a layer that hides what lower layers have in its directory.
const opaque = ".wh..wh..opq"

// usualPath is the PATH of images that name none.
const usualPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// command is a RUN, ready to run. Its exported fields are what its layer depends on.
type command struct {
	Args    []string
	Script  string // what scratch/NAME holds, if Args[0] is that
	Env     []string
	Dir     string
	User    string
	Network sandbox.Network
	Mounts  []mount

	layers []string // the lowest first: those of the stage, and of mounts
	who    identity
}

// run makes the layer of a RUN.
func (w *work) run(ctx context.Context, s *stage, number int, c *instructions.RunCommand) error {
	r := &command{Env: s.env(), Dir: cmp.Or(s.config.WorkingDir, "/"), User: s.config.User, Network: w.opts.Network}
	if len(instructions.GetDevices(c)) > 0 {
		return refuse("--device is not known here")
	}
	if instructions.GetSecurity(c) != instructions.SecuritySandbox {
		return refuse("--security=%s: commands are always confined", instructions.GetSecurity(c))
	}
	switch mode := instructions.GetNetwork(c); mode {
	case instructions.NetworkNone:
		r.Network = sandbox.NetworkLoopback
	case instructions.NetworkHost:
		return refuse("--network=host: commands never have the machine's own network; build_network: full reaches everything else")
	}
	if err := r.line(s, c.ShellDependantCmdLine); err != nil {
		return err
	}
	r.layers = slices.Clone(s.layers)
	for _, m := range instructions.GetMounts(c) {
		if err := w.mount(ctx, r, number, m); err != nil {
			return err
		}
	}
	view, err := w.see(ctx, s)
	if err != nil {
		return err
	}
	if r.who, err = identify(view, r.User); err != nil {
		return err
	}
	if !w.store.KeepsOwners() {
		r.who = identity{home: r.who.home} // another user could not change the files that were made for it
	}
	if _, ok := lookup(r.Env, "HOME"); !ok {
		r.Env = append(r.Env, "HOME="+r.who.home)
	}
	return w.layer(ctx, s, []any{"run", r}, func(ctx context.Context, add adder) error { return w.execute(ctx, r, add) })
}

// line finds out what to run.
func (r *command) line(s *stage, c instructions.ShellDependantCmdLine) error {
	args := slices.Clone(c.CmdLine)
	if len(c.Files) > 0 {
		if len(args) != 1 || !c.PrependShell {
			return &Error{Reason: Parse, Err: errors.New("a text in the Dockerfile (<<) goes with one command of the shell")}
		}
		if parser.MustParseHeredoc(args[0]) == nil { // the shell reads the texts
			for _, file := range c.Files {
				args[0] += "\n" + file.Data + file.Name
			}
		} else {
			text := c.Files[0].Data
			if c.Files[0].Chomp {
				text = parser.ChompHeredocContent(text)
			}
			args[0] = text
			if strings.HasPrefix(text, "#!") {
				r.Script, r.Args = text, []string{scratch + "/" + path.Base(c.Files[0].Name)}
				return nil
			}
		}
	}
	if c.PrependShell {
		args = append(s.shell(), strings.Join(args, " "))
	}
	r.Args = args
	return nil
}

// execute runs a command in a sandbox, and adds what it changed to a layer.
func (w *work) execute(ctx context.Context, r *command, add adder) (err error) {
	backend, err := w.backend()
	if err != nil {
		return &Error{Reason: Machine, Err: fmt.Errorf("open the sandbox for commands: %w", err)}
	}
	kept := caches{w.opts.Store}
	release, err := kept.open(ctx, r)
	defer func() { err = errors.Join(err, release()) }()
	if err != nil {
		return err
	}
	image, err := w.store.Stack(ctx, r.layers)
	if err != nil {
		return err
	}
	reference := w.stages.add(image)
	defer w.stages.remove(reference)
	spec := sandbox.Spec{
		ID: fmt.Sprintf("build-%d", w.names.Add(1)), Image: reference, Bare: true, Network: r.Network, Limits: w.opts.Limits,
	}
	if spec.Network == sandbox.NetworkAllowlist {
		spec.Allow = w.opts.Allow
	}
	sb, err := backend.Open(ctx, spec)
	if err != nil {
		return &Error{Reason: Machine, Err: err}
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	if err := w.prepare(ctx, r, sb); err != nil {
		return err
	}
	if err := r.start(ctx, sb); err != nil {
		return unreached(err, sb)
	}
	if err := sb.KillAll(ctx); err != nil {
		return &Error{Reason: Machine, Err: err}
	}
	changed, err := changes(ctx, sb)
	if err != nil {
		return &Error{Reason: Machine, Err: err}
	}
	defer changed.Close()
	if err := changed.Layer(ctx, r.filter(add).take); err != nil {
		return err
	}
	return kept.keep(ctx, r, changed)
}

// start runs the command to its end.
func (r *command) start(ctx context.Context, sb sandbox.Sandbox) error {
	limited, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	groups := make([]string, len(r.who.groups))
	for i, group := range r.who.groups {
		groups[i] = strconv.Itoa(group)
	}
	args := append([]string{strconv.Itoa(r.who.uid), strconv.Itoa(r.who.gid), strings.Join(groups, ","), r.Dir}, r.Args...)
	const kept = 4 << 10
	result, err := sandbox.Run(limited, sb, sandbox.Command{Helper: become.Helper, Args: args, Env: r.Env}, sandbox.RunOptions{Merge: true, Head: 1, Tail: kept, Flood: 1 << 30})
	output := strings.ToValidUTF8(string(result.Stdout.Bytes()), "\uFFFD")
	switch {
	case err != nil:
		return &Error{Reason: Machine, Output: output, Err: fmt.Errorf("run the command: %w", err)}
	case result.TimedOut:
		err = fmt.Errorf("it did not end in %v", runTime)
	case result.Flooded:
		err = errors.New("it printed too much")
	case result.Exit.Code != 0:
		err = fmt.Errorf("exit status %d", result.Exit.Code)
		if len(result.Exit.Limits) > 0 {
			err = fmt.Errorf("%w, at the limit of %s", err, strings.Join(result.Exit.Limits, " and "))
		}
	default:
		return nil
	}
	return &Error{Reason: Command, Output: output, Err: err}
}

// unreached completes the error of a command with what it could not reach.
func unreached(err error, sb sandbox.Sandbox) error {
	const most = 5
	var all []string
	hint := ""
	if traffic, ok := sb.(sandbox.Traffic); ok {
		for _, c := range traffic.Connections() {
			if c.Refused != "" {
				hint = allowHint
			}
			text := fmt.Sprintf("%s (%s)", c.Host, cmp.Or(c.Refused, c.Failed))
			if c.Host != "" && c.Refused+c.Failed != "" && !slices.Contains(all, text) && len(all) < most {
				all = append(all, text)
			}
		}
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Reason == Command && len(all) > 0 {
		e.Reason, e.Err = Network, fmt.Errorf("%w; it could not reach %s%s", e.Err, strings.Join(all, ", "), hint)
	}
	return err
}

// changes seals what the sandbox's commands changed.
func changes(ctx context.Context, sb sandbox.Sandbox) (sandbox.Layered, error) {
	unknown := errors.New("this kind of sandbox does not say what commands changed")
	forkable, ok := sb.(sandbox.Snapshotter)
	if !ok {
		return nil, unknown
	}
	snapshot, err := forkable.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	layered, ok := snapshot.(sandbox.Layered)
	if !ok {
		return nil, errors.Join(unknown, snapshot.Close())
	}
	return layered, nil
}

// filter leaves out what the sandbox itself, or a mount, put there.
func (r *command) filter(add adder) *filter {
	f := &filter{
		hidden: []string{"/dev", "/proc", "/.trajgen", scratch, "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"},
		stubs:  map[string]bool{"/etc": true}, add: add,
	}
	for _, m := range r.Mounts {
		f.hidden = append(f.hidden, m.Target)
		for dir := path.Dir(m.Target); dir != "/"; dir = path.Dir(dir) {
			f.stubs[dir] = true
		}
	}
	return f
}

// shown is the name that an entry of a layer is about: also that of a file which it removes.
func shown(entry string) string {
	dir, base := path.Split(path.Clean("/" + entry))
	if base == opaque {
		return path.Clean(dir)
	}
	return path.Join(dir, strings.TrimPrefix(base, ".wh."))
}

// below reports whether a name is that of a directory, or of something in it.
func below(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// mountOf is the target of the innermost mount that an entry belongs to; "" for none.
func (r *command) mountOf(entry string) (target string) {
	for _, m := range r.Mounts {
		if below(shown(entry), m.Target) && len(m.Target) > len(target) {
			target = m.Target
		}
	}
	return target
}

// filter leaves out what is not the command's doing: hidden names, and directories that exist for their sake alone.
type filter struct {
	hidden  []string
	stubs   map[string]bool // directories that the sandbox may have made
	add     adder
	waiting []*tar.Header // stubs that nothing was found in, the outermost first
}

func (f *filter) take(h *tar.Header, content io.Reader) error {
	name := path.Clean("/" + h.Name)
	if slices.ContainsFunc(f.hidden, func(hidden string) bool { return below(shown(name), hidden) }) {
		return nil
	}
	// Only the way to this entry stays.
	f.waiting = slices.DeleteFunc(f.waiting, func(w *tar.Header) bool { return !strings.HasPrefix(name, path.Clean("/"+w.Name)+"/") })
	if h.Typeflag == tar.TypeDir && f.stubs[name] {
		f.waiting = append(f.waiting, h)
		return nil
	}
	for _, w := range f.waiting {
		if err := f.add(w, nil); err != nil {
			return err
		}
	}
	f.waiting = nil
	return f.add(h, content)
}
