package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"trajgen/registry"
)

// Registry is what a registry of so many tools costs.
type Registry struct {
	Tools      int     `json:"tools"`
	DispatchUS float64 `json:"dispatch_us"`     // a call of a tool that does nothing, with an argument to check
	SelectUS   float64 `json:"select_us"`       // of what was selected before
	FirstUS    float64 `json:"first_select_us"` // of what was not: the schemas are made
}

type nothing struct {
	Path string `json:"path" doc:"A path."`
	Many int    `json:"many,omitempty" doc:"How many." default:"3"`
}

// MeasureRegistries asks registries of 10, 100 and 1,000 tools.
func MeasureRegistries(ctx context.Context) ([]Registry, error) {
	var all []Registry
	for _, n := range []int{10, 100, 1000} {
		one, err := measureRegistry(ctx, n)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func measureRegistry(ctx context.Context, n int) (r Registry, err error) {
	var tools []registry.Tool
	for i := range n {
		tools = append(tools, registry.Define(registry.Definition{
			Name: fmt.Sprintf("nothing_%d", i), Toolset: "bench", Description: "Does nothing, and says so.", NoSandbox: true,
		}, func(context.Context, *registry.Env, nothing) (any, error) {
			return json.RawMessage(`{"done":true}`), nil
		}))
	}
	reg, err := registry.New(tools...)
	if err != nil {
		return r, err
	}
	r.Tools = n
	enabled := []string{"bench"}
	began := time.Now()
	toolset, err := reg.Select(ctx, enabled, nil)
	if err != nil {
		return r, err
	}
	r.FirstUS = float64(time.Since(began)) / float64(time.Microsecond)
	if r.SelectUS, err = each(10_000, func(int) error {
		_, err := reg.Select(ctx, enabled, nil)
		return err
	}); err != nil {
		return r, err
	}
	const perEpisode = 100
	var session *registry.Session
	r.DispatchUS, err = each(20_000, func(i int) error {
		if i%perEpisode == 0 {
			if session != nil {
				session.Close()
			}
			session = toolset.Session(registry.SessionConfig{Now: time.Now, Rand: rand.New(rand.NewPCG(1, uint64(i)))})
		}
		call := session.Call(ctx, registry.Request{ID: fmt.Sprint(i), Turn: i % perEpisode, Name: fmt.Sprintf("nothing_%d", i%n), Arguments: `{"path":"a","many":7}`})
		if call.Status != "ok" {
			return fmt.Errorf("call of %s: %s: %s", call.Name, call.Status, call.Result)
		}
		return nil
	})
	session.Close()
	return r, err
}

// each is the time of one f, in microseconds.
func each(n int, f func(i int) error) (float64, error) {
	began := time.Now()
	for i := range n {
		if err := f(i); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(began)) / float64(time.Microsecond) / float64(n), nil
}
