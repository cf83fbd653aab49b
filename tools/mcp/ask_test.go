package mcp_test

import (
	"context"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/registry"
	"trajgen/tools/mcp"
)

// person is a user who answers each question that it knows.
type person struct {
	answers map[string]string
	asked   []string
}

func (p *person) Ask(_ context.Context, question string, choices []string) (string, error) {
	p.asked = append(p.asked, question+" "+strings.Join(choices, "|"))
	for match, answer := range p.answers {
		if strings.Contains(question, match) {
			return answer, nil
		}
	}
	return "", registry.Failf("no_answer", "the user does not know")
}

// TestElicitation holds who answers what a server asks the user.
func TestElicitation(t *testing.T) {
	b := backend(t, "local")
	script := []mcp.Answer{{Match: "^Which size", Content: map[string]any{"size": "small", "count": 2}}}
	tests := []struct {
		name   string
		give   *mcp.Elicitation
		user   *person
		result string
		asked  int
	}{
		{"without", nil, &person{}, `error`, 0},
		{"declined", &mcp.Elicitation{}, &person{}, `{\"action\":\"decline\"}`, 0},
		{"scripted", &mcp.Elicitation{Answers: script}, &person{}, `{\"action\":\"accept\",\"content\":{\"count\":2,\"size\":\"small\"}}`, 0},
		{"user", &mcp.Elicitation{By: "user"}, &person{answers: map[string]string{"How many?": " 12 ", "\nsize": "Large."}}, `{\"action\":\"accept\",\"content\":{\"count\":12,\"size\":\"large\"}}`, 2},
		{"user who does not know", &mcp.Elicitation{By: "user"}, &person{answers: map[string]string{"size": "large"}}, `{\"action\":\"decline\"}`, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := faulty("plain")
			server.Elicitation = tt.give
			p := begin(t, b, open(t, b, one(server)), mcp.User(tt.user))
			got := p.call("mcp_fake_elicit", `{}`)
			if tt.give == nil {
				if got.Status == episode.CallOK && !strings.Contains(got.Result, `"result":""`) {
					t.Errorf("%s %s", got.Status, got.Result)
				}
				return
			}
			if got.Status != episode.CallOK || !strings.Contains(got.Result, tt.result) || len(tt.user.asked) != tt.asked || !strings.Contains(string(got.Source), `"elicited":[{"question":"Which size and how many?"`) {
				t.Errorf("%s %s, asked %q, source %s; want %s", got.Status, got.Result, tt.user.asked, got.Source, tt.result)
			}
		})
	}
}

// asked is a model that says how it was asked.
type asked struct {
	model.Model
	got []model.Request
}

func (a *asked) Complete(_ context.Context, req model.Request) (model.Reply, error) {
	a.got = append(a.got, req)
	return model.Reply{Model: "deep-thought-1", Message: episode.Message{Role: "assistant", Content: "42"}, Usage: episode.Usage{Prompt: 7, Completion: 1, Reported: true}}, nil
}

// TestSampling holds that a server may ask a model within bounds, that the trace has its tokens, and that a record keeps the answer.
func TestSampling(t *testing.T) {
	b := backend(t, "local")
	server := faulty("plain")
	server.Sampling = &mcp.Sampling{MaxTokens: 50, MaxCalls: 1}
	p := begin(t, b, open(t, b, one(server)))
	client, kept := &asked{}, []string{}
	p.attempt.Model = func(string) (model.Model, string) { return client, "deep-thought" }
	p.attempt.Price = func(episode.Usage, ...string) *float64 { return new(0.5) }
	p.attempt.Ask = func(role, question string, _ any, ask func() error) error {
		kept = append(kept, role+" "+question)
		return ask()
	}
	got := p.call("mcp_fake_sample", `{}`)
	if got.Status != episode.CallOK || !strings.Contains(got.Result, `42`) || len(client.got) != 1 || client.got[0].MaxTokens != 50 || client.got[0].Messages[0].Content != "Be brief." {
		t.Fatalf("%s %s, asked %+v", got.Status, got.Result, client.got)
	}
	if q := got.Inquiries(); len(q) != 1 || q[0].Asked != "deep-thought" || q[0].Model != "deep-thought-1" || q[0].Usage.Prompt != 7 || *q[0].CostUSD != 0.5 {
		t.Errorf("inquiries %+v of %s", q, got.Source)
	}
	if len(kept) != 1 || !strings.HasPrefix(kept[0], "sampling ") || !strings.Contains(kept[0], "6 times 7") {
		t.Errorf("kept %q", kept)
	}
	if p.call("mcp_fake_sample", `{"again":1}`); len(client.got) != 1 {
		t.Errorf("asked %d times, once is allowed", len(client.got))
	}
}
