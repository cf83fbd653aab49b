package journal_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"trajgen/outputs/journal"
	"trajgen/outputs/sinktest"
)

// FuzzJournal feeds a reader and a writer segments of any bytes. Neither may panic; what they accept they must agree
// on; and a journal that was mended must open without a word the next time.
func FuzzJournal(f *testing.F) {
	seed := f.TempDir()
	j, err := journal.Open(seed, journal.Options{})
	if err != nil {
		f.Fatal(err)
	}
	for _, ep := range sinktest.Episodes(3) {
		if err := j.Append(context.Background(), ep); err != nil {
			f.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(seed, "000001.seg"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, []byte(nil))
	f.Add(whole[:len(whole)-7], whole)
	f.Add(whole, whole[:100])
	f.Add(bytes.Replace(whole, []byte("success"), []byte("failure"), 1), []byte("tgJ\x01"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		dir := t.TempDir()
		for name, content := range map[string][]byte{"000001.seg": first, "000002.seg": second} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		read := -1
		if r, err := journal.OpenReader(dir); err == nil {
			read = r.Len()
			for _, err := range r.Episodes(t.Context()) {
				if _, damaged := errors.AsType[*journal.ErrDamaged](err); err != nil && !damaged {
					t.Errorf("Episodes: %v, want an *ErrDamaged", err)
				}
			}
			r.Close()
		} else if _, damaged := errors.AsType[*journal.ErrDamaged](err); !damaged {
			t.Errorf("OpenReader: %v, want an *ErrDamaged", err)
		}
		j, err := journal.Open(dir, journal.Options{})
		if err != nil {
			if _, damaged := errors.AsType[*journal.ErrDamaged](err); !damaged {
				t.Errorf("OpenJournal: %v, want an *ErrDamaged", err)
			}
			return
		}
		if j.Len() != read {
			t.Errorf("the journal holds %d episodes, a reader saw %d", j.Len(), read)
		}
		ep := sinktest.Episode(1_000_000, 0)
		if err := j.Append(t.Context(), ep); err != nil {
			t.Errorf("Append: %v", err)
		}
		length := j.Len()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		torn, err := fs.Glob(os.DirFS(dir), "*.torn")
		if err != nil {
			t.Fatal(err)
		}
		again, err := journal.Open(dir, journal.Options{})
		if err != nil {
			t.Fatalf("open a mended journal: %v", err)
		}
		defer again.Close()
		still, err := fs.Glob(os.DirFS(dir), "*.torn")
		if err != nil || len(still) != len(torn) || again.Len() != length {
			t.Errorf("a mended journal: %d episodes, torn ends %v (%v); want %d and %v", again.Len(), still, err, length, torn)
		}
	})
}

// FuzzDamaged repairs segments and an index file of any bytes. What it leaves opens, and there is nothing more to repair.
func FuzzDamaged(f *testing.F) {
	seed := f.TempDir()
	j, err := journal.Open(seed, journal.Options{SegmentBytes: 1})
	if err != nil {
		f.Fatal(err)
	}
	for _, ep := range sinktest.Episodes(2) {
		if err := j.Append(context.Background(), ep); err != nil {
			f.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		f.Fatal(err)
	}
	content := make(map[string][]byte)
	for _, name := range []string{"000001.seg", "000001.idx", "000002.seg", "000002.end"} {
		if content[name], err = os.ReadFile(filepath.Join(seed, name)); err != nil {
			f.Fatal(err)
		}
	}
	first, index, second, end := content["000001.seg"], content["000001.idx"], content["000002.seg"], content["000002.end"]
	f.Add(first, index, second, end)
	f.Add(first[:len(first)/2], index, second, end)
	f.Add(bytes.Repeat(first, 2), index, []byte(nil), end)
	f.Add(bytes.Replace(first, []byte("success"), []byte("failure"), 1), []byte("tgX\x01"), second[:70], []byte(nil))
	f.Add(second, index[:30], append(bytes.Clone(second[:200]), first...), index)
	f.Fuzz(func(t *testing.T, first, index, second, end []byte) {
		dir, idle := scratch(t), &faultyDisk{idle: true, forgets: true}
		for name, content := range map[string][]byte{"000001.seg": first, "000001.idx": index, "000002.seg": second, "000002.end": end} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := journal.Repair(t.Context(), dir, true, idle); err != nil {
			t.Fatal(err)
		}
		j, err := journal.Open(dir, journal.Options{Disk: idle})
		if err != nil {
			t.Fatalf("open what was repaired: %v", err)
		}
		entries := j.Entries()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := journal.OpenReader(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if len(entries) != r.Len() {
			t.Errorf("the journal holds %d episodes, a reader %d", len(entries), r.Len())
		}
		for _, err := range r.Episodes(t.Context()) {
			if err != nil {
				t.Errorf("after the repair: %v", err)
			}
		}
		again, _, err := journal.Repair(t.Context(), dir, true, idle)
		if err != nil || len(again) > 0 {
			t.Errorf("a second repair found %v, %v", again, err)
		}
	})
}
