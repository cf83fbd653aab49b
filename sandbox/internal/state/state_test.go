package state_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"trajgen/sandbox/internal/state"
)

// TestRecords holds that the files of sandboxes that are gone serve again, and that nothing shows of what was in them.
func TestRecords(t *testing.T) {
	dir := t.TempDir()
	i, err := state.Create(dir, state.Owner{Backend: "native", PID: 7})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	listed := func(want ...string) {
		t.Helper()
		records, err := state.List(dir)
		must(err)
		var got []string
		for _, r := range records {
			got = append(got, fmt.Sprint(r.ID, " ", r.PID, " ", r.Owner, " ", !r.Started.IsZero()))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("listed: got %v, want %v", got, want)
		}
	}
	long := strings.Repeat("a", 128)
	for range 100 {
		must(i.Add(long, 4194304))
		must(i.Add("b", 2))
		must(i.Remove(long))
		must(i.Remove("b"))
	}
	must(i.Add("b", 1))
	must(i.Add("b", 2)) // the same with another guest
	must(i.Remove("unknown"))
	listed("b 2 7 true")
	entries, err := os.ReadDir(i.Dir)
	must(err)
	if len(entries) > 8 {
		t.Errorf("after two sandboxes at a time: %d files, %v", len(entries), entries)
	}
	if err := i.Add(strings.Repeat("a", 1024), 1); err == nil {
		t.Error("an id of 1024 bytes: got no error")
	}
	must(i.Close())
	listed()
}
