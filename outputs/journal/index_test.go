package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/journal"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// What another attempt follows is not a row, and resume goes on behind it.
func TestJournalPendingAttempts(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	play := func(row, attempt int, pending bool) *episode.Episode {
		ep := sinktest.Episode(row, 0)
		ep.Attempt, ep.Pending = attempt, pending
		fill(t, j, []*episode.Episode{ep})
		return ep
	}
	first := play(0, 1, true)
	final := play(0, 2, false)
	waits := play(1, 1, true)   // the runner dies here
	stands := play(2, 1, false) // an error that is played again later,
	again := play(2, 2, true)   // and fails
	lone := []journal.Entry{entryOf(final), entryOf(stands)}
	check := func(j *journal.Journal) {
		t.Helper()
		if diff := cmp.Diff(lone, j.Entries()); diff != "" || j.Len() != len(lone) {
			t.Errorf("journal, Len() = %d (-want +got):\n%s", j.Len(), diff)
		}
		if e, ok := j.Has(waits.ID); ok {
			t.Errorf("Has of a pending attempt = %+v", e)
		}
		if e, ok := j.Has(stands.ID); !ok || e != entryOf(stands) {
			t.Errorf("Has = %+v, %v, want %+v", e, ok, entryOf(stands))
		}
		for _, want := range [][]*episode.Episode{{first, final}, {waits}, {stands, again}} {
			entries := make([]journal.Entry, len(want))
			for i, ep := range want {
				entries[i] = entryOf(ep)
			}
			if diff := cmp.Diff(entries, j.Attempts(want[0].ID)); diff != "" {
				t.Errorf("Attempts (-want +got):\n%s", diff)
			}
			if e, ok := j.Last(want[0].ID); !ok || e != entries[len(entries)-1] {
				t.Errorf("Last = %+v, %v, want %+v", e, ok, entries[len(entries)-1])
			}
			ep, err := reader(t, dir).Last(want[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want[len(want)-1], ep); diff != "" {
				t.Errorf("Last (-want +got):\n%s", diff)
			}
			attempts, err := reader(t, dir).Attempts(want[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, attempts); diff != "" {
				t.Errorf("the reader's attempts (-want +got):\n%s", diff)
			}
		}
		if got := j.Attempts("nobody"); got != nil {
			t.Errorf("Attempts(nobody) = %v", got)
		}
		if _, ok := j.Last("nobody"); ok {
			t.Error("Last(nobody) is there")
		}
		if _, err := reader(t, dir).Attempts("nobody"); !errors.Is(err, journal.ErrNoEpisode) {
			t.Errorf("Attempts(nobody): %v", err)
		}
		if diff := cmp.Diff([]*episode.Episode{final, stands}, all(t, reader(t, dir))); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
	}
	check(j)
	j.Close()
	check(open(t, dir, journal.Options{}))
}

// Ids that are none of episode.Key, in any order of attempts, with and without an index file.
func TestJournalForeignIDs(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{SegmentBytes: 1})
	var want []journal.Entry
	for i, id := range []string{"x", "abcdefghijklmnopqrstuvwxy\n", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "ä", strings.Repeat("7", 26), strings.Repeat("a", 3000)} {
		for _, attempt := range []int{3, 1, 2} {
			ep := sinktest.Episode(i, 0)
			ep.ID, ep.Attempt = id, attempt
			fill(t, j, []*episode.Episode{ep})
			if attempt == 3 {
				want = append(want, entryOf(ep))
			}
		}
		if got := j.Attempts(id); len(got) != 3 || got[0].Attempt != 1 || got[2].Attempt != 3 {
			t.Errorf("attempts of %q = %v", id, got)
		}
	}
	j.Close()
	for range 2 {
		if diff := cmp.Diff(want, reader(t, dir).Entries()); diff != "" {
			t.Errorf("entries (-want +got):\n%s", diff)
		}
		indexes, err := filepath.Glob(filepath.Join(dir, "*.idx"))
		if err != nil || len(indexes) != 17 {
			t.Fatalf("index files: %v, %v", indexes, err)
		}
		for _, path := range indexes {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, reader(t, dir).Entries()); diff != "" {
			t.Errorf("entries without index files (-want +got):\n%s", diff)
		}
		open(t, dir, journal.Options{}).Close() // makes them again
	}
}

// An index file that does not fit its segment is made anew, whatever is wrong with it.
func TestJournalIndexFilesAreCopies(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{SegmentBytes: 1})
	episodes := sinktest.Episodes(3)
	fill(t, j, episodes)
	j.Close()
	path := filepath.Join(dir, "000001.idx")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(filepath.Join(dir, "000002.idx"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string][]byte{"empty": nil, "longer": append(bytes.Clone(good), 0)}
	for at := 0; at < len(good); at += 3 {
		flipped := bytes.Clone(good)
		flipped[at] ^= 0x40
		tests[fmt.Sprint("flip at ", at)] = flipped
		tests[fmt.Sprint("cut at ", at)] = good[:at]
	}
	for name, data := range tests {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(episodes, all(t, reader(t, dir))); diff != "" {
			t.Errorf("%s: reader (-want +got):\n%s", name, diff)
		}
	}
	// A whole one of another segment says that one of the two is not what it was.
	if err := os.WriteFile(path, other, 0o600); err != nil {
		t.Fatal(err)
	}
	var damage *journal.ErrDamaged
	if _, err := journal.Open(dir, journal.Options{}); !errors.As(err, &damage) {
		t.Errorf("an index of another segment: %v, want an *ErrDamaged", err)
	}
	if _, err := journal.OpenReader(dir); !errors.As(err, &damage) {
		t.Errorf("reader, an index of another segment: %v, want an *ErrDamaged", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	open(t, dir, journal.Options{}).Close()
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, good) {
		t.Errorf("the index was not made anew as it was: %v", err)
	}
}
