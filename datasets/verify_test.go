package datasets_test

import (
	"encoding/json"
	"slices"
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

		"contains": {`{"contains": ["A", 7], "match": "all", "case": "ignore", "trim": "all", "unicode": "nfkc"}`, "a and ７", "a"},
		"json":     {`{"json": {"schema": {"type": "object", "required": ["n"]}, "equal": {"n": 1.0, "m": null}}}`, `{"n": 1, "m": null}`, `{"n": 1}`},
		"similar":  {`{"similar": "the cat", "measure": "f1", "threshold": 0.9}`, "Cat!", "dog"},
	}
	elsewhere := []string{"command", "python", "site_state", "home_state", "outbox"}
	for _, kind := range reward.Kinds() {
		if !slices.Contains(reward.Keys()[kind], kind) || slices.Contains(elsewhere, kind) {
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

// TestVerifierForms has other ways to say the same.
func TestVerifierForms(t *testing.T) {
	n := 4.0
	for give, want := range map[string]episode.Check{
		`{"exact": ["4", 5]}`:                         {Exact: episode.Texts{"4", "5"}},
		`{"exact": "[1, 2]"}`:                         {Exact: episode.Texts{"[1, 2]"}},
		`{"number": 4, "tolerance": "1%"}`:            {Number: &n, Relative: 0.01},
		`{"number": 4, "relative": 0.01}`:             {Number: &n, Relative: 0.01},
		`{"number": 4, "unit": "km"}`:                 {Number: &n, Unit: "km"},
		`{"json": "{\"equal\": {\"/a\": [ null ]}}"}`: {JSON: &episode.JSONCheck{Equal: map[string]json.RawMessage{"/a": json.RawMessage("[null]")}}},
	} {
		tasks := read(t, write(t, "tasks.jsonl", `{"prompt": "a", "verify": `+give+`}`), datasets.Options{})
		if diff := cmp.Diff([]episode.Check{want}, tasks[0].Verify); diff != "" {
			t.Errorf("%s (-want +got):\n%s", give, diff)
		}
	}
}
