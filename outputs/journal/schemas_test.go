package journal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
)

// TestTools holds what is remembered of tools against what encoding/json writes, over more lists of them than are
// remembered, twice each.
func TestTools(t *testing.T) {
	dir := t.TempDir()
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var want []*episode.Episode
	for i := range 1200 {
		tools := []json.RawMessage{
			json.RawMessage(fmt.Sprintf(`{"type":"function","function":{"name":"tool%d","description":"<&> \u2028"}}`, i%600)),
			json.RawMessage("{ \"name\" : \"other\" }"), // white space goes
		}
		ep := &episode.Episode{ID: fmt.Sprintf("ep_%026d", i), Schema: episode.SchemaVersion, Row: i, Attempt: 1, Outcome: episode.Success, Toolsets: []string{}, Tools: tools[:i%3],
			Messages: []episode.Message{{Role: "user", Content: `"tools":[]` + string(tools[0])}}}
		var plain bytes.Buffer
		enc := json.NewEncoder(&plain)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(ep); err != nil {
			t.Fatal(err)
		}
		got, err := journal.Encode(ep)
		if err != nil || !bytes.Equal(got, plain.Bytes()) {
			t.Fatalf("Encode = %s, %v, want %s", got, err, plain.Bytes())
		}
		if err := j.Append(t.Context(), ep); err != nil {
			t.Fatal(err)
		}
		back := new(episode.Episode)
		if err := json.Unmarshal(got, back); err != nil {
			t.Fatal(err)
		}
		want = append(want, back)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := journal.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := 0
	for ep, err := range r.Episodes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[n], ep); diff != "" {
			t.Fatalf("episode %d (-want +got):\n%s", n, diff)
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d episodes, want %d", n, len(want))
	}
}
