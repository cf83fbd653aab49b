package faults

import (
	"context"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// errorClasses are those of calls that fail, or take long.
var errorClasses = []*class{
	{
		name: "timeout", says: "the call does not end in time", variants: []string{"done"}, loud: true, times: 1, answers: true, applies: always, plant: plantTimeout,
	},
	{name: "slow", says: "the true result, late", times: 3, scope: sameTool, applies: always, plant: plantSlow},
	{name: "error_transient", says: "an error that passes", loud: true, times: 1, applies: always, answers: true, plant: (*strike).fail},
	{name: "error_permanent", says: "an error each time", loud: true, times: 0, applies: always, answers: true, plant: (*strike).fail},
	{name: "rate_limited", says: "too many requests", loud: true, times: 2, scope: sameToolset, applies: distant, answers: true, plant: (*strike).fail},
	{name: "auth_expired", says: "the credentials are no longer good", loud: true, times: 0, scope: sameToolset, applies: distant, answers: true, plant: (*strike).fail},
}

// distant reports whether a service answers the tool, which can refuse it.
func distant(t *registry.Tool, _ *episode.ToolCall) bool {
	return t.Outside != "" || len(t.RequiresEnv) > 0
}

// fail answers with an error of the tool.
func (s *strike) fail() { s.instead(words) }

// charge is what the fault puts on the agent's clock.
func (s *strike) charge(usual time.Duration) {
	if s.settings.Charge > 0 {
		usual = s.settings.Charge
	}
	s.env.Charge(usual)
}

func plantTimeout(s *strike) {
	late := func(s *strike) (string, error) {
		s.charge(10 * time.Second)
		return "", tooLate(s.call.Tool, s.arguments())
	}
	if s.Planted.Variant == "" {
		s.instead(late)
		return
	}
	s.Around = func(ctx context.Context, env *registry.Env, run func(context.Context) (string, error)) (string, error) {
		s.env, s.Planted.Effect = env, episode.EffectDone
		if text, err := run(ctx); err != nil && ctx.Err() != nil {
			return text, err
		}
		env.ExitCode = nil
		return late(s)
	}
}

func plantSlow(s *strike) {
	s.Around = func(ctx context.Context, env *registry.Env, run func(context.Context) (string, error)) (string, error) {
		s.env, s.Planted.Effect = env, episode.EffectDone
		s.charge(time.Minute)
		return run(ctx)
	}
}
