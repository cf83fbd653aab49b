package blobs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/outputs/log/blobs"
)

func TestStore(t *testing.T) {
	for _, packed := range []bool{false, true} {
		store := &blobs.Store{Dir: filepath.Join(t.TempDir(), "blobs"), Packed: packed}
		body := strings.Repeat("a picture ", 100)
		name, err := store.Keep([]byte(body))
		if again, err2 := store.Keep([]byte(body)); err != nil || err2 != nil || name != again || name != blobs.Digest([]byte(body)) {
			t.Fatalf("Keep = %q, %v, then %q, %v", name, err, again, err2)
		}
		files, err := filepath.Glob(filepath.Join(store.Dir, "*", "*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("two equal contents are %d files, %v", len(files), err)
		}
		if got, err := store.Get(name); err != nil || string(got) != body {
			t.Errorf("Get = %d bytes, %v", len(got), err)
		}
		if none, err := store.Keep(nil); none != "" || err != nil {
			t.Errorf("nothing is named %q, %v", none, err)
		}
		if err := os.WriteFile(files[0], []byte("another picture"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Get(name); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("what is damaged: %v", err)
		}
		if err := os.Remove(files[0]); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Get(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what is missing: %v", err)
		}
		if _, err := store.Get("../../etc/passwd"); err == nil {
			t.Error("a path is taken for a name")
		}
	}
}
