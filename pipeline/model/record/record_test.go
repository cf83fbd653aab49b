package record_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"trajgen/pipeline/model/record"
)

// both opens a recorder with a tape and with turns, which are closed at the test's end.
func both(t *testing.T, dir string, more bool) *record.Recorder {
	t.Helper()
	tape, err := record.OpenTape(filepath.Join(dir, "tape"), more, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return &record.Recorder{Tape: tape, Turns: openTurns(t, dir, record.TurnsOptions{})}
}

func closeBoth(t *testing.T, r *record.Recorder) {
	t.Helper()
	if err := r.Tape.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Turns.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestResume records a play that two processes shared: what the second one made again counts once.
func TestResume(t *testing.T) {
	dir := t.TempDir()
	add := func(r *record.Recorder, x *record.Exchange) {
		t.Helper()
		if err := r.Tape.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	step := func(r *record.Recorder, text string) {
		t.Helper()
		if err := r.Record("e", 1, []byte(text), true); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(more bool) *record.Recorder {
		t.Helper()
		r := both(t, dir, more)
		if err := r.Tape.Begin("run", record.Session{}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	recall := func(r *record.Recorder, want ...string) {
		t.Helper()
		steps, err := r.Recall("e", 1)
		if err != nil {
			t.Fatal(err)
		}
		check(t, texts(steps), want...)
	}
	first := begin(false)
	add(first, agent("e", 0, 0, "a"))
	step(first, "0")
	add(first, agent("e", 1, 0, "a", "b"))
	step(first, "1")
	add(first, agent("e", 2, 0, "a", "b", "lost")) // answered, and not in the record of its episode
	closeBoth(t, first)

	second := begin(true)
	recall(second, "0", "1")
	add(second, agent("e", 2, 0, "a", "b", "c"))
	step(second, "2")
	closeBoth(t, second)

	third := begin(true)
	recall(third, "0", "1", "2")
	closeBoth(t, third)
	played := open(t, filepath.Join(dir, "tape"))
	for turn, messages := range [][]string{{"a"}, {"a", "b"}, {"a", "b", "c"}} {
		x := agent("e", turn, 0, messages...)
		if _, err := played.Next(x.Asker, turn, x.Request); err != nil {
			t.Errorf("turn %d: %v", turn, err)
		}
	}
	if _, err := played.Next(agent("e", 3, 0).Asker, 3, ask("a", "b", "c", "d")); err == nil {
		t.Error("a fourth exchange is on the tape")
	}
}

// TestDamageBesideATape holds that what a damaged record still says is said where a tape is recorded, too: it was paid for.
func TestDamageBesideATape(t *testing.T) {
	dir := t.TempDir()
	r := both(t, dir, false)
	for _, text := range []string{`{"n":0}`, `{"n":1}`, `{"n":2}`} {
		if err := r.Record("a", 1, []byte(text), true); err != nil {
			t.Fatal(err)
		}
	}
	closeBoth(t, r)
	path := filepath.Join(dir, record.TurnsName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[bytes.Index(data, []byte(`"n":1`))] ^= 1
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	r = both(t, dir, true)
	defer closeBoth(t, r)
	kept, err := r.Recall("a", 1)
	if got := string(bytes.Join(kept, []byte(" "))); err == nil || got != `{"n":0} {"n":2}` {
		t.Errorf("%s, %v", got, err)
	}
}
