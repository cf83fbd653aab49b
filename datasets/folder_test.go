package datasets_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"trajgen/datasets"
)

// tree writes files below a directory. What is named .parquet becomes one, with a prompt for each word of its content.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".parquet") {
			content = parquetOf(t, strings.Fields(content))
		} else if strings.HasSuffix(name, ".jsonl") {
			content = jsonlOf(strings.Fields(content))
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func parquetOf(t *testing.T, prompts []string) string {
	t.Helper()
	type promptRow struct {
		Prompt string `parquet:"prompt"`
	}
	var rows []promptRow
	for _, prompt := range prompts {
		rows = append(rows, promptRow{prompt})
	}
	var out bytes.Buffer
	if err := parquet.Write(&out, rows); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func jsonlOf(prompts []string) string {
	var out strings.Builder
	for _, prompt := range prompts {
		fmt.Fprintf(&out, "{\"prompt\": %q}\n", prompt)
	}
	return out.String()
}

func prompts(t *testing.T, source *datasets.Source) string {
	t.Helper()
	var all []string
	for row, task := range collect(t, source) {
		if task.Row != row {
			t.Errorf("row %d of task %d: rows count through all files", task.Row, row)
		}
		all = append(all, task.Prompt[0].Content)
	}
	return strings.Join(all, " ")
}

const configs = `---
license: mit
pretty_name: The Thing
language: [en]
tags:
- agents
configs:
- config_name: main
  default: true
  data_files:
  - split: train
    path: main/train-*.jsonl
  - split: test
    path: [main/b.jsonl, main/a.jsonl]
- config_name: socratic
  data_files: "socratic/*.jsonl"
- config_name: mapped
  data_files: {held: socratic/y.jsonl}
- config_name: below
  data_dir: dir
---
# The Thing
`

func TestFolders(t *testing.T) {
	hub := map[string]string{
		"README.md": configs, "main/train-1.jsonl": "t1", "main/train-0.jsonl": "t0", "main/a.jsonl": "a", "main/b.jsonl": "b",
		"socratic/x.jsonl": "x", "socratic/y.jsonl": "y", "dir/eval.jsonl": "e", "dir/train.jsonl": "d",
	}
	plain := map[string]string{
		"README.md": "# No settings", "data/train-00000-of-00002.parquet": "a b", "data/train-00001-of-00002.parquet": "c", "data/test-00000-of-00001.parquet": "d",
		"data/gold-00000-of-00001-0123456789abcdef.parquet": "g", ".git/x.parquet": "", "LICENSE": "", "script.py": "", "dataset_infos.json": "{}",
	}
	words := map[string]string{"my-train-set.jsonl": "a", "dev/one.jsonl": "b", "two_TEST.jsonl": "c", "config.yaml": "a: b"}
	subsets := map[string]string{"en/train-00000-of-00001.parquet": "a", "en/test-00000-of-00001.parquet": "b", "de/train-00000-of-00001.parquet": "c"}
	flat := map[string]string{"b/1.jsonl": "three", "a/2.jsonl": "two", "a/1.jsonl": "one", "settings.json": "{}", "notes.txt": ""}
	tests := []struct {
		name          string
		files         map[string]string
		subset, split string
		want          string // prompts, or a part of the error
	}{
		{"a config by default", hub, "", "train", "t0 t1"},
		{"paths in their order", hub, "main", "test", "b a"},
		{"files alone are the train split", hub, "socratic", "", "x y"},
		{"a mapping of splits", hub, "mapped", "held", "y"},
		{"a directory of a config", hub, "below", "test", "e"},
		{"several splits", hub, "", "", "it has several splits: say --split test or train"},
		{"no such split", hub, "", "dev", `it has no split "dev" (have test, train)`},
		{"no such subset", hub, "mane", "", `it has no subset "mane" (have below, main, mapped, socratic)`},
		{"shards", plain, "", "train", "a b c"},
		{"a split of any name", plain, "", "gold", "g"},
		{"splits by name", plain, "", "", "say --split gold or test or train"},
		{"words", words, "", "validation", "b"},
		{"more words", words, "", "test", "c"},
		{"subsets", subsets, "en", "test", "b"},
		{"one split of a subset", subsets, "de", "", "c"},
		{"several subsets", subsets, "", "train", "it has several subsets: say --subset de or en"},
		{"files without splits", flat, "", "", "one two three"},
		{"no splits", flat, "", "train", "it has no splits; leave --split out"},
		{"saved by a library", map[string]string{"dataset_info.json": "{}", "state.json": "{}", "train/data-00000-of-00001.jsonl": "a", "extra/data-00000-of-00001.jsonl": "b"}, "", "extra", "b"},
		{"JSON alone", map[string]string{"a.json": `[{"prompt": "p"}]`}, "", "", "p"},
		{"several formats", map[string]string{"a.jsonl": "a", "b.parquet": "b"}, "", "", "several formats: 1 of json such as a.jsonl, 1 of parquet such as b.parquet"},
		{"some without a split", map[string]string{"train.jsonl": "a", "other.jsonl": "b"}, "", "", "of other.jsonl no name says a split"},
		{"outside", map[string]string{"README.md": "---\nconfigs:\n- data_files: ../../etc/*.jsonl\n---\n"}, "", "", "leads out of the directory"},
		{"absolute", map[string]string{"README.md": "---\nconfigs:\n- data_files: /etc/*.jsonl\n---\n"}, "", "", "leads out of the directory"},
		{"elsewhere", map[string]string{"README.md": "---\nconfigs:\n- data_files: https://example.org/a.jsonl\n---\n"}, "", "", "is not in the directory; download it"},
		{"not downloaded", map[string]string{"README.md": "---\nconfigs:\n- data_files: data/*.jsonl\n---\n"}, "", "", "no file matches data/*.jsonl; was all of the dataset downloaded?"},
		{"broken settings", map[string]string{"README.md": "---\nconfigs: [\n---\n", "a.jsonl": "a"}, "", "", "README.md: what stands between"},
		{"open settings", map[string]string{"README.md": "---\nlicense: mit\n", "a.jsonl": "a"}, "", "", "are not both there"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			source, err := datasets.Open(tree(t, tt.files), datasets.Options{Subset: tt.subset, Split: tt.split})
			if err != nil {
				wantError(t, err, tt.want, "open dataset ")
			} else if got := prompts(t, source); got != tt.want {
				t.Errorf("prompts %s, want %s", got, tt.want)
			}
		})
	}
	source, err := datasets.Open(tree(t, hub), datasets.Options{Split: "train"})
	if err != nil {
		t.Fatal(err)
	}
	want := datasets.Card{Name: "The Thing", License: []string{"mit"}, Language: []string{"en"}, Tags: []string{"agents"}}
	about := source.About()
	if diff := cmp.Diff(want, about.Card); diff != "" || len(about.Files) != 2 || about.Files[0].Format != "json" {
		t.Errorf("About() = %+v; card (-want +got):\n%s", about, diff)
	}
}

// TestLinkedFiles reads a folder as the Hugging Face cache has it: the data are links.
func TestLinkedFiles(t *testing.T) {
	blobs := tree(t, map[string]string{"1234abcd.jsonl": "a b"})
	dir := tree(t, map[string]string{"README.md": "# x"})
	if err := os.Symlink(filepath.Join(blobs, "1234abcd.jsonl"), filepath.Join(dir, "train.jsonl")); err != nil {
		t.Fatal(err)
	}
	if got := prompts(t, open(t, dir, datasets.Options{})); got != "a b" {
		t.Errorf("prompts %s, want a b", got)
	}
}

func TestPatterns(t *testing.T) {
	dir := tree(t, map[string]string{"a/x.jsonl": "one", "a/y.jsonl": "two", "b/deep/x.jsonl": "three", "b/x.parquet": "four"})
	for pattern, want := range map[string]string{
		"a/*.jsonl": "one two", "**/x.jsonl": "one three", "b/**/x.*": "three four", "{b,a}/x.*": "one four", "a/[xy].jsonl": "one two",
	} {
		source, err := datasets.Open(filepath.Join(dir, pattern), datasets.Options{})
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
		} else if got := prompts(t, source); got != want {
			t.Errorf("%s: prompts %s, want %s", pattern, got, want)
		}
	}
	for pattern, want := range map[string]string{"a/*.csv": "no file matches the pattern", "a/[x.jsonl": "it is not a pattern", "none/*": "no file matches"} {
		_, err := datasets.Open(filepath.Join(dir, pattern), datasets.Options{})
		wantError(t, err, want)
	}
	_, err := datasets.Open(filepath.Join(dir, "a/*"), datasets.Options{Split: "train"})
	wantError(t, err, "split and subset choose within a directory")
}

// TestTerminalBench reads a task in its first format, and says what one of its files is.
func TestTerminalBench(t *testing.T) {
	dir := tree(t, map[string]string{
		"tasks/hello/task.yaml": "instruction: Say hello.\nparser_name: pytest\n", "tasks/hello/Dockerfile": "FROM x\n",
		"tasks/hello/run-tests.sh": "pytest\n", "tasks/hello/tests/data.csv": "a,b\n",
	})
	for _, path := range []string{"tasks", "tasks/hello"} {
		tasks := read(t, filepath.Join(dir, path), datasets.Options{})
		if len(tasks) != 1 || tasks[0].ID != "hello" || tasks[0].Build == nil || tasks[0].Verify[0].Reward != "pytest" {
			t.Errorf("%s: %+v", path, tasks)
		}
	}
	for _, path := range []string{"tasks/hello/task.yaml", "tasks/*/task.yaml"} {
		source, err := datasets.Open(filepath.Join(dir, path), datasets.Options{})
		if err == nil {
			for _, err = range source.Tasks(t.Context()) {
			}
		}
		wantError(t, err, "task.yaml: it is part of a task of Terminal-Bench", "give the directory")
	}
	// A dataset of our own may be called so.
	if tasks := read(t, filepath.Join(tree(t, map[string]string{"task.yaml": "- {prompt: a}"}), "task.yaml"), datasets.Options{}); len(tasks) != 1 {
		t.Errorf("%d tasks, want 1", len(tasks))
	}
	_, err := datasets.Open(tree(t, map[string]string{"readme": "# hello", "tasks.txt": `{"prompt": "a"}`}), datasets.Options{})
	wantError(t, err, "tasks.txt holds JSON Lines: give that file, or name it .jsonl")
}

func TestSeveralPaths(t *testing.T) {
	dir := tree(t, map[string]string{"a.jsonl": "one two", "b.parquet": "three", "c.jsonl": "four"})
	at := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		return paths
	}
	source, err := datasets.OpenAll(at("b.parquet", "a.jsonl", "c.jsonl"), datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := prompts(t, source); got != "three one two four" {
		t.Errorf("prompts %s, want those of each path in turn", got)
	}
	_, err = datasets.OpenAll(at("a.jsonl", "none.jsonl", "*.csv", "a.jsonl"), datasets.Options{})
	wantError(t, err, "none.jsonl: no such file", "*.csv: no file matches", "a.jsonl is there twice")
	broken := tree(t, map[string]string{"x.jsonl": "a", "y.csv": "prompt\nb\n\"\"\n"})
	source, err = datasets.Open(filepath.Join(broken, "*"), datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range source.Tasks(t.Context()) {
		if err != nil {
			wantError(t, err, "y.csv:3: there is no prompt")
		}
	}
}

// TestDigestOfSeveral holds that a digest knows each file's name and content, and not where the dataset lies.
func TestDigestOfSeveral(t *testing.T) {
	files := map[string]string{"a.jsonl": "one", "b.jsonl": "two"}
	digest := func(files map[string]string) string {
		t.Helper()
		sum, err := open(t, tree(t, files), datasets.Options{}).Digest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	first := digest(files)
	if again := digest(files); again != first {
		t.Errorf("the same files elsewhere: %s and %s", first, again)
	}
	for name, other := range map[string]map[string]string{
		"another name": {"a.jsonl": "one", "c.jsonl": "two"}, "another content": {"a.jsonl": "one", "b.jsonl": "three"}, "swapped": {"a.jsonl": "two", "b.jsonl": "one"},
	} {
		if digest(other) == first {
			t.Errorf("%s: the digest is the same", name)
		}
	}
}
