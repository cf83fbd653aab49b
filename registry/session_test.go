package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"

	"github.com/google/go-cmp/cmp"
)

func TestSandboxTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &opener{box: &box{start: time.Second, wait: 2 * time.Second, stat: 4 * time.Second}}
		s := session(t, registry.SessionConfig{Sandbox: o.open},
			tool("run", func(ctx context.Context, env *registry.Env) (any, error) {
				b, err := env.Sandbox(ctx)
				if err != nil {
					return nil, err
				}
				p, err := b.Start(ctx, sandbox.Command{})
				if err != nil {
					return nil, err
				}
				var both sync.WaitGroup // 2 s and 4 s side by side are 4 s
				both.Go(func() { p.Wait(ctx) })
				both.Go(func() { b.Files().Stat(ctx, "a") })
				both.Wait()
				time.Sleep(8 * time.Second)
				return none{}, nil
			}))
		for range 2 {
			got := call(t, s, "run", "")
			if got.SandboxTime != 5*time.Second || got.Elapsed != 13*time.Second {
				t.Errorf("sandbox time = %s, elapsed = %s", got.SandboxTime, got.Elapsed)
			}
		}
		if n := o.calls.Load(); n != 1 {
			t.Errorf("the sandbox was opened %d times", n)
		}
	})
}

// A process that one call starts and another waits for is counted for the one that waits.
func TestSandboxTimeAcrossCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &opener{box: &box{wait: 3 * time.Second}}
		var p sandbox.Process
		s := session(t, registry.SessionConfig{Sandbox: o.open},
			tool("start", func(ctx context.Context, env *registry.Env) (any, error) {
				b, err := env.Sandbox(ctx)
				if err != nil {
					return nil, err
				}
				p, err = b.Start(ctx, sandbox.Command{})
				return none{}, err
			}),
			tool("wait", func(ctx context.Context, env *registry.Env) (any, error) {
				defer env.InSandbox()()
				_, err := p.Wait(ctx)
				return none{}, err
			}))
		if got := call(t, s, "start", ""); got.SandboxTime != 0 {
			t.Errorf("start: sandbox time = %s", got.SandboxTime)
		}
		if got := call(t, s, "wait", ""); got.SandboxTime != 3*time.Second {
			t.Errorf("wait: sandbox time = %s", got.SandboxTime)
		}
	})
}

func TestSandboxFaultsCannotBeHidden(t *testing.T) {
	hides := tool("hides", func(ctx context.Context, env *registry.Env) (any, error) {
		if b, err := env.Sandbox(ctx); err == nil {
			_, _ = b.Start(ctx, sandbox.Command{})
		}
		return none{}, nil
	})
	tests := []struct {
		open  *opener
		class string
	}{
		{&opener{box: &box{err: fmt.Errorf("start: %w", sandbox.ErrGone)}}, "gone"},
		{&opener{err: errors.New("no image")}, "open"},
	}
	for _, tt := range tests {
		s := session(t, registry.SessionConfig{Sandbox: tt.open.open}, hides)
		call(t, s, "hides", "")
		if f := s.Fault(); f == nil || f.Outcome != episode.SandboxError || f.Class != tt.class {
			t.Errorf("fault = %v, want class %s", f, tt.class)
		}
	}
}

func TestState(t *testing.T) {
	type counter struct{ n atomic.Int32 }
	var made atomic.Int32
	count := toolOf(registry.Definition{Name: "count", Toolset: "test",
		Access: func(json.RawMessage) registry.Access { return registry.Access{} }},
		func(_ context.Context, env *registry.Env) (any, error) {
			c := registry.State(env.Session, "counter", func() *counter { made.Add(1); return &counter{} })
			return c.n.Add(1), nil
		})
	s := session(t, registry.SessionConfig{}, count)
	s.CallAll(t.Context(), make20("count"))
	if got := call(t, s, "count", ""); got.Result != "21" || made.Load() != 1 {
		t.Errorf("count = %s, made %d times", got.Result, made.Load())
	}
}

func make20(name string) []registry.Request {
	reqs := make([]registry.Request, 20)
	for i := range reqs {
		reqs[i] = registry.Request{ID: fmt.Sprint("call_", i), Index: i, Name: name, Arguments: "{}"}
	}
	return reqs
}

func TestClose(t *testing.T) {
	var order []string
	s := session(t, registry.SessionConfig{}, tool("x", func(_ context.Context, env *registry.Env) (any, error) {
		env.Session.OnClose(func() { order = append(order, "first") })
		env.Session.OnClose(func() { panic("second") })
		env.Session.OnClose(func() { order = append(order, "third") })
		return none{}, nil
	}))
	call(t, s, "x", "")
	s.Close()
	s.Close()
	if diff := cmp.Diff([]string{"third", "first"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if got := call(t, s, "x", ""); got.ErrorClass != "closed" {
		t.Errorf("class = %s, want closed", got.ErrorClass)
	}
}

func TestTraceOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := func(json.RawMessage) registry.Access { return registry.Access{} }
		type args struct {
			Seconds int `json:"seconds"`
		}
		sleep := registry.Define(registry.Definition{Name: "sleep", Toolset: "test", Access: free},
			func(_ context.Context, _ *registry.Env, a args) (any, error) {
				time.Sleep(time.Duration(a.Seconds) * time.Second)
				return a, nil
			})
		nest := registry.Define(registry.Definition{Name: "nest", Toolset: "test", Access: free},
			func(ctx context.Context, env *registry.Env, a args) (any, error) {
				for i := range 2 {
					time.Sleep(time.Second)
					env.Session.Call(ctx, registry.Request{ID: fmt.Sprintf("%s.%d", env.CallID, i), Parent: env.CallID,
						Turn: env.Turn, Index: i, Name: "sleep", Arguments: fmt.Sprintf(`{"seconds":%d}`, a.Seconds)})
				}
				return a, nil
			})
		s := session(t, registry.SessionConfig{}, sleep, nest)
		got := s.CallAll(t.Context(), []registry.Request{
			{ID: "a", Name: "nest", Arguments: `{"seconds":5}`},
			{ID: "b", Name: "sleep", Arguments: `{"seconds":3}`, Index: 1},
			{ID: "c", Name: "nest", Arguments: `{"seconds":1}`, Index: 2},
			{ID: "d", Name: "nowhere", Index: 3},
		})
		call(t, s, "sleep", `{"seconds":0}`)
		ids := func(calls []episode.ToolCall) string {
			var all []string
			for _, c := range calls {
				all = append(all, c.ID)
			}
			return strings.Join(all, " ")
		}
		if got := ids(got); got != "a b c d" {
			t.Errorf("results = %s", got)
		}
		if got := ids(s.Trace()); got != "a a.0 a.1 b c c.0 c.1 d call_1" {
			t.Errorf("trace = %s", got)
		}
	})
}
