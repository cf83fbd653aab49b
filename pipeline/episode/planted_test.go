package episode_test

import (
	"encoding/json"
	"testing"

	"trajgen/pipeline/episode"
)

func TestDigestOfCall(t *testing.T) {
	digest := func(name, arguments string) string {
		return (&episode.ToolCall{Name: name, Arguments: json.RawMessage(arguments)}).Digest()
	}
	one := digest("read_file", `{"path": "a", "limit": 12345678901234567890}`)
	if len(one) != 64 || digest("read_file", `{"limit":12345678901234567890,"path":"a"}`) != one {
		t.Errorf("digest %s depends on spaces or order", one)
	}
	for _, other := range []string{
		digest("write_file", `{"path":"a","limit":12345678901234567890}`), digest("read_file", `{"path":"a","limit":12345678901234567891}`),
	} {
		if other == one {
			t.Error("two calls have one digest")
		}
	}
	if got := (&episode.ToolCall{Name: "read_file"}).Digest(); got != "" {
		t.Errorf("digest of a call without arguments: %s", got)
	}
}

func TestTwinKey(t *testing.T) {
	clean := episode.Key{Seed: 1, Task: "a", Sample: 2}
	twin := clean
	twin.Twin = (&episode.Twin{Class: "timeout", Variant: "effect", Ordinal: 3, Replicate: 1}).Name()
	if twin.Twin != "timeout:effect/3/1" || twin.ID() == clean.ID() {
		t.Errorf("twin %q has the ID of its clean episode", twin.Twin)
	}
	if twin.Rand("toolsets").Uint64() != clean.Rand("toolsets").Uint64() {
		t.Error("a twin has other draws than its clean episode")
	}
}
