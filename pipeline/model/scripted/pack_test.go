package scripted

import (
	"encoding/json"
	"reflect"
	"testing"

	"trajgen/pipeline/episode"
)

func TestPack(t *testing.T) {
	exact, number, words := " 42 ", -1.5e300, "ä\x00\xff"
	sc := newScript(&episode.Task{ID: "t", System: "s", Limits: episode.Limits{Turns: 300},
		Prompt: []episode.Message{{Role: "user", Content: words}, {Role: "assistant", Content: "hm"}, {Role: "user", Content: "x"}},
		Verify: []episode.Check{{Exact: &exact}, {Number: &number, Tolerance: 0.25}, {Regex: "a|("}, {Command: "true"}},
		Gold: []episode.Step{{Content: words, Reasoning: "r", Calls: []episode.GoldCall{{Name: "n", Arguments: json.RawMessage(`{"a": "<"}`)}}},
			{Content: "end"}}})
	got := unpack(sc.pack())
	got.id, got.system = sc.id, sc.system
	if !reflect.DeepEqual(got, sc) {
		t.Errorf("unpacked %+v, want %+v", got, sc)
	}
}
