package tools

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/page"
)

// fileState is what the file tools of an episode know of files: their state when the model last saw them, so that a write can
// report changes since, and the pages that the model has already.
type fileState struct {
	mu    sync.Mutex // guards what follows
	seen  map[string]*sighting
	pages repeats[pageKey]
	tries map[string]int // failed patches of a file in a row
}

// Bounds of what is remembered.
const (
	maxSeen  = 4096
	maxPages = 1000
)

// stamp identifies a state of a file: by its content if that was read, else by size and time.
type stamp struct {
	size   int64
	sum    uint32
	summed bool
	time   time.Time
}

func (s stamp) same(o stamp) bool {
	if s.size != o.size {
		return false
	}
	if s.summed && o.summed {
		return s.sum == o.sum
	}
	return s.time.Equal(o.time)
}

func stampOf(data []byte, info sandbox.Info) stamp {
	return stamp{size: int64(len(data)), sum: page.Sum(data), summed: true, time: info.ModTime}
}

// sighting is a file as the model last read or wrote it.
type sighting struct {
	stamp
	total  int
	ranges [][2]int // lines that it has read, first and last
	wrote  bool     // it wrote all of it
}

// pageKey identifies a read that the model can repeat. A file can have more of them than paths.
type pageKey struct {
	name          string
	offset, limit int
}

// repeats are the requests that the model may make again.
type repeats[K comparable] map[K]asked

// asked is what a request returned.
type asked struct {
	stamp        // of what was returned
	by    string // the call that returned it
	since int    // the turn of that call
	turn  int    // when it was last requested
	times int    // how many requests in a row returned nothing new
}

// again records a request, and returns how many in a row gave nothing new: what was returned is still in the conversation as a
// whole, only the named tools were called since, and it has not changed. Calls of one turn do not count, as they may run in any
// order.
func (r repeats[K]) again(env *registry.Env, key K, now stamp, meanwhile ...string) int {
	before, ok := r[key]
	switch {
	case ok && before.turn == env.Turn:
		return 0
	case ok && before.same(now) && env.Session.Shows(before.since, before.by) && !env.Session.CalledBetween(before.turn, env.Turn, meanwhile...):
		before.turn, before.times = env.Turn, before.times+1
		r[key] = before
		return before.times
	case len(r) >= maxPages:
		clear(r)
	}
	r[key] = asked{stamp: now, by: env.CallID, since: env.Turn, turn: env.Turn}
	return 0
}

func filesOf(s *registry.Session) *fileState {
	return registry.State(s, "tools.files", func() *fileState {
		return &fileState{seen: map[string]*sighting{}, pages: repeats[pageKey]{}, tries: map[string]int{}}
	})
}

// sight returns the sighting of a file, which it makes if there is none.
func (f *fileState) sight(name string) *sighting {
	if f.seen[name] == nil {
		if len(f.seen) >= maxSeen {
			clear(f.seen)
		}
		f.seen[name] = &sighting{}
	}
	return f.seen[name]
}

// read records that the model got lines of a file.
func (f *fileState) read(name string, now stamp, first, lines, total int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.sight(name)
	if !at.same(now) {
		*at = sighting{}
	}
	at.stamp, at.total = now, total
	if lines > 0 {
		at.ranges = join(at.ranges, [2]int{first, first + lines - 1})
	}
}

// maxRanges bounds the remembered line ranges of a file.
const maxRanges = 64

// join adds a range of lines to disjoint others.
func join(ranges [][2]int, add [2]int) [][2]int {
	var all [][2]int
	for _, r := range ranges {
		if r[1]+1 < add[0] || add[1]+1 < r[0] {
			all = append(all, r)
			continue
		}
		add = [2]int{min(r[0], add[0]), max(r[1], add[1])}
	}
	if len(all) >= maxRanges {
		all = all[1:]
	}
	return append(all, add)
}

// whole reports whether the model has seen all of the file.
func (s *sighting) whole() bool {
	return s.wrote || s.total == 0 || len(s.ranges) == 1 && s.ranges[0][0] <= 1 && s.ranges[0][1] >= s.total
}

// wrote records that the model wrote a file, and its new content. For an edit, whole is false: parts of the file that the model
// has not seen stay unseen.
func (f *fileState) wrote(name string, data []byte, whole bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.sight(name)
	now := stamp{size: int64(len(data)), sum: page.Sum(data), summed: true}
	*at = sighting{stamp: now, wrote: whole || at.whole(), total: at.total, ranges: at.ranges}
	f.forget(name)
	delete(f.tries, name)
}

// removed records that a file no longer exists.
func (f *fileState) removed(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.seen, name)
	f.forget(name)
}

// forget drops the pages of a file.
func (f *fileState) forget(name string) {
	maps.DeleteFunc(f.pages, func(key pageKey, _ asked) bool { return key.name == name })
}

// warning returns what the model may not know of a file that it is about to replace or edit, or "" when it knows the file or
// has never read it.
func (f *fileState) warning(name string, now stamp, replace bool) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.seen[name]
	switch {
	case at == nil:
		return ""
	case !at.same(now):
		return "the file had changed since you last read or wrote it, other than by the file tools; read it again to see " +
			"what it holds"
	case replace && !at.whole():
		return fmt.Sprintf("you had read only a part of the file that this replaces: %s of %d lines", rangesText(at.ranges), at.total)
	}
	return ""
}

func rangesText(ranges [][2]int) string {
	var texts []string
	for _, r := range ranges[:min(len(ranges), 3)] {
		texts = append(texts, fmt.Sprintf("%d-%d", r[0], r[1]))
	}
	if len(ranges) > 3 {
		texts = append(texts, "...")
	}
	return cmp.Or(strings.Join(texts, ", "), "none")
}

// large reports whether a file is known to be too large to transfer.
func (f *fileState) large(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.seen[name]
	return at != nil && at.size > carried
}

// repeated records a request for a page. See repeats.again.
func (f *fileState) repeated(env *registry.Env, key pageKey, now stamp) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pages.again(env, key, now, "read_file", "search_files")
}

// failed adds advice to the failure of a patch, more of it with each failure.
func (f *fileState) failed(name string, err error) error {
	failure, ok := errors.AsType[*registry.Failure](err)
	if !ok || failure.Extra == nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.tries) >= maxSeen {
		clear(f.tries)
	}
	f.tries[name]++
	switch n := f.tries[name]; {
	case n == 2:
		failure.Extra["_hint"] = "the second patch of this file in a row that fails: read the place with read_file first, and copy it exactly"
	case n > 2:
		failure.Extra["_hint"] = fmt.Sprintf("%d patches of this file in a row have failed: your picture of it is wrong; read all of "+
			"it, and make a smaller change, or write it anew with write_file", n)
	}
	return failure
}
