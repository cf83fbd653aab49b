package corpus_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trajgen/tools/web/corpus"
	"trajgen/tools/web/source"
)

// small is an index with a bit of everything, and its file.
func small(t testing.TB) (path string, file []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "small.corpus")
	documents := zipf(90, 400, 7) // more than a block of each table
	if _, err := corpus.Build(t.Context(), path, from(documents...), corpus.Options{}); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, file
}

// said is all that can be learnt of an index: what a search finds, and a document. A failure is its error.
func said(t testing.TB, path string) (text string, failed error) {
	t.Helper()
	index, err := corpus.Open(path)
	if err != nil {
		return "", err
	}
	defer index.Close()
	var all strings.Builder
	for _, query := range []string{word(0), word(3) + " " + word(200), "unheard"} {
		hits, err := index.Search(t.Context(), query, 15)
		failed = errors.Join(failed, err)
		for _, hit := range hits {
			fmt.Fprintf(&all, "%v\n", hit)
		}
	}
	for n := range 91 {
		keys := []string{fmt.Sprintf("d%d", n)}
		if n%10 == 0 {
			keys = append(keys, fmt.Sprintf("https://x.test/%d", n))
		}
		for _, key := range keys {
			d, err := index.Document(t.Context(), key)
			if ours, ok := errors.AsType[*source.Error](err); ok && ours.Class == source.NotInCorpus {
				all.WriteString("none\n")
				continue
			}
			failed = errors.Join(failed, err)
			fmt.Fprintf(&all, "%v\n", d)
		}
	}
	return all.String(), failed
}

// TestDamage changes bytes all over the file: each change is an error, or nothing that was read differs.
func TestDamage(t *testing.T) {
	path, file := small(t)
	want, err := said(t, path)
	if err != nil || strings.Count(want, "none\n") != 2 {
		t.Fatalf("%v: %s", err, want)
	}
	found, r := 0, rand.New(rand.NewPCG(1, 1))
	const tries = 250
	for try := range tries {
		at := r.IntN(len(file))
		if try%4 == 0 {
			at = r.IntN(4096) // the header
		}
		bad := bytes.Clone(file)
		bad[at] ^= 1 << r.IntN(8)
		broken := filepath.Join(t.TempDir(), "bad")
		if err := os.WriteFile(broken, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := said(t, broken)
		if err != nil {
			found++
			if ours, ok := errors.AsType[*source.Error](err); ok && ours.Blame != source.Operator {
				t.Errorf("byte %d: the blame of %v", at, err)
			}
		} else if got != want {
			t.Errorf("a change of byte %d gives other results without an error", at)
		}
	}
	if found < tries/2 {
		t.Errorf("%d of %d changes are errors", found, tries)
	}
}

func TestOpenRefuses(t *testing.T) {
	_, file := small(t)
	for name, tt := range map[string]struct {
		give []byte
		want string
	}{
		"empty":           {nil, "not an index"},
		"text":            {bytes.Repeat([]byte("some text\n"), 1000), "not an index"},
		"another version": {bytes.Replace(file, []byte("corpus 2\n"), []byte("corpus 1\n"), 1), "another version"},
		"the head alone":  {file[:4096], "cut off"},
		"half":            {file[:len(file)/2], "cut off"},
		"a byte less":     {file[:len(file)-1], "cut off"},
		"a byte more":     {append(bytes.Clone(file), 0), "something was added"},
		"a wrong number":  {bytes.Replace(file, []byte(`"documents":90`), []byte(`"documents":91`), 1), "header is damaged"},
	} {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, tt.give, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := corpus.Open(path); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, err := corpus.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := corpus.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("a directory: %v", err)
	}
}

// TestCutOffWhileOpen takes the file away under an open index, as a failing disk does.
func TestCutOffWhileOpen(t *testing.T) {
	path, _ := small(t)
	index := open(t, path)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	_, err := index.Search(t.Context(), word(0), 5)
	if ours, ok := errors.AsType[*source.Error](err); !ok || ours.Blame != source.Operator {
		t.Errorf("search: %v", err)
	}
	if _, err := index.Document(t.Context(), "d1"); err == nil {
		t.Error("a document of a file without bytes")
	}
}

// TestKilledBuild kills builds at random moments: under the final name there is nothing, or all of it.
func TestKilledBuild(t *testing.T) {
	if path := os.Getenv("CORPUS_TEST_BUILD"); path != "" {
		for {
			if _, err := corpus.Build(t.Context(), path, from(zipf(300, 2000, 9)...), corpus.Options{Memory: 100_000}); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "killed.corpus")
	for range 20 {
		child := exec.Command(os.Args[0], "-test.run", "^TestKilledBuild$")
		child.Env = append(os.Environ(), "CORPUS_TEST_BUILD="+path)
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(50+rand.IntN(150)) * time.Millisecond) // the moment is what is random here
		_ = child.Process.Kill()
		_ = child.Wait()
		if _, err := os.Stat(path); err == nil {
			index, err := corpus.Open(path)
			if err != nil {
				t.Fatalf("half an index: %v", err)
			}
			if index.Len() != 300 {
				t.Errorf("%d documents", index.Len())
			}
			index.Close()
			os.Remove(path)
		}
	}
	if _, err := corpus.Build(t.Context(), path, from(zipf(3, 20, 9)...), corpus.Options{}); err != nil {
		t.Errorf("over what the killed ones left: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left %v", left)
	}
}

// FuzzIndex changes bytes that no checksum protects: whatever they say, there are errors or results, and no panic.
func FuzzIndex(f *testing.F) {
	corpus.WithoutChecksums(f)
	_, file := small(f)
	f.Add(uint32(0), []byte{1})
	f.Add(uint32(4096), bytes.Repeat([]byte{0xff}, 64))
	for at := 100; at < len(file); at += len(file) / 20 {
		f.Add(uint32(at), []byte{0, 0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1})
	}
	path := filepath.Join(f.TempDir(), "bad")
	f.Fuzz(func(t *testing.T, at uint32, patch []byte) {
		bad := bytes.Clone(file)
		copy(bad[int(at)%len(bad):], patch)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = said(t, path)
	})
}
