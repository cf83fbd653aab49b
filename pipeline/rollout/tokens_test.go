package rollout_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/scripted"
	"trajgen/pipeline/rollout"
)

// listener keeps what the server said of the tokens of each turn.
type listener struct {
	model.Model
	heard []episode.Tokens
}

func (l *listener) Complete(ctx context.Context, req model.Request) (model.Reply, error) {
	reply, err := l.Model.Complete(ctx, req)
	if err == nil {
		l.heard = append(l.heard, reply.Tokens)
	}
	return reply, err
}

// playTokens plays three turns against a scripted server that tells ids.
func playTokens(t *testing.T, served scripted.Config, cfg model.Config) (*episode.Episode, []episode.Tokens) {
	t.Helper()
	touch := func(path string) []episode.GoldCall {
		return []episode.GoldCall{{Name: "touch", Arguments: json.RawMessage(`{"path":"` + path + `"}`)}}
	}
	task := episode.Task{ID: "t", Prompt: []episode.Message{{Role: "user", Content: "do it"}},
		Gold: []episode.Step{{Content: "First.", Reasoning: "hm", Calls: touch("a")}, {Calls: touch("ä <b>")}, {Content: "Done."}}}
	served.Policy = scripted.Oracle
	server, err := scripted.New(served)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.Learn(&task)
	cfg.Name, cfg.TraceHeaders = scripted.DefaultModel, true
	if cfg.BaseURL, err = server.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	client, err := model.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	heard := &listener{Model: client}
	ep, err := play(t, nil, task, func(p *rollout.Player) { p.Model = heard })
	if err != nil || len(ep.Turns) != 3 {
		t.Fatalf("%d turns, outcome %s, fault %v, error %v", len(ep.Turns), ep.Outcome, ep.Fault, err)
	}
	return ep, heard.heard
}

// TestTokensAreTrue: the row has every id that the server told, of each turn and in one sequence, streamed or not.
func TestTokensAreTrue(t *testing.T) {
	var plain *episode.Episode
	for _, stream := range []bool{false, true} {
		ep, heard := playTokens(t, scripted.Config{}, model.Config{Settings: model.Settings{TokenIDs: "auto", Stream: stream, SendReasoning: "true"}})
		if ep.Drift == nil || ep.Drift.Verdict != episode.DriftNone {
			t.Fatalf("stream %v: drift %+v, want none", stream, ep.Drift)
		}
		if plain == nil {
			plain = ep
		}
		for i := range ep.Turns {
			if diff := cmp.Diff(plain.Turns[i].Tokens, ep.Turns[i].Tokens); diff != "" {
				t.Errorf("turn %d (-plain +streamed):\n%s", i, diff)
			}
		}
		if diff := cmp.Diff(plain.Messages, ep.Messages); diff != "" {
			t.Errorf("messages (-plain +streamed):\n%s", diff)
		}
		ids, spans := ep.Sequence()
		for i, want := range heard {
			if diff := cmp.Diff(want, ep.TokensOf(i)); diff != "" || len(want.Logprobs) == 0 {
				t.Errorf("stream %v: turn %d (-heard +kept):\n%s", stream, i, diff)
			}
			if got := ids[:spans[i].Start]; !slices.Equal(got, want.Prompt) {
				t.Errorf("stream %v: the sequence before turn %d is %v, want its prompt %v", stream, i, got, want.Prompt)
			}
			if got := ids[spans[i].Start:spans[i].End]; !slices.Equal(got, want.Completion) {
				t.Errorf("stream %v: the sequence has %v for turn %d, want %v", stream, got, i, want.Completion)
			}
		}
		if len(ids) != spans[2].End {
			t.Errorf("stream %v: %d ids behind the last turn", stream, len(ids)-spans[2].End)
		}
	}
}

func TestDriftIsFound(t *testing.T) {
	tests := []struct {
		name   string
		served scripted.Config
		cfg    model.Config
		want   *episode.Drift
	}{
		{"ids were not asked for", scripted.Config{}, model.Config{}, nil},
		{"arguments are rendered otherwise", scripted.Config{Drift: scripted.DriftWhitespace}, model.Config{Settings: model.Settings{TokenIDs: "vllm", SendReasoning: "true"}},
			&episode.Drift{Verdict: "drift", Turn: 1, Expected: letters(`"a"}`), Got: letters(` "a"}`)}},
		{"thinking is not rendered", scripted.Config{Drift: scripted.DriftThinking}, model.Config{Settings: model.Settings{TokenIDs: "vllm", SendReasoning: "true"}},
			&episode.Drift{Verdict: "drift", Turn: 1, Expected: append(episode.IDs{259}, letters("\nhm\n")...), Got: letters("First.")}},
		{"thinking is not sent back", scripted.Config{}, model.Config{Settings: model.Settings{TokenIDs: "vllm"}},
			&episode.Drift{Verdict: "drift", Turn: 1, Expected: append(episode.IDs{259}, letters("\nhm\n")...), Got: letters("First.")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ep, heard := playTokens(t, tt.served, tt.cfg)
			got := ep.Drift
			if tt.want == nil || got == nil {
				if got != tt.want {
					t.Errorf("drift %+v, want %+v", got, tt.want)
				}
				return
			}
			starts := func(ids, with episode.IDs) bool { return len(ids) >= len(with) && slices.Equal(ids[:len(with)], with) }
			if got.Verdict != tt.want.Verdict || got.Turn != tt.want.Turn || !starts(got.Expected, tt.want.Expected) || !starts(got.Got, tt.want.Got) {
				t.Errorf("drift %+v, want one like %+v", got, tt.want)
			}
			before := slices.Concat(heard[0].Prompt, heard[0].Completion)
			if p := got.Position; !slices.Equal(before[:p], heard[1].Prompt[:p]) || before[p] == heard[1].Prompt[p] {
				t.Errorf("position %d is not the first where %v and %v differ", p, before, heard[1].Prompt)
			}
			for i, want := range heard {
				if diff := cmp.Diff(want, ep.TokensOf(i)); diff != "" {
					t.Errorf("turn %d (-heard +kept):\n%s", i, diff)
				}
			}
			if ids, _ := ep.Sequence(); ids != nil {
				t.Errorf("there is a sequence of %d ids", len(ids))
			}
		})
	}
}

// letters are the ids of a text without marks, in the scripted server's vocabulary.
func letters(s string) (ids episode.IDs) {
	for _, b := range []byte(s) {
		ids = append(ids, int32(b))
	}
	return ids
}
