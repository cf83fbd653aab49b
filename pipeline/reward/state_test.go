package reward_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
)

func TestSiteState(t *testing.T) {
	const state = `{"orders": [{"number": 5001, "total": 4039}], "share": 0.25, "user": null}`
	given := func(_ context.Context, site string) (json.RawMessage, error) {
		if site != "shop" {
			return nil, errors.New("the recording lacks it")
		}
		return json.RawMessage(state), nil
	}
	tests := []struct {
		name, site, expect string
		state              func(context.Context, string) (json.RawMessage, error)
		want               float64
		broken             string
	}{
		{"true", "shop", `any(orders, .number == 5001 and .total < 5000)`, given, 1, ""},
		{"false", "shop", `len(orders) == 2`, given, 0, ""},
		{"number", "shop", `share`, given, 0.25, ""},
		{"share", "shop", `count(orders, .total > 1) / 2`, given, 0.5, ""},
		{"of another type", "shop", `orders`, given, 0, "spec"},
		{"over 1", "shop", `len(orders) + 1`, given, 0, "spec"},
		{"not a number", "shop", `0.0 / 0.0`, given, 0, "spec"},
		{"misspelt", "shop", `len(ordres)`, given, 0, "spec"},
		{"out of range", "shop", `orders[1].total == 1`, given, 0, "spec"},
		{"too much memory", "shop", `len(map(1..1000000, 1..1000)) == 1`, given, 0, "spec"},
		{"no state", "forum", `true`, given, 0, "state"},
		{"no sites", "shop", `true`, nil, 0, "state"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			check := episode.Check{SiteState: &episode.SiteState{Site: tt.site, Expect: tt.expect}}
			_, got, err := reward.Verify(t.Context(), []episode.Check{check}, reward.Subject{State: tt.state})
			broken, ok := errors.AsType[*reward.Broken](err)
			if ok != (tt.broken != "") || ok && broken.Class != tt.broken || got != tt.want {
				t.Errorf("reward %v, %v, want %v and class %q", got, err, tt.want, tt.broken)
			}
		})
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no more time"))
	check := episode.Check{SiteState: &episode.SiteState{Site: "shop", Expect: "true"}}
	_, _, err := reward.Verify(ended, []episode.Check{check}, reward.Subject{State: func(ctx context.Context,
		_ string) (json.RawMessage, error) {
		return nil, ctx.Err()
	}})
	if _, ok := errors.AsType[*reward.Broken](err); ok || err == nil {
		t.Errorf("a cancelled verdict: %v", err)
	}
}
