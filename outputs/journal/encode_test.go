package journal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
)

// An episode is written as encoding/json has it, and read back as the same.
func TestEncodeIsOneForm(t *testing.T) {
	dir := t.TempDir()
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 32<<10)
	var want [][]byte
	for i := range 60 {
		tools := []json.RawMessage{
			json.RawMessage(fmt.Sprintf(`{"type":"function","function":{"name":"tool%d","description":"<&> \u2028%s"}}`, i%30, long)),
			json.RawMessage("{ \"name\" : \"other\" }"), // white space goes
		}
		ep := &episode.Episode{ID: fmt.Sprintf("ep_%026d", i), Schema: episode.SchemaVersion, Row: i, Attempt: 1, Outcome: episode.Success, Toolsets: []string{}, Tools: tools[:i%3],
			Messages: []episode.Message{{Role: "user", Content: `"tools":[]` + string(tools[1])}}}
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
		want = append(want, got)
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
		if got, err := journal.Encode(ep); err != nil || !bytes.Equal(got, want[n]) {
			t.Fatalf("episode %d = %s, %v, want %s", n, got, err, want[n])
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d episodes, want %d", n, len(want))
	}
}
