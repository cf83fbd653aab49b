package registry

import (
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

// CallAll runs the calls of one turn and returns what came of them in call order. Calls run side by side where their
// Access says that they cannot conflict; otherwise the later one waits for the earlier, so that the results are those
// of running them one by one.
func (s *Session) CallAll(ctx context.Context, reqs []Request) []episode.ToolCall {
	results := make([]episode.ToolCall, len(reqs))
	places := make([]*record, len(reqs))
	ready := make([]*prepared, len(reqs))
	for i, req := range reqs {
		places[i] = s.reserve(req)
		ready[i] = s.prepare(req)
	}
	paths := s.accesses(ctx, ready)
	done := make([]chan struct{}, len(reqs))
	slots := make(chan struct{}, maxParallel)
	var all sync.WaitGroup
	for i := range reqs {
		done[i] = make(chan struct{})
		var before []chan struct{}
		for j := range i {
			if paths[i].conflicts(paths[j]) {
				before = append(before, done[j])
			}
		}
		all.Go(func() {
			defer close(done[i])
			for _, earlier := range before {
				<-earlier
			}
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i] = s.run(ctx, ready[i], places[i])
		})
	}
	all.Wait()
	return results
}

// touched is an Access with its paths in one spelling.
type touched struct {
	alone         bool
	reads, writes []string
}

// accesses brings the paths of all calls into one spelling. Before the sandbox is open that is their text, with the
// usual working directory.
func (s *Session) accesses(ctx context.Context, ready []*prepared) []touched {
	workdir, home := "/workspace", ""
	box := s.opened()
	if box != nil {
		layout := box.Layout()
		workdir, home = layout.Workdir, layout.Home
	}
	all := make([]touched, len(ready))
	several, writes := 0, false
	for i, p := range ready {
		if p.refused != nil {
			continue // runs no tool
		}
		if p.tool.Access == nil {
			all[i].alone = true
			continue
		}
		access, ok := ask(p.tool.Access, p.args.given)
		all[i].alone = !ok
		all[i].reads = all[i].clean(access.Reads, workdir, home)
		all[i].writes = all[i].clean(access.Writes, workdir, home)
		several++
		writes = writes || len(access.Writes) > 0
	}
	if box != nil && several > 1 && writes {
		for i := range all {
			all[i].follow(ctx, box.Files())
		}
	}
	return all
}

// follow replaces the paths by where their links lead, as two names of a file would look like two files.
func (t *touched) follow(ctx context.Context, files sandbox.Files) {
	for _, list := range [][]string{t.reads, t.writes} {
		for i, each := range list {
			target, ok := realPath(ctx, files, each)
			if !ok {
				t.alone = true
				return
			}
			list[i] = target
		}
	}
}

// realPath resolves the part of a path that exists.
func realPath(ctx context.Context, files sandbox.Files, name string) (string, bool) {
	rest := ""
	for {
		info, err := files.Stat(ctx, name)
		if err == nil {
			return path.Join(info.Path, rest), true
		}
		if !errors.Is(err, fs.ErrNotExist) || name == "/" {
			return "", false
		}
		name, rest = path.Dir(name), path.Join(path.Base(name), rest)
	}
}

// ask runs a tool's own code, so it survives its panic: the call then runs alone.
func ask(access func(json.RawMessage) Access, arguments json.RawMessage) (a Access, ok bool) {
	defer func() {
		if recover() != nil {
			a, ok = Access{}, false
		}
	}()
	return access(arguments), true
}

func (t *touched) clean(paths []string, workdir, home string) []string {
	var all []string
	for _, each := range paths {
		switch {
		case strings.HasPrefix(each, "~"):
			rest, own := strings.CutPrefix(each+"/", "~/")
			if !own || home == "" {
				t.alone = true // a home that nobody here knows
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

// overlap tells whether a path of one list is, holds or lies in a path of the other.
func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool {
		return slices.ContainsFunc(b, func(y string) bool { return x == y || holds(x, y) || holds(y, x) })
	})
}

func holds(dir, file string) bool {
	return strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")
}
