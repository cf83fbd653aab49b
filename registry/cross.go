package registry

import (
	"slices"

	"trajgen/pipeline/episode"
)

// crossed is what a planted fault does to two calls of a turn.
type crossed struct {
	with  *prepared
	fault *Fault
}

// beside finds the last call of the same tool that the model wrote in the same turn before this one.
func (t *trace) beside(p *prepared) *prepared {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, other := range slices.Backward(t.calls) {
		switch {
		case other.done || other.place.Turn != p.place.Turn || p.call.Parent != "":
			return nil
		case other != p && other.call.Name == p.call.Name:
			return other
		}
	}
	return nil
}

// cross exchanges the results of calls that have such a fault. All have ended, and fit the limit of their tool.
func cross(calls []*prepared) {
	for _, p := range calls {
		if p.crossed == nil {
			continue
		}
		a, b := faulted{p}, faulted{p.crossed.with}
		if !a.exchangeable() || !b.exchangeable() || a.call.Result == b.call.Result {
			continue
		}
		was, fault := a.call, p.crossed.fault
		a.show(&b.call, fault)
		b.show(&was, fault)
		for _, same := range calls {
			if same.first == a.prepared || same.first == b.prepared {
				same.session.change(same, func(call *episode.ToolCall) { copyResult(call, &same.first.call) })
			}
		}
	}
}

// exchangeable reports whether another call can show the result.
func (p faulted) exchangeable() bool {
	return p.call.Status == episode.CallOK && p.call.Planted == nil && p.first == nil && len(p.call.Images) == 0
}

// show has the call show the result of another one.
func (p faulted) show(from *episode.ToolCall, fault *Fault) {
	planted := fault.Planted
	planted.Effect, planted.RealStatus, planted.RealResult = episode.EffectDone, p.call.Status, p.call.Result
	planted.Target = fault.Exchange(p.call.Result, from.Result)
	p.session.change(p.prepared, func(call *episode.ToolCall) {
		call.Planted, call.Result, call.ResultBytes = &planted, from.Result, from.ResultBytes
		call.Truncated, call.Stored, call.Masked = from.Truncated, from.Stored, from.Masked
	})
}
