package moa_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/tools/moa"
)

// oracle is a model that answers when all of its kind have been asked.
type oracle struct {
	name, says string
	err        error
	together   *sync.WaitGroup

	got model.Request
}

func (o *oracle) Complete(_ context.Context, req model.Request) (model.Reply, error) {
	o.got = req
	if o.together != nil { // a mixture that asks one after the other waits here for ever
		o.together.Done()
		o.together.Wait()
	}
	return model.Reply{
		Message: episode.Message{Role: "assistant", Content: o.says}, Model: o.name + "-2026",
		Usage: episode.Usage{Prompt: 100, Completion: 10, Reported: true},
	}, o.err
}

func TestAnswer(t *testing.T) {
	busy := &model.Error{Class: model.ClassOverloaded}
	for _, tt := range []struct {
		name    string
		replies []oracle // the last is the aggregator
		least   int
		want    string // the answer
		failed  string // the error
		shown   []string
	}{
		{"all", []oracle{{says: "one"}, {says: "two"}, {says: "both"}}, 0, "both", "", []string{"one", "two"}},
		{"one fails", []oracle{{err: busy}, {says: "two"}, {says: "so"}}, 1, "so", "", []string{"two"}},
		{"too few", []oracle{{err: busy}, {says: "two"}, {says: "so"}}, 2, "", "1 of 2 models answered, and at least 2 must: m0 (overloaded)", nil},
		{"nothing said", []oracle{{says: " \n"}, {}, {}}, 0, "", "0 of 2 models answered, and at least 1 must: m0 (empty), m1 (empty)", nil},
		{"no aggregate", []oracle{{says: "one"}, {says: "two"}, {err: busy}}, 0, "", "m2, which makes one answer of the others', gave none (overloaded)", []string{"one", "two"}},
		{"a key is refused", []oracle{{says: "one"}, {err: &model.Error{Class: model.ClassAuth, Fatal: true, Message: "no"}}, {}}, 0, "", "no", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &moa.Mixture{
				Settings: moa.Settings{AtLeast: tt.least, MaxTokens: 500}, Side: model.Side{
					Seed: 40, Asker: model.Asker{Episode: "e", Attempt: 1},
					Ask:   func(_, _ string, _ any, ask func() error) error { return ask() },
					Price: func(u episode.Usage, _ ...string) *float64 { return new(float64(u.Prompt)) },
				},
			}
			var together sync.WaitGroup
			last := len(tt.replies) - 1
			together.Add(last)
			for i := range tt.replies {
				o := &tt.replies[i]
				o.name = fmt.Sprint("m", i)
				if i < last {
					o.together = &together
					m.Settings.References = append(m.Settings.References, moa.Model{Model: o.name})
				} else {
					m.Settings.Aggregator = moa.Model{Model: o.name}
				}
				m.Models = append(m.Models, o)
			}
			if err := m.Settings.Validate(); err != nil {
				t.Fatal(err)
			}
			got, about, err := m.Answer(t.Context(), "Why?")
			if got != tt.want || (err == nil) != (tt.failed == "") || err != nil && !strings.Contains(err.Error(), tt.failed) {
				t.Fatalf("%q, %v", got, err)
			}
			if fatal, ok := errors.AsType[*model.Error](err); ok != (tt.name == "a key is refused") {
				t.Errorf("%v", fatal)
			}
			for i := range last {
				req := tt.replies[i].got
				if len(req.Messages) != 1 || req.Messages[0].Content != "Why?" || *req.Seed != 40+i || req.MaxTokens != 500 || req.Episode != "e" {
					t.Errorf("reference %d was asked %+v with the seed %d", i, req, *req.Seed)
				}
			}
			system := ""
			if asked := tt.replies[last].got; tt.shown != nil {
				system = asked.Messages[0].Content
				if len(asked.Messages) != 2 || *asked.Seed != 40+last || asked.Messages[1].Content != "Why?" {
					t.Errorf("the aggregator was asked %+v", asked)
				}
			} else if asked.Messages != nil {
				t.Errorf("the aggregator was asked %+v", asked)
			}
			for i := range last {
				if said := tt.replies[i].says; strings.TrimSpace(said) != "" && strings.Contains(system, ">\n"+said+"\n<") != (tt.shown != nil) {
					t.Errorf("the aggregator was shown %s", system)
				}
			}
			for i, said := range about.Asked {
				if said.Usage != nil && said.Failed == "" && (said.CostUSD == nil || *said.CostUSD != 100 || said.Usage.Completion != 10 || said.Model != fmt.Sprintf("m%d-2026", i) || said.Answer == "") {
					t.Errorf("about %d: %+v", i, said)
				}
			}
		})
	}
}

func TestSettings(t *testing.T) {
	two := []moa.Model{{Model: "a"}, {Model: "b"}}
	for want, s := range map[string]moa.Settings{
		"":                              {References: two, Aggregator: moa.Model{Model: "c"}, AtLeast: 2},
		"references is empty":           {Aggregator: moa.Model{Model: "c"}},
		"reference 1 names no model":    {References: []moa.Model{{}}, Aggregator: moa.Model{Model: "c"}},
		"aggregator names no model":     {References: two},
		"at_least is 3 of 2 references": {References: two, Aggregator: moa.Model{Model: "c"}, AtLeast: 3},
		"timeout is 1h0m0s":             {References: two, Aggregator: moa.Model{Model: "c"}, Timeout: 3600e9},
		"17 references; at most 16":     {References: make([]moa.Model, 17), Aggregator: moa.Model{Model: "c"}},
		"retries is below 0":            {References: two, Aggregator: moa.Model{Model: "c"}, Retries: new(-1)},
	} {
		if err := s.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
	if err := (moa.Settings{}).Validate(); err != nil {
		t.Error(err)
	}
	here := moa.Settings{References: two, Aggregator: moa.Model{Model: "c"}}
	there := moa.Settings{References: []moa.Model{{Model: "a", BaseURL: "http://elsewhere/v1"}, {Model: "b"}}, Aggregator: moa.Model{Model: "c", APIKeyEnv: "KEY"}}
	warm := moa.Settings{References: []moa.Model{{Model: "a", Temperature: new(0.9)}, {Model: "b"}}, Aggregator: moa.Model{Model: "c"}}
	if here.Decides() != there.Decides() || here.Decides() == warm.Decides() || (moa.Settings{}).Decides() != "" {
		t.Errorf("%s, %s, %s", here.Decides(), there.Decides(), warm.Decides())
	}
}
