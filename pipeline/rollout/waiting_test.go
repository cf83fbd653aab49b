package rollout_test

import (
	"context"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
)

// TestWaitingTakesNoTime holds that calls wait for what other episodes have for longer than they and their episode may last, also
// behind another call of the turn and behind the bridge, and that the turn says so.
func TestWaitingTakesNoTime(t *testing.T) {
	const limit, waits = 200 * time.Millisecond, 300 * time.Millisecond
	nothing := func(context.Context, *registry.Env, struct{}) (any, error) { return "ok", nil }
	reg, err := registry.New(
		registry.Define(registry.Definition{
			Name: "scarce", Toolset: "file", Description: "Needs a place.", Timeout: limit,
			Wait: func(context.Context, *registry.Session) { time.Sleep(waits) },
		}, nothing),
		registry.Define(registry.Definition{Name: "plain", Toolset: "file", Description: "Needs none."}, nothing),
	)
	if err != nil {
		t.Fatal(err)
	}
	scarce := episode.Call{ID: "s", Name: "scarce", Arguments: "{}"}
	bridged := episode.Call{ID: "b", Name: "tool_call", Arguments: `{"name":"scarce","arguments":{}}`}
	for name, tt := range map[string]struct {
		calls  []episode.Call
		bridge string
		waited time.Duration
	}{
		"none":             {[]episode.Call{{ID: "p", Name: "plain", Arguments: "{}"}}, "off", 0},
		"one":              {[]episode.Call{scarce}, "off", waits},
		"behind another":   {[]episode.Call{{ID: "p", Name: "plain", Arguments: "{}"}, scarce, scarce}, "off", 2 * waits},
		"through a search": {[]episode.Call{bridged}, "on", waits},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ep, err := play(t, steps(call(tt.calls...), say("done")), episode.Task{Limits: episode.Limits{Time: limit}}, func(p *rollout.Player) {
				p.Registry = reg.WithBridge(registry.Bridge{Enabled: tt.bridge})
			})
			if err != nil || ep.Outcome != episode.Success {
				t.Fatalf("%s, stop %s, fault %+v, %v", ep.Outcome, ep.Stop, ep.Fault, err)
			}
			turn := ep.Turns[0]
			if turn.Waited < tt.waited || turn.Waited > tt.waited+waits/2 || turn.Elapsed < turn.Waited {
				t.Errorf("the turn took %v and waited %v, want %v", turn.Elapsed, turn.Waited, tt.waited)
			}
			if ep.Phases.Tools >= limit {
				t.Errorf("the tools took %v, of which they waited most", ep.Phases.Tools)
			}
			for _, c := range ep.Calls {
				if c.Status != episode.CallOK || c.Elapsed >= limit {
					t.Errorf("%s took %v: %s", c.Name, c.Elapsed, c.Result)
				}
			}
		})
	}
}
