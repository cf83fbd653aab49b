package registry

import (
	"context"

	"trajgen/pipeline/episode"
)

// endTurn does the work that needs all calls of a turn to have ended: the limit on all results together, and the hooks of the turn.
func (s *Session) endTurn(ctx context.Context, calls ...*prepared) {
	s.fitTurn(ctx, calls)
	for i := range s.cfg.Hooks {
		hook := &s.cfg.Hooks[i]
		if hook.Turn == nil {
			continue
		}
		shown := make([]episode.ToolCall, len(calls))
		for j, p := range calls {
			shown[j] = p.call
		}
		if err := guard(hook.Name, func() error { hook.Turn(ctx, shown); return nil }); err != nil {
			s.broken(calls[0], hook.Name, err)
			continue
		}
		for j, p := range calls {
			s.change(p, func(call *episode.ToolCall) { call.Notice = shown[j].Notice })
		}
	}
}

// change changes a call that other goroutines may be reading.
func (s *Session) change(p *prepared, f func(call *episode.ToolCall)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&p.call)
}
