package export_test

import (
	"encoding/json"
	"slices"
	"testing"

	"trajgen/outputs/export"
	"trajgen/pipeline/episode"
)

// Words that the harness put into the model's mouth are never trained on without a word about it.
func TestWordsOfTheHarnessAreSaid(t *testing.T) {
	const note = "episodes with assistant messages of the dataset or the harness, which are trained on like the model's (--without-harness leaves the harness's out): 1"
	first := chat(user("q"), episode.Message{Role: "assistant", Content: "I will", Harness: true}, episode.Message{Role: "assistant", Content: "do"})
	later := chat(user("q"), episode.Message{Role: "assistant", Content: "do"}, episode.Message{Role: "assistant", Content: "I will", Harness: true}, user("go on"), episode.Message{Role: "assistant", Content: "did"})
	for _, format := range []string{"trl", "trl-prompt-completion", "sharegpt", "verl-sft"} {
		if result := write(t, format, nil, later); !slices.Contains(result.Notes, note) {
			t.Errorf("%s: notes %q, want %q", format, result.Notes, note)
		}
		inPrompt := format == "trl-prompt-completion"
		if result := write(t, format, nil, first); slices.Contains(result.Notes, note) == inPrompt {
			t.Errorf("%s with a prefill: notes %q", format, result.Notes)
		}
	}
}

// What was done to an episode behind its last turn is not a message of it.
func TestATIFHasNoStepBehindTheLast(t *testing.T) {
	ep := chat(user("q"), episode.Message{Role: "assistant", Content: "a"})
	ep.Compactions = []episode.Compaction{{Turn: len(ep.Turns), Strategy: "outline", Before: 7, After: 7}}
	var trajectory struct {
		Steps []struct{ Source string }
		Extra struct{ Compactions []episode.Compaction }
	}
	line := linesOf(t, exported(t, "atif-lines", []*episode.Episode{ep}, export.Options{}))[0]
	if err := json.Unmarshal(line, &trajectory); err != nil {
		t.Fatal(err)
	}
	if len(trajectory.Steps) != 2 || len(trajectory.Extra.Compactions) != 1 {
		t.Errorf("%d steps and %d compactions in extra, want 2 and 1", len(trajectory.Steps), len(trajectory.Extra.Compactions))
	}
}
