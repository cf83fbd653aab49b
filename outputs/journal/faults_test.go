package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
)

// untilRefused appends until an error, and returns what was acknowledged and the error.
func untilRefused(t *testing.T, j *journal.Journal, from, to int) (done []*episode.Episode, err error) {
	t.Helper()
	for row := from; row < to; row++ {
		ep := small(row, 1, false)
		if err = j.Append(t.Context(), ep); err != nil {
			return done, err
		}
		done = append(done, ep)
	}
	return done, nil
}

// The disk takes so many bytes and no more, wherever that is: in a head, a meta, a payload, an index file.
func TestJournalFullAtAnyByte(t *testing.T) {
	base := scratch(t)
	for room := 0; room < 4500; room += 23 {
		dir := filepath.Join(base, "journal")
		left := room
		d := &faultyDisk{idle: true, fail: func(op operation) (int, error) {
			if left -= len(op.data); left >= 0 || len(op.data) == 0 {
				return len(op.data), nil
			}
			return max(0, left+len(op.data)), syscall.ENOSPC
		}}
		j := open(t, dir, journal.Options{SegmentBytes: 1500, Disk: d})
		done, err := untilRefused(t, j, 0, 40)
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "--resume") {
			t.Fatalf("room for %d bytes: %v, want %v", room, err, syscall.ENOSPC)
		}
		if diff := cmp.Diff(done, all(t, reader(t, dir))); diff != "" {
			t.Errorf("room for %d bytes (-want +got):\n%s", room, diff)
		}
		j.Close()
		j = open(t, dir, journal.Options{SegmentBytes: 1500, Disk: &faultyDisk{idle: true}}) // space was made
		more, err := untilRefused(t, j, len(done), len(done)+3)
		if err != nil {
			t.Fatalf("room for %d bytes, then more: %v", room, err)
		}
		if diff := cmp.Diff(append(done, more...), all(t, reader(t, dir))); diff != "" {
			t.Errorf("room for %d bytes, then more (-want +got):\n%s", room, diff)
		}
		j.Close()
		if torn, _ := filepath.Glob(filepath.Join(dir, "*.t*")); len(torn) > 0 {
			t.Errorf("room for %d bytes: left over: %v", room, torn)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// A sync that fails and then works proves nothing: the episode is not acknowledged, and no other is.
func TestJournalBelievesNoSecondSync(t *testing.T) {
	for _, truncates := range []bool{true, false} {
		dir := t.TempDir()
		syncs := 0
		d := &faultyDisk{fail: func(op operation) (int, error) {
			if op.kind == "sync" {
				if syncs++; syncs == 3 {
					return 0, syscall.EIO
				}
			}
			if op.kind == "truncate" && !truncates {
				return 0, syscall.EROFS
			}
			return len(op.data), nil
		}}
		j := open(t, dir, journal.Options{Disk: d})
		done, err := untilRefused(t, j, 0, 10)
		if len(done) != 2 || !errors.Is(err, syscall.EIO) {
			t.Errorf("%d episodes before %v, want 2 before %v", len(done), err, syscall.EIO)
		}
		if err := j.Append(t.Context(), small(20, 1, false)); !errors.Is(err, syscall.EIO) {
			t.Errorf("the next episode: %v, want what the first was refused for", err)
		}
		if j.Len() != 2 {
			t.Errorf("Len() = %d, want 2", j.Len())
		}
		j.Close()
		again := open(t, dir, journal.Options{})
		// What could not be taken back is whole and counts: to play it again would be to pay twice.
		if want := map[bool]int{true: 2, false: 3}[truncates]; again.Len() != want {
			t.Errorf("opened again: %d episodes, want %d", again.Len(), want)
		}
	}
}
