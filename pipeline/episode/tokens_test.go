package episode_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
)

// play makes an episode of exchanges as a rollout does.
func play(exchanges ...episode.Tokens) *episode.Episode {
	ep := &episode.Episode{}
	for _, e := range exchanges {
		ep.Turns = append(ep.Turns, episode.Turn{Tokens: ep.KeepTokens(e)})
	}
	return ep
}

func ids(n ...int32) episode.IDs { return n }

func TestDrift(t *testing.T) {
	type tokens = episode.Tokens
	tests := []struct {
		name      string
		give      []tokens
		compacted []episode.Compaction
		want      *episode.Drift
	}{
		{"no turns", nil, nil, nil},
		{"no ids", []tokens{{}, {}}, nil, nil},
		{"logprobs alone", []tokens{{Logprobs: []float32{-1}}}, nil, nil},
		{"one turn", []tokens{{Prompt: ids(1), Completion: ids(2)}}, nil, &episode.Drift{Verdict: "none"}},
		{"none", []tokens{{Prompt: ids(1), Completion: ids(2)}, {Prompt: ids(1, 2, 3), Completion: ids(4)}}, nil, &episode.Drift{Verdict: "none"}},
		{"the end of a turn comes with the next prompt", []tokens{{Prompt: ids(1), Completion: ids(2)}, {Prompt: ids(1, 2, 99, 10, 3), Completion: ids(4)}},
			nil, &episode.Drift{Verdict: "none"}},
		{"in the completion", []tokens{{Prompt: ids(1), Completion: ids(2, 3, 4)}, {Prompt: ids(1, 2, 7, 4), Completion: ids(5)}},
			nil, &episode.Drift{Verdict: "drift", Turn: 1, Position: 2, Expected: ids(3, 4), Got: ids(7, 4)}},
		{"at the first id", []tokens{{Prompt: ids(1), Completion: ids(2)}, {Prompt: ids(9), Completion: ids(5)}},
			nil, &episode.Drift{Verdict: "drift", Turn: 1, Expected: ids(1, 2), Got: ids(9)}},
		{"a prompt that ends too soon", []tokens{{Prompt: ids(1, 2), Completion: ids(3)}, {Prompt: ids(1, 2), Completion: ids(5)}},
			nil, &episode.Drift{Verdict: "drift", Turn: 1, Position: 2, Expected: ids(3), Got: episode.IDs{}}},
		{"a few ids are shown", []tokens{{Prompt: ids(1), Completion: ids(2, 3, 4, 5, 6, 7, 8, 9, 10, 11)}, {Prompt: ids(1, 0), Completion: ids(5)}},
			nil, &episode.Drift{Verdict: "drift", Turn: 1, Position: 1, Expected: ids(2, 3, 4, 5, 6, 7, 8, 9), Got: ids(0)}},
		{"the first drift counts", []tokens{{Prompt: ids(1), Completion: ids(2)}, {Prompt: ids(1, 3), Completion: ids(4)}, {Prompt: ids(5), Completion: ids(6)}},
			nil, &episode.Drift{Verdict: "drift", Turn: 1, Position: 1, Expected: ids(2), Got: ids(3)}},
		{"a turn without ids", []tokens{{Prompt: ids(1), Completion: ids(2)}, {}, {Prompt: ids(1, 2, 3), Completion: ids(4)}}, nil, &episode.Drift{Verdict: "unknown", Turn: 1}},
		{"a prompt without ids", []tokens{{Completion: ids(2)}, {Completion: ids(3)}}, nil, &episode.Drift{Verdict: "unknown"}},
		{"a reply without ids", []tokens{{Prompt: ids(1)}}, nil, &episode.Drift{Verdict: "unknown"}},
		{"a drift outweighs the unknown", []tokens{{Prompt: ids(1), Completion: ids(2)}, {}, {Prompt: ids(1, 3), Completion: ids(4)}},
			nil, &episode.Drift{Verdict: "drift", Turn: 2, Position: 1, Expected: ids(2), Got: ids(3)}},
		{"compacted", []tokens{{Prompt: ids(1), Completion: ids(2)}, {Prompt: ids(1, 3), Completion: ids(4)}, {Prompt: ids(1, 3, 4), Completion: ids(6)}},
			[]episode.Compaction{{Turn: 1}}, &episode.Drift{Verdict: "compacted", Turn: 1, Position: 1, Expected: ids(2), Got: ids(3)}},
		{"a compaction that failed", []tokens{{Prompt: ids(1), Completion: ids(2)}, {Prompt: ids(1, 3), Completion: ids(4)}},
			[]episode.Compaction{{Turn: 1, Failed: "no summary"}}, &episode.Drift{Verdict: "drift", Turn: 1, Position: 1, Expected: ids(2), Got: ids(3)}},
		{"compacted and drifted", []tokens{{Prompt: ids(1), Completion: ids(2)}, {Prompt: ids(1, 3), Completion: ids(4)}, {Prompt: ids(1), Completion: ids(6)}},
			[]episode.Compaction{{Turn: 1}}, &episode.Drift{Verdict: "drift", Turn: 2, Position: 1, Expected: ids(3, 4), Got: episode.IDs{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ep := play(tt.give...)
			ep.Compactions = tt.compacted
			got := ep.FindDrift()
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("drift (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDriftOfArguments: where arguments were sent back otherwise than they were sampled, a prompt that differs there is our
// doing, and one that differs before it, or later on, is not.
func TestDriftOfArguments(t *testing.T) {
	type tokens = episode.Tokens
	first := tokens{Prompt: ids(1, 2), Completion: ids(3, 4)}
	tests := []struct {
		name string
		give []tokens
		want *episode.Drift
	}{
		{"as it was sampled", []tokens{first, {Prompt: ids(1, 2, 3, 4, 5), Completion: ids(6)}}, &episode.Drift{Verdict: "none"}},
		{"in the call", []tokens{first, {Prompt: ids(1, 2, 3, 7), Completion: ids(6)}}, &episode.Drift{Verdict: "repaired", Turn: 1, Position: 3, Expected: ids(4), Got: ids(7)}},
		{"before the call", []tokens{first, {Prompt: ids(1, 8, 3, 7), Completion: ids(6)}}, &episode.Drift{Verdict: "drift", Turn: 1, Position: 1, Expected: ids(2, 3, 4), Got: ids(8, 3, 7)}},
		{"in the call, and later", []tokens{first, {Prompt: ids(1, 2, 3, 7), Completion: ids(6)}, {Prompt: ids(1, 2, 3, 7, 9), Completion: ids(5)}},
			&episode.Drift{Verdict: "drift", Turn: 2, Position: 4, Expected: ids(6), Got: ids(9)}},
		{"in the call, and no more", []tokens{first, {Prompt: ids(1, 2, 3, 7), Completion: ids(6)}, {Prompt: ids(1, 2, 3, 7, 6, 9), Completion: ids(5)}},
			&episode.Drift{Verdict: "repaired", Turn: 1, Position: 3, Expected: ids(4), Got: ids(7)}},
		{"in the call, and a turn without ids", []tokens{first, {Prompt: ids(1, 2, 3, 7), Completion: ids(6)}, {}}, &episode.Drift{Verdict: "unknown", Turn: 2}},
		{"behind a turn without ids", []tokens{first, {}, {Prompt: ids(1, 2, 3, 7), Completion: ids(5)}}, &episode.Drift{Verdict: "unknown", Turn: 1}},
	}
	for _, tt := range tests {
		ep := play(tt.give...)
		for i := range ep.Turns {
			ep.Turns[i].Message = i
			ep.Messages = append(ep.Messages, episode.Message{Role: "assistant", Calls: []episode.Call{{Name: "f", Arguments: "{}"}}})
		}
		ep.Messages[0].Calls[0] = episode.Call{Name: "f", Arguments: "{", Sent: "{}"}
		ep.Drift = ep.FindDrift()
		if diff := cmp.Diff(tt.want, ep.Drift); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if ids, _ := ep.Sequence(); (ids == nil) != (tt.want.Verdict != "none") {
			t.Errorf("%s: sequence %v", tt.name, ids)
		}
	}
}

// TestUsageHasTheLastWord: ids are known when there are as many as the server counted, none among them.
func TestUsageHasTheLastWord(t *testing.T) {
	tests := []struct {
		give               episode.Tokens
		prompt, completion int
		want               episode.DriftVerdict
	}{
		{episode.Tokens{Prompt: ids(1, 2), Completion: ids(3)}, 2, 1, episode.DriftNone},
		{episode.Tokens{Prompt: ids(1, 2)}, 2, 0, episode.DriftNone},
		{episode.Tokens{Prompt: ids(1, 2), Completion: ids(3)}, 2, 2, episode.DriftUnknown}, // a part of a stream was without
		{episode.Tokens{Prompt: ids(1, 2), Completion: ids(3)}, 3, 1, episode.DriftUnknown},
	}
	for _, tt := range tests {
		ep := play(tt.give)
		ep.Turns[0].Usage = episode.Usage{Prompt: tt.prompt, Completion: tt.completion, Reported: true}
		if d := ep.FindDrift(); d == nil || d.Verdict != tt.want {
			t.Errorf("%+v, counted as %d and %d: drift = %+v, want %s", tt.give, tt.prompt, tt.completion, d, tt.want)
		}
	}
}

func TestSequence(t *testing.T) {
	ep := play(
		episode.Tokens{Prompt: ids(1, 2), Completion: ids(3)},
		episode.Tokens{Prompt: ids(1, 2, 3, 9, 4), Completion: ids(5, 6)},
	)
	if got, _ := ep.Sequence(); got != nil {
		t.Errorf("sequence without a verdict = %v", got)
	}
	ep.Drift = ep.FindDrift()
	got, spans := ep.Sequence()
	if want := ids(1, 2, 3, 9, 4, 5, 6); !slices.Equal(got, want) {
		t.Errorf("sequence = %v, want %v", got, want)
	}
	if want := []episode.Span{{2, 3}, {5, 7}}; !slices.Equal(spans, want) {
		t.Errorf("spans = %v, want %v", spans, want)
	}
}

// TestTokensComeBack: whatever the exchanges, what is kept of them gives them back, also through JSON.
func TestTokensComeBack(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var given []episode.Tokens
		var last episode.IDs
		for range draw.IntN(6) {
			var e episode.Tokens
			if draw.IntN(4) > 0 { // most prompts go on where the last turn ended, some somewhere in it
				e.Prompt = slices.Concat(last[:len(last)-min(len(last), draw.IntN(3)*draw.IntN(4))], some(draw))
			}
			if draw.IntN(5) > 0 {
				e.Completion = some(draw)
			}
			for range e.Completion {
				e.Logprobs = append(e.Logprobs, -draw.Float32())
			}
			if len(e.Prompt) > 0 {
				last = slices.Concat(e.Prompt, e.Completion)
			}
			given = append(given, e)
		}
		text, err := json.Marshal(play(given...))
		if err != nil {
			t.Fatal(err)
		}
		var back episode.Episode
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		for i, want := range given {
			got := back.TokensOf(i)
			if !slices.Equal(got.Prompt, want.Prompt) || !slices.Equal(got.Completion, want.Completion) || !slices.Equal(got.Logprobs, want.Logprobs) {
				t.Fatalf("turn %d of %+v came back as %+v", i, given, got)
			}
		}
	}
}

func some(draw *rand.Rand) (list episode.IDs) {
	for range 1 + draw.IntN(4) {
		list = append(list, draw.Int32N(3))
	}
	return list
}

// TestLongEpisodeIsKeptOnce: a long episode's tokens take the room of its last prompt, not of all its prompts.
func TestLongEpisodeIsKeptOnce(t *testing.T) {
	ep := &episode.Episode{}
	prompt := make(episode.IDs, 20_000)
	for range 30 {
		e := episode.Tokens{Prompt: slices.Clone(prompt), Completion: make(episode.IDs, 300)}
		ep.Turns = append(ep.Turns, episode.Turn{Tokens: ep.KeepTokens(e)})
		prompt = append(slices.Concat(prompt, e.Completion), 7, 8, 9)
	}
	kept := 0
	for _, turn := range ep.Turns {
		kept += cap(turn.Tokens.Prompt) + cap(turn.Tokens.Completion)
	}
	if kept > 31_000 {
		t.Errorf("%d ids are kept of an episode with %d", kept, len(prompt))
	}
}

func TestIDs(t *testing.T) {
	tests := []struct {
		give string
		want episode.IDs
		err  string
	}{
		{"[]", episode.IDs{}, ""},
		{"null", nil, ""},
		{" [ 0 ,\n2147483647,7 ] ", ids(0, 1<<31-1, 7), ""},
		{"[1.0]", nil, "not a list of whole numbers from 0 to 2147483647: [1.0]"},
		{"[1e3]", nil, "not a list of whole numbers"},
		{"[-1]", nil, "not a list of whole numbers"},
		{"[2147483648]", nil, "not a list of whole numbers"},
		{"[99999999999999999999999999]", nil, "not a list of whole numbers"},
		{`["1"]`, nil, "not a list of whole numbers"},
		{"[null]", nil, "not a list of whole numbers"},
		{"[[1]]", nil, "not a list of whole numbers"},
		{`{"a":1}`, nil, "not a list of whole numbers"},
		{`"AQID"`, nil, "not a list of whole numbers"},
		{"7", nil, "not a list of whole numbers"},
	}
	for _, tt := range tests {
		var got episode.IDs
		err := json.Unmarshal([]byte(tt.give), &got)
		if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("Unmarshal(%s) error = %v, want %q in it", tt.give, err, tt.err)
		}
		if tt.err == "" && (err != nil || !slices.Equal(got, tt.want) || (got == nil) != (tt.want == nil)) {
			t.Errorf("Unmarshal(%s) = %v, %v, want %v", tt.give, got, err, tt.want)
		}
	}
	if text, err := json.Marshal(ids(0, 151643)); err != nil || string(text) != "[0,151643]" {
		t.Errorf("Marshal = %s, %v", text, err)
	}
}

// FuzzIDs: whatever is read as ids is the same list for encoding/json, and is written back as it was.
func FuzzIDs(f *testing.F) {
	for _, seed := range []string{"[]", "[1,2]", "[ 1 , 2 ]", "[1.5]", "[,]", "[1,]", "[1 2]", "null", "[", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var ids episode.IDs
		if ids.UnmarshalJSON([]byte(text)) != nil || !json.Valid([]byte(text)) {
			return
		}
		var plain []int32
		if err := json.Unmarshal([]byte(text), &plain); err != nil || !slices.Equal(plain, ids) {
			t.Errorf("%q gives %v, encoding/json gives %v, %v", text, ids, plain, err)
		}
	})
}
