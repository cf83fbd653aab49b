package journal_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"trajgen/outputs/journal"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// What a journal gives back is what encoding/json makes of the same text, whatever the texts in it: quotes, escapes, lone
// surrogates, numbers at their bounds.
func TestJournalDecodesAsTheStandardLibrary(t *testing.T) {
	episodes := sinktest.Episodes(48)
	rapid.Check(t, func(t *rapid.T) {
		ep := sinktest.Episode(0, 0)
		text := rapid.OneOf(rapid.String(), rapid.StringN(0, 40, -1), rapid.Custom(func(t *rapid.T) string {
			return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		}))
		ep.Answer, ep.Messages[1].Content = text.Draw(t, "answer"), text.Draw(t, "content")
		ep.Calls[0].Result, ep.Messages[2].Calls[0].Arguments = text.Draw(t, "result"), text.Draw(t, "arguments")
		ep.Task.Env = rapid.MapOf(text, text).Draw(t, "env")
		ep.Task.Verify = []episode.Check{{Tests: episode.Files{"a": episode.File(text.Draw(t, "file"))}}}
		metadata, err := json.Marshal(rapid.MapOf(text, text).Draw(t, "metadata"))
		if err != nil {
			t.Fatal(err)
		}
		ep.Task.Metadata = metadata
		ep.LogP = rapid.Float64().Draw(t, "log_p")
		ep.Key.Seed = 1<<64 - 1 - uint64(len(episodes))
		ep.ID = ep.Key.ID()
		ep.Started = ep.Started.Add(1)
		episodes = append(episodes, ep)
	})
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, journal.Options{})
	fill(t, j, episodes)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r := reader(t, dir)
	for _, ep := range episodes {
		line, err := journal.Encode(ep)
		if err != nil {
			t.Fatal(err)
		}
		want := new(episode.Episode)
		if err := json.Unmarshal(line, want); err != nil {
			t.Fatal(err)
		}
		got, err := r.Episode(ep.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("episode %s (-encoding/json +journal):\n%s", ep.ID, diff)
		}
	}
}
