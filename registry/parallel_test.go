package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trajgen/pipeline/episode"
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

// counted is a tool that reads or writes and says how often it ran.
func counted(runs *atomic.Int32) registry.Tool {
	return registry.Define(registry.Definition{Name: "count", Toolset: "test",
		Access: func(arguments json.RawMessage) registry.Access {
			var a access
			_ = json.Unmarshal(arguments, &a) // arguments have been validated
			return a.access()
		}}, func(context.Context, *registry.Env, access) (any, error) { return runs.Add(1), nil })
}

// Of identical calls in one turn the first runs, as long as nothing can have changed in between.
func TestIdenticalCalls(t *testing.T) {
	tests := []struct {
		name string
		give []string
		runs int32
		same []string // id of the call that each shares
	}{
		{"reads", []string{`{"r":"a"}`, `{"r":"a"}`, ` { "r" : "a" } `}, 1, []string{"", "0", "0"}},
		{"other reads", []string{`{"r":"a"}`, `{"r":"b"}`, `{"r":"a"}`}, 2, []string{"", "", "0"}},
		{"a write between", []string{`{"r":"a"}`, `{"w":"a"}`, `{"r":"a"}`, `{"r":"a"}`}, 3, []string{"", "", "", "2"}},
		{"a write elsewhere", []string{`{"r":"a"}`, `{"w":"b"}`, `{"r":"a"}`}, 2, []string{"", "", "0"}},
		{"writes", []string{`{"w":"a"}`, `{"w":"a"}`}, 2, []string{"", ""}},
		{"what touches nothing may count", []string{`{}`, `{}`}, 2, []string{"", ""}},
		{"refused", []string{`{"r":1,"w":[]}`, `{"r":1,"w":[]}`}, 0, []string{"", ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var runs atomic.Int32
			counted := counted(&runs)
			counted.Runner = true
			s := session(t, registry.SessionConfig{Hooks: []registry.Hook{{
				Name: "spelling",
				Before: func(_ context.Context, _ *registry.Env, call *registry.Pending) error {
					call.Arguments = []byte(strings.ReplaceAll(string(call.Arguments), `"a"`, `"c"`))
					return nil
				},
			}}}, counted)
			var reqs []registry.Request
			for i, give := range tt.give {
				reqs = append(reqs, registry.Request{ID: fmt.Sprint(i), Index: i, Name: "count", Arguments: give})
			}
			results := s.CallAll(t.Context(), reqs)
			for i, got := range results {
				if got.SameAs != tt.same[i] || got.Result == "" || got.Status == "" || got.Started.IsZero() {
					t.Errorf("call %d: same as %q, want %q: %+v", i, got.SameAs, tt.same[i], got)
				}
				for _, other := range results[:i] {
					if other.ID == got.SameAs && (other.Result != got.Result || string(other.Arguments) != string(got.Arguments) ||
						!slices.Equal(other.Rewritten, got.Rewritten) || !got.Runner) {
						t.Errorf("call %d: result = %s, want %s", i, got.Result, other.Result)
					}
				}
			}
			if runs.Load() != tt.runs || len(s.Trace()) != len(reqs) {
				t.Errorf("ran %d times, want %d; %d in the trace", runs.Load(), tt.runs, len(s.Trace()))
			}
		})
	}
}

// Links that a command of the same turn has made count.
func TestLinksOfTheSameTurn(t *testing.T) {
	box := local(t)
	var runs atomic.Int32
	slow := registry.Define(registry.Definition{Name: "write", Toolset: "test",
		Access: func(arguments json.RawMessage) registry.Access {
			var a access
			_ = json.Unmarshal(arguments, &a) // arguments have been validated
			return a.access()
		}}, func(context.Context, *registry.Env, access) (any, error) {
		if runs.Add(1) > 1 {
			return nil, registry.Failf("together", "another call runs")
		}
		time.Sleep(20 * time.Millisecond)
		runs.Add(-1)
		return none{}, nil
	})
	link := tool("link", func(ctx context.Context, env *registry.Env) (any, error) {
		sb, err := env.Sandbox(ctx)
		if err != nil {
			return nil, err
		}
		_, err = sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"ln", "-s", "a", "b"}}, sandbox.RunOptions{})
		return none{}, err
	})
	s := session(t, registry.SessionConfig{
		Sandbox: func(context.Context) (sandbox.Sandbox, error) { return box, nil },
	}, slow, link)
	for _, got := range s.CallAll(t.Context(), []registry.Request{
		{ID: "0", Name: "link"}, {ID: "1", Index: 1, Name: "write", Arguments: `{"w":"a/x"}`},
		{ID: "2", Index: 2, Name: "write", Arguments: `{"w":"b/x"}`},
		{ID: "3", Index: 3, Name: "write", Arguments: `{"w":"` + box.Layout().Workdir + `/b/x"}`},
	}) {
		if got.Status != episode.CallOK {
			t.Errorf("call %s: %s", got.ID, got.Result)
		}
	}
}

// An interrupt answers every call of the turn, in order.
func TestInterruptedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session(t, registry.SessionConfig{},
			tool("slow", func(ctx context.Context, _ *registry.Env) (any, error) { <-ctx.Done(); return nil, ctx.Err() }))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("interrupted")) })
		var reqs []registry.Request
		for i := range 4 {
			reqs = append(reqs, registry.Request{ID: fmt.Sprint(i), Index: i, Name: "slow"})
		}
		for i, got := range s.CallAll(ctx, reqs) {
			want := "skipped"
			if i == 0 {
				want = "cancelled"
			}
			if got.ID != fmt.Sprint(i) || got.ErrorClass != want || got.Result == "" {
				t.Errorf("call %d: class = %s, want %s: %s", i, got.ErrorClass, want, got.Result)
			}
		}
	})
}
