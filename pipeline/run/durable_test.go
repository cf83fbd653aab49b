package run

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"trajgen/outputs/turns"
	"trajgen/pipeline/model/tape"
)

// TestDamageBesideATape holds that what a damaged record still says is said where a tape is recorded, too: it was paid for.
func TestDamageBesideATape(t *testing.T) {
	dir := t.TempDir()
	log, err := turns.Open(dir, turns.Options{})
	if err != nil {
		t.Fatal(err)
	}
	recorder, err := tape.Record(filepath.Join(dir, "tape"), false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer recorder.Close()
	steps := taping{log, recorder}
	for _, text := range []string{`{"n":0}`, `{"n":1}`, `{"n":2}`} {
		if err := steps.Record(t.Context(), "a", 1, []byte(text), true); err != nil {
			t.Fatal(err)
		}
	}
	log.Close()
	path := filepath.Join(dir, turns.FileName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[bytes.Index(data, []byte(`"n":1`))] ^= 1
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if log, err = turns.Open(dir, turns.Options{}); err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	kept, err := taping{log, recorder}.Recall("a", 1)
	if got := string(bytes.Join(kept, []byte(" "))); err == nil || got != `{"n":0} {"n":2}` {
		t.Errorf("%s, %v", got, err)
	}
}
