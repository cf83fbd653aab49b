package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// maxParallel is how many calls of one turn run at the same time.
const maxParallel = 8

// CallAll runs the calls of one turn and returns their results in call order. Calls run in parallel if their Access says that they
// cannot conflict; otherwise the later one waits for the earlier, so that the results are those of running them one by one. Of two
// identical calls that only read, one runs. They run on the agent's clock, and wait on none for what other episodes have.
func (s *Session) CallAll(ctx context.Context, reqs []Request) []episode.ToolCall {
	calls := make([]*prepared, len(reqs))
	for i, req := range reqs {
		calls[i] = s.prepare(req)
	}
	all := touches(calls)
	late := false
	limited := func(step func(ctx context.Context)) {
		ctx, stop := s.cfg.Clock(ctx)
		defer stop()
		step(ctx)
		late = ctx.Err() != nil
	}
	for from := 0; from < len(calls); {
		to := from + 1
		for !all[from].alone && to < len(calls) && !all[to].alone {
			to++
		}
		if !late {
			s.wait(ctx, calls[from:to])
		}
		run := func(ctx context.Context) { s.together(ctx, calls[from:to], all[from:to]) }
		if tool := calls[from].tool; tool != nil && tool.OffClock && all[from].alone {
			run(ctx)
		} else {
			limited(run)
		}
		from = to
	}
	if len(calls) > 0 {
		limited(func(ctx context.Context) { s.endTurn(ctx, calls...) })
	}
	ended := make([]episode.ToolCall, len(calls))
	for i, p := range calls {
		ended[i] = p.call
	}
	return ended
}

// together runs consecutive calls none of which has to run alone. It resolves their paths only now, as an earlier command may have
// made links.
func (s *Session) together(ctx context.Context, calls []*prepared, paths []touched) {
	if len(calls) == 1 {
		calls[0].run(ctx)
		return
	}
	s.locate(ctx, paths)
	done := make([]chan struct{}, len(calls))
	for i, p := range calls {
		done[i] = make(chan struct{})
		if j := twin(calls[:i+1], paths); j >= 0 {
			p.first = calls[j]
		}
	}
	slots := make(chan struct{}, maxParallel)
	var all sync.WaitGroup
	for i, p := range calls {
		all.Go(func() {
			defer close(done[i])
			for j := range i {
				if p.first == calls[j] || paths[i].conflicts(paths[j]) {
					<-done[j]
				}
			}
			if p.first != nil {
				p.share()
				return
			}
			slots <- struct{}{}
			defer func() { <-slots }()
			p.run(ctx)
		})
	}
	all.Wait()
}

// twin finds the first call identical to the last one that only reads, without a write in between, or -1.
func twin(calls []*prepared, paths []touched) int {
	last := len(calls) - 1
	p := calls[last]
	if p.refused != nil || len(paths[last].reads) == 0 || len(paths[last].writes) > 0 {
		return -1 // a call without files may still change the state of its tool
	}
	found := -1
	for i := last - 1; i >= 0 && !paths[last].conflicts(paths[i]); i-- {
		if calls[i].tool == p.tool && calls[i].refused == nil && bytes.Equal(calls[i].args.given, p.args.given) {
			found = i
		}
	}
	return found
}

// share gives a call the result of its twin.
func (p *prepared) share() {
	p.call.Started, p.call.SameAs = p.session.cfg.Now(), p.first.call.ID
	copyResult(&p.call, &p.first.call)
	p.failure = p.first.failure
	p.session.finish(p)
}

// copyResult copies what became of a call.
func copyResult(call, from *episode.ToolCall) {
	call.Status, call.ErrorClass, call.Result = from.Status, from.ErrorClass, from.Result
	call.Truncated, call.ResultBytes, call.Stored = from.Truncated, from.ResultBytes, from.Stored
	call.Untrusted, call.Masked, call.Verdict = from.Untrusted, from.Masked, from.Verdict
	call.ExitCode, call.Source, call.Images = from.ExitCode, from.Source, from.Images
	call.Runner, call.Arguments, call.Rewritten, call.Planted = from.Runner, from.Arguments, from.Rewritten, from.Planted
}

// touched is an Access with its paths in one spelling.
type touched struct {
	alone         bool
	reads, writes []string
}

// touches asks the tools which paths the calls touch, in the spelling of the model.
func touches(calls []*prepared) []touched {
	all := make([]touched, len(calls))
	for i, p := range calls {
		switch {
		case p.refused != nil: // runs no tool
		case p.tool.Access == nil:
			all[i].alone = true
		default:
			access, ok := ask(p.tool.Access, p.args.given)
			all[i] = touched{alone: !ok, reads: access.Reads, writes: access.Writes}
		}
	}
	return all
}

// locate brings the paths of all calls into one spelling. Before the sandbox is open it goes by their text and the usual working
// directory.
func (s *Session) locate(ctx context.Context, all []touched) {
	workdir, home := "/workspace", ""
	box := s.opened()
	if box != nil {
		layout := box.Layout()
		workdir, home = layout.Workdir, layout.Home
	}
	several, writes := 0, false
	for i := range all {
		t := &all[i]
		t.reads, t.writes = t.clean(t.reads, workdir, home), t.clean(t.writes, workdir, home)
		if len(t.reads)+len(t.writes) > 0 {
			several++
		}
		writes = writes || len(t.writes) > 0
	}
	if box == nil || several < 2 || !writes {
		return
	}
	links := links{files: box.Files(), known: map[string]string{}}
	for i := range all {
		all[i].follow(ctx, links)
	}
}

// follow resolves the links in the paths, as two names of a file would look like two files.
func (t *touched) follow(ctx context.Context, links links) {
	for _, list := range [][]string{t.reads, t.writes} {
		for i, each := range list {
			target, ok := links.resolve(ctx, each)
			if !ok {
				t.alone = true
				return
			}
			list[i] = target
		}
	}
}

// links resolves paths, each directory once.
type links struct {
	files sandbox.Files
	known map[string]string // path → resolved path
}

// resolve resolves the part of a path that exists.
func (l links) resolve(ctx context.Context, name string) (string, bool) {
	if real, ok := l.known[name]; ok {
		return real, true
	}
	dir, base := path.Dir(name), path.Base(name)
	switch info, err := l.files.Stat(ctx, name); {
	case err == nil:
		l.known[name] = info.Path
	case !errors.Is(err, fs.ErrNotExist) || name == "/" || l.dangles(ctx, dir, base):
		return "", false
	default:
		real, ok := l.resolve(ctx, dir)
		if !ok {
			return "", false
		}
		l.known[name] = path.Join(real, base)
	}
	return l.known[name], true
}

// dangles reports whether a path is a link to a missing file, which a write would create.
func (l links) dangles(ctx context.Context, dir, base string) bool {
	list, err := l.files.List(ctx, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return true // unknown, so assume it
	}
	return slices.ContainsFunc(list, func(info sandbox.Info) bool { return info.Name == base })
}

// ask asks what a call touches. When the tool's Access panics, the call runs alone.
func ask(access func(json.RawMessage) Access, arguments json.RawMessage) (a Access, ok bool) {
	err := attempt(func() error { a = access(arguments); return nil })
	return a, err == nil
}

func (t *touched) clean(paths []string, workdir, home string) []string {
	var all []string
	for _, each := range paths {
		switch {
		case strings.HasPrefix(each, "~"):
			rest, own := strings.CutPrefix(each+"/", "~/")
			if !own || home == "" {
				t.alone = true // the home directory is unknown here
				continue
			}
			each = path.Join(home, rest)
		case !path.IsAbs(each):
			each = path.Join(workdir, each)
		}
		all = append(all, path.Clean(each))
	}
	return all
}

func (t touched) conflicts(o touched) bool {
	return t.alone || o.alone || overlap(t.writes, o.writes) || overlap(t.writes, o.reads) || overlap(t.reads, o.writes)
}

// overlap reports whether a path of one list equals, contains or lies in a path of the other.
func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool {
		return slices.ContainsFunc(b, func(y string) bool { return holds(x, y) || holds(y, x) })
	})
}

// holds reports whether a file is a directory itself or lies in it.
func holds(dir, file string) bool {
	return strings.HasPrefix(file+"/", strings.TrimSuffix(dir, "/")+"/")
}
