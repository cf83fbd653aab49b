package state_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
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

// TestLookersOn holds that instances begin and end while others list and sweep.
func TestLookersOn(t *testing.T) {
	dir := t.TempDir()
	end := make(chan struct{})
	var lookers sync.WaitGroup
	for range 4 {
		lookers.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				_, listed := state.List(dir)
				_, swept := state.Sweep(dir, func(string, state.Owner) error { return nil })
				if err := errors.Join(listed, swept); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range 300 {
		i, err := state.Create(dir, state.Owner{Backend: "native", PID: n})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(i.Add("b", n), i.Close()); err != nil {
			t.Errorf("instance %d: %v", n, err)
		}
	}
	close(end)
	lookers.Wait()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 1 { // the guard
		t.Errorf("left behind: %v, %v", left, err)
	}
}
