package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trajgen/registry"
	"trajgen/sandbox"
)

type access struct {
	Read  string `json:"r,omitempty"`
	Write string `json:"w,omitempty"`
}

func (a access) access() (all registry.Access) {
	if a.Read != "" {
		all.Reads = []string{a.Read}
	}
	if a.Write != "" {
		all.Writes = []string{a.Write}
	}
	return all
}

// touchers make three tools whose calls take a second: touch says what it touches, alone says nothing, broken panics.
func touchers(running, most *atomic.Int32) []registry.Tool {
	run := func(context.Context, *registry.Env, access) (any, error) {
		n := running.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		time.Sleep(time.Second)
		running.Add(-1)
		return n, nil
	}
	touch := registry.Define(registry.Definition{Name: "touch", Toolset: "test",
		Access: func(arguments json.RawMessage) registry.Access {
			var a access
			if err := json.Unmarshal(arguments, &a); err != nil {
				panic(err)
			}
			return a.access()
		}}, run)
	broken := registry.Define(registry.Definition{Name: "broken", Toolset: "test",
		Access: func(json.RawMessage) registry.Access { panic("bug") }}, run)
	return []registry.Tool{touch, broken, registry.Define(registry.Definition{Name: "alone", Toolset: "test"}, run)}
}

// A call takes a second, so the time of a turn says how many calls had to wait for each other.
func TestCallAllConflicts(t *testing.T) {
	tests := []struct {
		name    string
		workdir string // of a sandbox that is open already
		give    []string
		seconds int
	}{
		{"reads", "", []string{`{"r":"a"}`, `{"r":"a"}`, `{"r":"a/b"}`}, 1},
		{"read and write", "", []string{`{"r":"a"}`, `{"w":"a"}`}, 2},
		{"other files", "", []string{`{"w":"a"}`, `{"w":"b"}`, `{"r":"c"}`}, 1},
		{"writes", "", []string{`{"w":"a"}`, `{"w":"a"}`, `{"w":"a"}`}, 3},
		{"spellings", "", []string{`{"w":"./x/../a"}`, `{"w":"/workspace/a"}`}, 2},
		{"open sandbox", "/home/me", []string{`{"w":"a"}`, `{"w":"/home/me/a"}`, `{"w":"/workspace/a"}`}, 2},
		{"home", "/home/me", []string{`{"w":"~/a"}`, `{"w":"/root/a"}`}, 2},
		{"home of another", "", []string{`{"r":"~x/a"}`, `{"r":"b"}`}, 2},
		{"link", "/home/me", []string{`{"w":"/link/a"}`, `{"r":"/target/a"}`, `{"r":"/b"}`}, 2},
		{"new files", "/home/me", []string{`{"w":"/new/a"}`, `{"w":"/new/b"}`, `{"r":"/new/a"}`}, 2},
		{"parent", "", []string{`{"w":"a/b/c"}`, `{"r":"a"}`}, 2},
		{"root", "", []string{`{"w":"/"}`, `{"r":"a"}`}, 2},
		{"prefix of a name", "", []string{`{"w":"a"}`, `{"w":"ab"}`}, 1},
		{"nothing", "", []string{`{}`, `{}`, `{}`}, 1},
		{"alone", "", []string{`{"r":"a"}`, `alone`, `{"r":"a"}`, `{"r":"b"}`}, 3},
		{"broken access", "", []string{`{"r":"a"}`, `broken`}, 2},
		{"chain", "", []string{`{"w":"a"}`, `{"w":"b"}`, `{"r":"a","w":"b"}`, `{"r":"b"}`}, 3},
		{"more than fit", "", []string{`{}`, `{}`, `{}`, `{}`, `{}`, `{}`, `{}`, `{}`, `{}`}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var running, most atomic.Int32
				o := &opener{box: &box{layout: sandbox.Layout{Workdir: tt.workdir, Home: "/root"}}}
				s := session(t, registry.SessionConfig{Sandbox: o.open}, append(touchers(&running, &most),
					tool("open", func(ctx context.Context, env *registry.Env) (any, error) {
						_, err := env.Sandbox(ctx)
						return none{}, err
					}))...)
				if tt.workdir != "" {
					call(t, s, "open", "")
				}
				var reqs []registry.Request
				for i, give := range tt.give {
					req := registry.Request{ID: fmt.Sprint(i), Index: i, Name: "touch", Arguments: give}
					if give[0] != '{' {
						req.Name, req.Arguments = give, ""
					}
					reqs = append(reqs, req)
				}
				started := time.Now()
				for i, got := range s.CallAll(t.Context(), reqs) {
					if got.Index != i || got.Status != "ok" {
						t.Errorf("result %d is %d: %s %s", i, got.Index, got.Status, got.Result)
					}
				}
				if took := time.Since(started); took != time.Duration(tt.seconds)*time.Second {
					t.Errorf("took %s, want %d s", took, tt.seconds)
				}
				if most.Load() > 8 {
					t.Errorf("%d calls at once", most.Load())
				}
			})
		})
	}
}
