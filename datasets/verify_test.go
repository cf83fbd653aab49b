package datasets_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
)

// TestVerifiers has an example of each kind of check that looks at the answer, with an answer that is right and one that is
// not: what a dataset says is read, goes into a journal and judges.
func TestVerifiers(t *testing.T) {
	examples := map[string]struct{ verify, right, wrong string }{
		"exact":  {`{"exact": "4"}`, " 4\n", "four"},
		"number": {`{"number": "4", "tolerance": 0.5}`, "2 and 2 are 4.2", "4 is not 5"},
		"regex":  {`{"regex": "^(a|b)+$"}`, "abba", "abc"},
	}
	for key, kind := range reward.Keys() {
		if key != kind || kind == "command" || kind == "site_state" || kind == "home_state" || kind == "outbox" {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			example, ok := examples[kind]
			if !ok {
				t.Fatal("it has no example")
			}
			row := `{"prompt": "a", "verify": ` + example.verify + `}`
			checks := read(t, write(t, "tasks.jsonl", row), datasets.Options{})[0].Verify
			if got, err := reward.Kind(checks[0]); err != nil || got != kind {
				t.Errorf("Kind = %q, %v, want %s", got, err, kind)
			}
			var kept []episode.Check
			if line, err := json.Marshal(checks); err != nil || json.Unmarshal(line, &kept) != nil || !cmp.Equal(kept, checks) {
				t.Errorf("a journal keeps %s, %v", line, err)
			}
			for answer, want := range map[string]float64{example.right: 1, example.wrong: 0} {
				if _, got, err := reward.Verify(t.Context(), kept, reward.Subject{Answer: answer}); err != nil || got != want {
					t.Errorf("Verify of %q = %v, %v, want %v", answer, got, err, want)
				}
			}
		})
	}
}
