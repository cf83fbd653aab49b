//go:build linux

package build_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"trajgen/sandbox/images/build"
)

// cached builds a command that uses a cache, and returns what it left in /out. The name makes it a command of its own.
func (p *place) cached(t *testing.T, name, options, command string) (out string) {
	t.Helper()
	text := fmt.Sprintf("FROM base\nENV NAME=%s\nRUN --mount=type=cache,target=/c%s %s\n", name, options, command)
	image, err := p.builder.Build(context.Background(), source(t, text, nil))
	if err != nil {
		t.Error(err)
		return ""
	}
	for line := range strings.Lines(p.files(t, image)) {
		if _, found, ok := strings.Cut(line, " /out "); ok {
			out = strings.TrimSpace(found)
		}
	}
	return out
}

// TestCachesOfManyRunners has runners add to caches at once. Of those that are alone, none misses what another one has left.
func TestCachesOfManyRunners(t *testing.T) {
	dir := t.TempDir()
	first := newPlace(t, dir, nil)
	var all sync.WaitGroup
	const runners, each = 3, 5 // more than the layers that a cache has
	for i := range runners {
		p := newPlace(t, dir, nil)
		all.Go(func() {
			for j := range each {
				name := fmt.Sprintf("%d-%d", i, j)
				p.cached(t, name, ",sharing=locked", "echo x >> /c/count && touch /c/$NAME")
				p.cached(t, name, ",id=shared", "touch /c/$NAME")
			}
		})
	}
	all.Wait()
	if got, want := first.cached(t, "count", ",sharing=locked", "cat /c/count | tr -d '\\n' > /out"), fmt.Sprintf("%q", strings.Repeat("x", runners*each)); got != want {
		t.Errorf("commands that were alone left %s, want %s", got, want)
	}
	for _, options := range []string{",sharing=locked", ",id=shared"} {
		if got, want := first.cached(t, "files", options, "set -- /c/*-*; echo $# > /out"), fmt.Sprintf("%q", fmt.Sprintln(runners*each)); got != want {
			t.Errorf("with %s, there are %s files, want %s", options, got, want)
		}
	}
}

func TestCacheOfFailedCommand(t *testing.T) {
	p := newPlace(t, t.TempDir(), nil)
	p.cached(t, "first", "", "touch /c/kept")
	if _, err := p.builder.Build(t.Context(), source(t, "FROM base\nRUN --mount=type=cache,target=/c,sharing=locked rm /c/kept; touch /c/half; exit 1\n", nil)); err == nil {
		t.Error("the command did not fail")
	}
	if got := p.cached(t, "second", ",sharing=locked", "ls /c > /out"); got != `"kept\n"` {
		t.Errorf("the cache holds %s, want what the command before left", got)
	}
	if _, err := p.builder.Build(t.Context(), source(t, "FROM base\nRUN --mount=type=cache,target=/c,sharing=locked --mount=type=tmpfs,target=/c true\n", nil)); err == nil || !strings.Contains(err.Error(), "two mounts at /c") {
		t.Errorf("two mounts at one place: %v", err)
	}
}

// TestBoundedCache begins anew with a cache whose layers had to go.
func TestBoundedCache(t *testing.T) {
	dir := t.TempDir()
	p := newPlace(t, dir, nil)
	p.cached(t, "first", "", "cat /usr/bin/bash > /c/big")
	p.close()
	q := newPlace(t, dir, func(o *build.Options) { o.MaxBytes = 1 })
	q.cached(t, "second", ",id=other", "true")
	if got := q.cached(t, "third", "", "find /c > /out"); got != `"/c\n"` {
		t.Errorf("the cache holds %s, want nothing", got)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "store", "locks", "*")); err != nil || len(left) > 0 {
		t.Errorf("locks are left: %v (%v)", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "store", "caches")); err != nil {
		t.Error(err)
	}
}
