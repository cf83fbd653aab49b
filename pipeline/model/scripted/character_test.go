package scripted_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
)

// counting reads a number, writes it down and says it.
func counting() *episode.Task {
	return &episode.Task{
		ID: "counting", Prompt: []episode.Message{{Role: "user", Content: "Count."}}, Verify: []episode.Check{{Exact: []string{"It is 4217."}}},
		Gold: []episode.Step{
			gold("", "read_file", `{"path":"n.txt"}`), gold("", "write_file", `{"path":"out","content":"n\n4217 of 14217"}`), {Content: "It is 4217."},
		},
	}
}

const (
	right  = `{"content":"n\n4217\n"}`
	wrong  = `{"content":"n\n4971\n"}`
	failed = `{"error":"cannot read n.txt: resource temporarily unavailable"}`
)

// giving gives results one after the other to all calls but of write_file.
func giving(results ...string) func(tool string) string {
	return func(tool string) (result string) {
		if tool == "write_file" {
			return `{"bytes_written":15}`
		}
		result, results = results[0], results[1:]
		return result
	}
}

// twins plays an episode without faults, and then twins of it, whose calls get the results that are given.
func twins(t *testing.T, policy string, n int, results ...string) (said []string) {
	server := newServer(t, scripted.Config{Policy: policy, Seed: 7}, counting())
	remembered := map[string][]episode.Message{}
	server.Remember(nil)
	clean := begin(t, server, counting(), "clean", "read_file", "write_file", "terminal")
	clean.result = giving(right)
	clean.play(9)
	if got := lines(t, clean); len(got) != 3 || got[2] != "It is 4217." {
		t.Fatalf("%s plays without faults %q", policy, got)
	}
	var recorded []episode.Message
	for _, m := range clean.messages {
		var kept struct {
			Role, Content string
			Answers       string                `json:"tool_call_id"`
			Calls         []struct{ ID string } `json:"tool_calls"`
		}
		text, _ := json.Marshal(m)
		_ = json.Unmarshal(text, &kept)
		message := episode.Message{Role: kept.Role, Content: kept.Content, ToolCallID: kept.Answers}
		for _, c := range kept.Calls {
			message.Calls = append(message.Calls, episode.Call{ID: c.ID})
		}
		recorded = append(recorded, message)
	}
	for _, owner := range scripted.Owners(&episode.Episode{Messages: recorded}) {
		remembered[owner] = recorded
	}
	server.Remember(func(owner string) ([]episode.Message, bool) { m, ok := remembered[owner]; return m, ok })
	for i := range n {
		c := begin(t, server, counting(), fmt.Sprint("twin ", i), "read_file", "write_file", "terminal")
		c.messages = slices.Clone(clean.messages[:len(c.messages)+2]) // with the call and its result
		c.messages[len(c.messages)-1] = map[string]any{
			"role": "tool", "tool_call_id": clean.messages[len(c.messages)-1]["tool_call_id"], "content": results[0],
		}
		c.result = giving(results[1:]...)
		c.play(9)
		said = append(said, strings.Join(lines(t, c)[1:], " "))
	}
	return said
}

// lines are what the assistant said and called.
func lines(t *testing.T, c *conversation) (all []string) {
	t.Helper()
	for _, m := range c.messages {
		if m["role"] != "assistant" {
			continue
		}
		var a answer
		text, _ := json.Marshal(m)
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatal(err)
		}
		all = append(all, a.String())
	}
	return all
}

// TestCharacters counts what characters do: each by its chances, and nothing else.
func TestCharacters(t *testing.T) {
	t.Parallel()
	const (
		write  = `|write_file({"path":"out","content":"n\n4217 of 14217"}) It is 4217.`
		copied = `|write_file({"path":"out","content":"n\n4971 of 14217"}) It is 4971.`
		again  = `|read_file({"path":"n.txt"}) `
		enough = "I give up."
	)
	all := func(text string) map[string]float64 { return map[string]float64{text: 1} }
	tests := []struct {
		policy, name string
		results      []string
		want         map[string]float64 // what is said, and how often
	}{
		{"retrier:0.9", "a placebo", []string{right}, all(write)},
		{"retrier:0.9", "an error", []string{failed, right}, map[string]float64{again + write: 0.9, enough: 0.1}},
		{"retrier:1", "errors without end", []string{failed, failed, failed, failed}, all(again + again + again + enough)},
		{"retrier:0.9", "a wrong value", []string{wrong}, all(copied)},
		{"giver_up", "an error", []string{failed}, all(enough)},
		{"giver_up", "a shell's error", []string{`{"output":"bash: fork: Cannot allocate memory","exit_code":254,"error":null}`}, all(enough)},
		{"gullible:0.5", "an error", []string{failed, right}, map[string]float64{write: 0.5, again + write: 0.5}},
		{"gullible:0.5", "a wrong value", []string{wrong}, all(copied)},
		{"checker:0.8,0.9", "a wrong value", []string{wrong, right}, map[string]float64{again + write: 0.72, again + copied: 0.08, copied: 0.2}},
		{"checker:1,1", "a value that stays wrong", []string{wrong, wrong}, all(again + copied)},
		{"checker:0.8,0.9", "an error", []string{failed, right}, map[string]float64{again + write: 0.9, enough: 0.1}},
		{"switcher:0.9", "an error", []string{failed, `{"output":"     1\tn"}`}, map[string]float64{`|terminal({"command":"cat -n -- n.txt"}) ` + write: 0.9, enough: 0.1}},
		{"switcher:1", "both fail", []string{failed, failed}, all(`|terminal({"command":"cat -n -- n.txt"}) ` + enough)},
		{"switcher:0", "a wrong value", []string{wrong}, all(copied)},
		{"giver_up", "a page of an error", []string{`<html><h1>502 Bad Gateway</h1></html>`}, all(enough)},
		{"giver_up", "content that is gone", []string{`{"content":""}`}, all(write)},
	}
	for _, tt := range tests {
		const n = 500
		count := map[string]float64{}
		for _, said := range twins(t, tt.policy, n, tt.results...) {
			count[said] += 1.0 / n
		}
		for said, share := range count {
			p := tt.want[said]
			if within := 3.5 * math.Sqrt(p*(1-p)/n); math.Abs(share-p) > within+1e-9 {
				t.Errorf("%s, %s: %.3f of the twins say %q, want %.3f", tt.policy, tt.name, share, said, p)
			}
		}
	}
}

// TestCharactersWithoutMemory act on what is loud, and believe the rest.
func TestCharactersWithoutMemory(t *testing.T) {
	t.Parallel()
	server := newServer(t, scripted.Config{Policy: "retrier:1"}, counting())
	c := begin(t, server, counting(), "e", "read_file", "write_file")
	c.result = giving(failed, wrong)
	c.play(9)
	if got := lines(t, c); len(got) != 4 || got[1] != got[0] || got[3] != "It is 4217." {
		t.Errorf("it plays %q, want a call more and the answer", got)
	}
}

func TestCharactersAreChecked(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"retrier", "retrier:", "retrier:2", "retrier:x", "retrier:NaN", "giver_up:0.5", "giver_up:", "checker:0.8", "checker:0.8,0.9,1"} {
		if _, err := scripted.New(scripted.Config{Policy: policy}); err == nil || !strings.Contains(err.Error(), "want "+strings.Split(policy, ":")[0]) {
			t.Errorf("policy %s: %v, want an error with an example", policy, err)
		}
	}
	if _, err := scripted.New(scripted.Config{Policy: "giver_up", ToolFormat: "hermes"}); err == nil || !strings.Contains(err.Error(), "tool format") {
		t.Errorf("a tool format: %v", err)
	}
}
