package record_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/model/record"
)

func openTurns(t *testing.T, dir string, options record.TurnsOptions) *record.Turns {
	t.Helper()
	l, err := record.OpenTurns(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func add(t *testing.T, l *record.Turns, id string, attempt int, steps ...string) {
	t.Helper()
	for i, step := range steps {
		if err := l.Record(id, attempt, []byte(step), i%2 == 0); err != nil {
			t.Fatal(err)
		}
	}
}

func recall(t *testing.T, l *record.Turns, id string, attempt int) []string {
	t.Helper()
	steps, err := l.Recall(id, attempt)
	if err != nil {
		t.Fatalf("Recall(%s, %d): %v", id, attempt, err)
	}
	return texts(steps)
}

func texts(steps [][]byte) (all []string) {
	for _, step := range steps {
		all = append(all, string(step))
	}
	return all
}

func check(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestRecall(t *testing.T) {
	dir := t.TempDir()
	l := openTurns(t, dir, record.TurnsOptions{})
	add(t, l, "a", 1, "a0", "a1", "")
	add(t, l, "b", 1, "b0")
	add(t, l, "a", 2, "other")
	l.Close()
	l = openTurns(t, dir, record.TurnsOptions{Finished: func(id string, attempt int) bool { return id == "b" }})
	check(t, recall(t, l, "a", 1), "a0", "a1", "")
	check(t, recall(t, l, "a", 2), "other")
	check(t, recall(t, l, "b", 1))
	add(t, l, "a", 1, "a3")
	if err := l.Forget("a", 2); err != nil {
		t.Fatal(err)
	}
	check(t, recall(t, l, "a", 1), "a0", "a1", "", "a3")
	check(t, recall(t, l, "a", 2))
	l.Close()
	l = openTurns(t, dir, record.TurnsOptions{})
	check(t, recall(t, l, "a", 1), "a0", "a1", "", "a3")
}

// TestTurnsTornEnd cuts the file at every byte of its last frame: everything before is there, and more can be added.
func TestTurnsTornEnd(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, record.TurnsName)
	l := openTurns(t, dir, record.TurnsOptions{})
	add(t, l, "a", 1, "a0", "a1")
	whole := size(t, path)
	add(t, l, "a", 1, "the last one")
	l.Close()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for end := whole + 1; end < int64(len(all)); end++ {
		if err := os.WriteFile(path, all[:end], 0o644); err != nil {
			t.Fatal(err)
		}
		l := openTurns(t, dir, record.TurnsOptions{})
		check(t, recall(t, l, "a", 1), "a0", "a1")
		add(t, l, "a", 1, "again")
		l.Close()
		l = openTurns(t, dir, record.TurnsOptions{})
		check(t, recall(t, l, "a", 1), "a0", "a1", "again")
		l.Close()
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestFlippedBit flips a bit of every byte in front of the last frame. The other attempt never suffers; the one that was
// hit is said to be damaged, or has a beginning of its steps; and the log names the place.
func TestFlippedBit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, record.TurnsName)
	l := openTurns(t, dir, record.TurnsOptions{})
	add(t, l, "a", 1, "a0", "a1", "a2")
	hurt := size(t, path)
	add(t, l, "b", 1, "b0", "b1")
	l.Close()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range hurt {
		bad := bytes.Clone(all)
		bad[at] ^= 1 << (at % 8)
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		l := openTurns(t, dir, record.TurnsOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		check(t, recall(t, l, "b", 1), "b0", "b1")
		got, err := l.Recall("a", 1)
		if err == nil {
			// The head of the last frame is gone: whose it was is not known, and what is before it stands.
			check(t, texts(got), "a0", "a1")
		}
		if !strings.Contains(log.String(), "damaged") || !strings.Contains(log.String(), record.TurnsName) {
			t.Errorf("byte %d: the log says %q", at, log.String())
		}
		l.Close()
		// The damage was taken out of the file; that there was some is not forgotten with it, however often it moves.
		for range 2 {
			l = openTurns(t, dir, record.TurnsOptions{})
			again, errAgain := l.Recall("a", 1)
			check(t, texts(again), texts(got)...)
			if (errAgain == nil) != (err == nil) {
				t.Errorf("byte %d: damage is %v, and was %v", at, errAgain, err)
			}
			if err := l.Forget("b", 1); err != nil {
				t.Fatal(err)
			}
			l.Close()
		}
	}
}

// TestLeftover holds that what a writer left that died while it moved the file is taken away.
func TestLeftover(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, record.TurnsName+".new")
	if err := os.WriteFile(left, []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	openTurns(t, dir, record.TurnsOptions{})
	if _, err := os.Stat(left); err == nil {
		t.Error("it is still there")
	}
}

// TestCompaction holds that a file whose most is finished gives the room back, and keeps what is in play.
func TestCompaction(t *testing.T) {
	dir := t.TempDir()
	l := openTurns(t, dir, record.TurnsOptions{CompactBytes: 10_000})
	add(t, l, "kept", 1, "k0", "k1")
	big := strings.Repeat("x", 1000)
	for i := range 100 {
		id := fmt.Sprint("e", i)
		add(t, l, id, 1, big)
		if err := l.Forget(id, 1); err != nil {
			t.Fatal(err)
		}
		add(t, l, "kept", 1, fmt.Sprint(i))
	}
	if got := size(t, filepath.Join(dir, record.TurnsName)); got > 20_000 {
		t.Errorf("%d bytes", got)
	}
	if n := len(recall(t, l, "kept", 1)); n != 102 {
		t.Errorf("%d steps, want 102", n)
	}
	l.Close()
	openTurns(t, dir, record.TurnsOptions{Finished: func(string, int) bool { return true }})
	if got := size(t, filepath.Join(dir, record.TurnsName)); got != 0 {
		t.Errorf("%d bytes are left of what is finished", got)
	}
}

// TestConcurrent records for many episodes at once, while others are finished and the file moves.
func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	l := openTurns(t, dir, record.TurnsOptions{CompactBytes: 2000})
	var wait sync.WaitGroup
	for n := range 16 {
		wait.Go(func() {
			for e := range 10 {
				id := fmt.Sprintf("%d-%d", n, e)
				for s := range 5 {
					if err := l.Record(id, 1, fmt.Appendf(nil, "%s-%d", id, s), true); err != nil {
						t.Error(err)
						return
					}
				}
				if e < 9 {
					if err := l.Forget(id, 1); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wait.Wait()
	l.Close()
	l = openTurns(t, dir, record.TurnsOptions{})
	for n := range 16 {
		id := fmt.Sprintf("%d-9", n)
		check(t, recall(t, l, id, 1), id+"-0", id+"-1", id+"-2", id+"-3", id+"-4")
	}
}

// TestClosed holds that nothing is recorded where nothing can be.
func TestClosed(t *testing.T) {
	dir := t.TempDir()
	l := openTurns(t, dir, record.TurnsOptions{})
	add(t, l, "a", 1, "a0")
	l.Close()
	if err := l.Record("a", 1, []byte("x"), true); err == nil {
		t.Error("a closed file takes steps")
	}
	if _, err := record.OpenTurns(filepath.Join(dir, "none"), record.TurnsOptions{}); err == nil {
		t.Error("a directory that does not exist has a record")
	}
}

func FuzzOpenTurns(f *testing.F) {
	dir := f.TempDir()
	l, err := record.OpenTurns(dir, record.TurnsOptions{})
	if err != nil {
		f.Fatal(err)
	}
	for _, step := range []string{"one", "two"} {
		if err := l.Record("a", 1, []byte(step), false); err != nil {
			f.Fatal(err)
		}
	}
	l.Close()
	whole, err := os.ReadFile(filepath.Join(dir, record.TurnsName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(append(whole[5:], whole...))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, record.TurnsName), data, 0o644); err != nil {
			t.Fatal(err)
		}
		l := openTurns(t, dir, record.TurnsOptions{})
		steps, err := l.Recall("a", 1)
		if err != nil {
			return
		}
		if err := l.Record("a", 1, []byte("more"), false); err != nil {
			t.Fatal(err)
		}
		l.Close()
		l = openTurns(t, dir, record.TurnsOptions{})
		if after := recall(t, l, "a", 1); len(after) != len(steps)+1 || after[len(steps)] != "more" {
			t.Fatalf("%q, and then %q", steps, after)
		}
	})
}
