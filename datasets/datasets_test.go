package datasets_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
)

var update = flag.Bool("update", false, "write the golden files")

func Example() {
	mapping, err := datasets.LoadMapping("gsm8k")
	if err != nil {
		panic(err)
	}
	source, err := datasets.Open("testdata/gsm8k.jsonl", datasets.Options{Map: mapping, MaxTasks: 2})
	if err != nil {
		panic(err)
	}
	for task, err := range source.Tasks(context.Background()) {
		if err != nil {
			panic(err)
		}
		fmt.Println(task.Row, task.ID, *task.Verify[0].Number)
	}
	// Output:
	// 0 sha-219a283fab0904e2 1250
	// 1 sha-743f05fb931ec389 -4
}

// TestForms holds what each form of each field becomes.
func TestForms(t *testing.T) {
	var got bytes.Buffer
	for _, task := range read(t, "testdata/forms.jsonl", datasets.Options{}) {
		encoder := json.NewEncoder(&got)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", " ")
		if err := encoder.Encode(task); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, got.Bytes())
}

func TestRefuses(t *testing.T) {
	tests := []struct {
		name string
		give string
		want []string // all of them in the one error
	}{
		{"no prompt", `{"id": "a"}`, []string{"tasks.jsonl:1: ", "no prompt", "messages"}},
		{"empty prompt", `{"prompt": " \n"}`, []string{"prompt: it is empty"}},
		{"null prompt", `{"prompt": null}`, []string{"no prompt"}},
		{"prompt of another kind", `{"prompt": 5}`, []string{"prompt: a number, want a list of chat messages"}},
		{"prompt and messages", `{"prompt": "a", "messages": [{"role": "user", "content": "a"}]}`, []string{"both there"}},
		{"everything at once", `{"prompt": "a", "cwd": 1, "network": "lan", "limits": {"turns": 0, "time": "soon", "cost": 1}, "verify": {"exact": "x", "number": 1}}`,
			[]string{"cwd: a number, want a string", `unknown mode "lan" (have none, loopback`, "limits.turns: 0, want a whole number above 0",
				`limits.time: "soon", want seconds`, "limits.cost: unknown key (have time, tokens, turns)", "exact and number are both there"}},
		{"a list", `[1]`, []string{"want one JSON object per line"}},
		{"a string", `"x"`, []string{"the row is a string"}},
		{"cut off", `{"prompt": "a`, []string{"invalid JSON at byte 13"}},
		{"two objects", `{"prompt": "a"} {}`, []string{"invalid JSON at byte 17"}},
		{"key twice", `{"prompt": "a", "prompt": "b"}`, []string{`the key "prompt" twice`}},
		{"not UTF-8", "{\"prompt\": \"\xff\"}", []string{"invalid UTF-8 at byte 13"}},
		{"nearly verify", `{"prompt": "a", "verfy": {"exact": "x"}, "toolset": ["file"]}`,
			[]string{`verfy: did you mean "verify"? If it is metadata`, `"metadata": {"verfy": ...}`, `toolset: did you mean "toolsets"?`}},
		{"id of another kind", `{"id": [1], "prompt": "a"}`, []string{"id: a list, want a string"}},
		{"role", `{"messages": [{"role": "tool", "content": "x"}]}`, []string{`messages[0]: role is "tool", want system, user or assistant`}},
		{"late system", `{"messages": [{"role": "user", "content": "x"}, {"role": "system", "content": "x"}, {"role": "user", "content": "x"}]}`, []string{"messages[1]: a system message can only come first"}},
		{"assistant last", `{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]}`, []string{"last message is the assistant's"}},
		{"nobody asks", `{"messages": [{"role": "system", "content": "x"}]}`, []string{"no message from the user"}},
		{"message key", `{"messages": [{"role": "user", "content": "x", "tool_calls": []}]}`, []string{"messages[0].tool_calls: unknown key (have content, role)"}},
		{"picture", `{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}`, []string{`image_url is "", want a data URL`}},
		{"picture of the web", `{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}]}`, []string{`want a data URL`}},
		{"picture that is none", `{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,PGh0bWw+"}}]}]}`, []string{`text/html`}},
		{"picture of the system", `{"messages": [{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "data:;base64,R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw=="}}]}]}`, []string{`only a message of the user`}},
		{"picture of another kind", `{"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}`, []string{`a part of type "input_audio"`}},
		{"two systems", `{"system": "a", "messages": [{"role": "system", "content": "b"}, {"role": "user", "content": "x"}]}`, []string{"system prompt is there twice"}},
		{"paths", `{"prompt": "a", "files": {"/etc/x": "", "a/../../b": "", "": "", "d/": "", ".": "", "n\u0000": ""}}`,
			[]string{`"/etc/x" is absolute`, `"a/../../b" holds ".."`, `"" is empty`, `"d/" names a directory`, `"." names the working directory`, "NUL"}},
		{"same path", `{"prompt": "a", "files": {"a/b": "", "a//b": ""}}`, []string{`"a/b" is there twice`}},
		{"file and directory", `{"prompt": "a", "files": {"a": "", "a/b": ""}}`, []string{`"a" is a file and a directory`}},
		{"content", `{"prompt": "a", "files": {"a": 1, "b": {"base64": "!"}}}`, []string{"must be a string or", "base64 file content"}},
		{"test paths", `{"prompt": "a", "verify": {"command": "x", "tests": {"/tests/../x": "", "/etc/x": "", "/tests/": ""}}}`,
			[]string{`"/tests/../x" holds ".."`, `"/etc/x" is absolute; want one below /tests/`, `"/tests/" is empty`}},
		{"env", `{"prompt": "a", "env": {"A=B": "x", "C": true}}`, []string{`"A=B" cannot be the name`, "C is a boolean, want a string"}},
		{"images", `{"prompt": "a", "image": "x", "docker_image": "y"}`, []string{"image and docker_image differ"}},
		{"root", `{"prompt": "a", "root": "rw"}`, []string{`root: "rw", want writable`}},
		{"allow", `{"prompt": "a", "network": "full", "allow": ["x"]}`, []string{"allow only goes with network: allowlist"}},
		{"resources", `{"prompt": "a", "resources": {"memory": "2X", "disk": 1, "cpus": 0, "gpus": 1}}`,
			[]string{`resources.memory: "2X", want bytes or a size`, `resources.disk: "1", want 1048576 bytes at least`, "resources.cpus: 0, want a number above 0", "resources.gpus: unknown key"}},
		{"services", `{"prompt": "a", "services": [{"name": "a", "image": "x", "build": {"dir": "d"}}, {"name": "b"}, {"name": "c", "image": "x", "health": {"retries": 0}, "once": 1, "ports": [1]}, {"name": "d", "image": "x", "health": {}, "command": 1, "files": {"x": ""}}]}`,
			[]string{"services[0]: want image or build", "services[1]: want image or build", "services[2].health.retries: 0, want", "services[2].once: a number, want true or false", "services[2].ports: unknown key",
				"services[3].health: command is missing", "services[3].command: want a text for a shell, or a list of words", `services[3].files: path "x" is not absolute`}},
		{"hosts", `{"prompt": "a", "hosts": ["x"]}`, []string{"hosts only goes with services"}},
		{"fixed and drawn", `{"prompt": "a", "toolsets": "file", "distribution": "safe"}`, []string{"exclude each other"}},
		{"verify nothing", `{"prompt": "a", "verify": {"weight": 1}}`, []string{"checks nothing, want one of command, contains, exact, home_state, json, number, outbox"}},
		{"verify nobody", `{"prompt": "a", "verify": []}`, []string{"verify: an empty list"}},
		{"verify text", `{"prompt": "a", "verify": "exit 0"}`, []string{"verify: a string, want an object with after, at_least, case, command, contains"}},
		{"verify key", `{"prompt": "a", "verify": {"comand": "x"}}`, []string{`verify.comand: unknown key, did you mean "command"? (have after, at_least, case, command`}},
		{"tests alone", `{"prompt": "a", "verify": {"tests": {"/tests/a": ""}}}`, []string{"tests needs a command"}},
		{"judge", `{"prompt": "a", "verify": {"judge": "be kind"}}`, []string{"verify.judge: unknown key (have after, at_least, case, command"}},
		{"regex", `{"prompt": "a", "verify": [{"exact": "x"}, {"regex": "("}]}`, []string{"verify[1].regex: error parsing regexp"}},
		{"wrong company", `{"prompt": "a", "verify": {"exact": "x", "tolerance": 1, "timeout": 3, "tests": {}, "reward": "exit"}}`,
			[]string{"tolerance only goes with number", "timeout only goes with command", "tests only goes with command", "reward only goes with command"}},
		{"verify values", `{"prompt": "a", "verify": {"command": " ", "weight": 0, "timeout": -1, "reward": "points"}}`,
			[]string{"command: it is empty", "weight: 0, want a number above 0", "timeout: -1, want seconds above 0", `reward: "points", want exit`}},
		{"verify options", `{"prompt": "a", "verify": [{"exact": ["x"], "case": "ignroe", "match": "any"}, {"similar": ".", "measure": "bleu", "threshold": 2}, {"contains": ["x", " "], "trim": "x"}]}`,
			[]string{`verify[0].case: unknown value "ignroe", did you mean "ignore"? (have keep, ignore)`, "match only goes with contains", "verify[1].similar: it has no words",
				`verify[1].measure: unknown value "bleu" (have levenshtein, f1, rouge_l)`, "verify[1].threshold: 2, want", "verify[2].contains: it is empty", `verify[2].trim: unknown value "x"`}},
		{"verify a number", `{"prompt": "a", "verify": [{"number": 1, "tolerance": "0%", "unit": " "}, {"number": 1, "relative": -1}]}`,
			[]string{`verify[0].tolerance: "0%", want a percentage above 0`, "verify[0].unit: it is empty", "verify[1].relative: -1, want 0 or more"}},
		{"verify JSON", `{"prompt": "a", "verify": [{"json": {"shema": {}}}, {"json": {}}, {"json": {"schema": {"type": "objekt"}}}, {"json": {"equal": {"a": 1}, "file": "../x"}}, {"json": {"schema": {"$ref": "file:///etc/passwd"}}}, {"json": 1}]}`,
			[]string{`verify[0].json: unknown key "shema", did you mean "schema"?`, "verify[1].json: it needs a schema", "verify[2].json: schema: ", `verify[3].json: file: "../x", want a path below`, "verify[4].json: schema: ", "outside itself", "verify[5].json: want an object with equal, file, schema"}},
		{"nothing is right", `{"prompt": "a", "verify": {"exact": " "}}`, []string{"exact: it is empty"}},
		{"names", `{"prompt": "a", "verify": [{"name": "n", "exact": "x"}, {"name": "n", "exact": "y"}]}`, []string{`verify[1]: the name "n" is taken`}},
		{"gold without answer", `{"prompt": "a", "gold": [{"tool_calls": [{"name": "x", "arguments": {}}]}]}`, []string{"gold: the last step makes tool calls"}},
		{"gold answers too early", `{"prompt": "a", "gold": [{"content": "first"}, {"content": "second"}]}`, []string{"2 steps have no tool calls", "would not be played"}},
		{"gold empty step", `{"prompt": "a", "gold": [{"content": ""}]}`, []string{"gold[0]: it has neither tool_calls nor content"}},
		{"gold call", `{"prompt": "a", "gold": [{"tool_calls": [{"arguments": {}}, {"name": "x", "arguments": "[1]"}, {"tool": "x"}]}, {"content": "y"}]}`,
			[]string{"gold[0].tool_calls[0]: the call names no tool", "[1].arguments: a list, want an object", "[2].tool: unknown key (have arguments, function"}},
		{"gold results", `{"prompt": "a", "gold": [{"role": "tool", "content": "x"}]}`, []string{"a gold has only the assistant's turns"}},
		{"gold object", `{"prompt": "a", "gold": {"comand": "x"}}`, []string{`gold.comand: unknown key, did you mean "command"? (have answer, command)`, "neither a command nor an answer"}},
		{"gold of another kind", `{"prompt": "a", "gold": 5}`, []string{"gold: a number, want a list of steps"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			source := open(t, write(t, "tasks.jsonl", tt.give), datasets.Options{})
			for task, err := range source.Tasks(t.Context()) {
				if bad, ok := errors.AsType[*datasets.RowError](err); !ok || bad.Line != 1 {
					t.Fatalf("got task %+v and error %v, want a *RowError of line 1", task, err)
				}
				wantError(t, err, tt.want...)
			}
		})
	}
}

// TestNearKeysAreKept: what only looks like a field is metadata: its value is none of the field's, or the field is there, too.
func TestNearKeysAreKept(t *testing.T) {
	for _, give := range []string{
		`{"prompt": "a", "file": "main.py", "limit": 5, "idx": "7", "old": "x", "name": "n", "verfication": true}`,
		`{"prompt": "a", "difficulty": "hard", "dificulty": "3"}`,
		`{"prompt": "a", "metadata": {"verfy": {"exact": "x"}}}`,
	} {
		for task, err := range open(t, write(t, "tasks.jsonl", give), datasets.Options{}).Tasks(t.Context()) {
			if err != nil || task.Metadata == nil {
				t.Errorf("%s: %v", give, err)
			}
		}
	}
}

// TestTagsAreKept: tags of a list are as the dataset has them; names are not written with white space around them.
func TestTagsAreKept(t *testing.T) {
	const rows = `{"prompt": "a", "tags": [" x", "x", "x", "y z "], "toolsets": [" file"]}` + "\n" + `{"prompt": "b", "tags": "x, y z ", "toolsets": []}` + "\n"
	tasks := read(t, write(t, "tasks.jsonl", rows), datasets.Options{})
	for i, want := range [][]string{{" x", "x", "y z "}, {"x", "y z"}} {
		if !slices.Equal(tasks[i].Tags, want) {
			t.Errorf("tags = %q, want %q", tasks[i].Tags, want)
		}
	}
	if !slices.Equal(tasks[0].Toolsets, []string{"file"}) || !slices.Equal(tasks[1].Toolsets, []string{"none"}) {
		t.Errorf("toolsets = %q and %q", tasks[0].Toolsets, tasks[1].Toolsets)
	}
}

func TestSkipBadRows(t *testing.T) {
	path := write(t, "tasks.jsonl", "{\"prompt\": \"a\"}\n\n{broken\n"+`{"prompt": "`+strings.Repeat("x", 64<<20)+"\"}\n{\"prompt\": \"b\"}\r\n{}\n")
	var skipped []string
	tasks := read(t, path, datasets.Options{SkipBadRows: true, OnSkip: func(bad *datasets.RowError) {
		reason, _, _ := strings.Cut(bad.Reason, ":")
		skipped = append(skipped, fmt.Sprintf("%d %d %s", bad.Line, bad.Row, reason))
	}})
	want := []string{"3 1 invalid JSON at byte 2 of the row", "4 2 the row is longer than 64 MiB", "6 4 there is no prompt"}
	if diff := cmp.Diff(want, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	if len(tasks) != 2 || tasks[0].Row != 0 || tasks[1].Row != 3 {
		t.Errorf("got %d tasks, want those of rows 0 and 3", len(tasks))
	}
}

func TestContentHash(t *testing.T) {
	path := write(t, "tasks.jsonl", strings.Join([]string{
		`{"prompt": "a", "x": {"b": 1, "c": 2}}`,
		`{ "x" : {"c":2, "b":1, "d": null}, "prompt" : "a", "y": null}`, // the same, said differently
		`{"prompt": "a", "x": {"b": 1, "c": 3}}`,
	}, "\n"))
	tasks := read(t, path, datasets.Options{})
	first := tasks[0].ID
	if len(first) != len("sha-")+16 || !strings.HasPrefix(first, "sha-") {
		t.Errorf("id = %q, want sha- and 16 hexadecimal digits", first)
	}
	if tasks[1].ID != first+"#2" || strings.HasPrefix(tasks[2].ID, first) {
		t.Errorf("ids = %q, %q, %q, want the second to repeat the first and the third not", first, tasks[1].ID, tasks[2].ID)
	}
}

func TestManyDuplicates(t *testing.T) {
	const n = 50_000
	tasks := read(t, write(t, "tasks.jsonl", strings.Repeat(`{"id": "x", "prompt": "a"}`+"\n", n)), datasets.Options{})
	if got := tasks[n-1].ID; len(tasks) != n || got != fmt.Sprintf("x#%d", n) {
		t.Errorf("the last of %d duplicates is %q, want x#%d", len(tasks), got, n)
	}
}

// TestFormats reads one dataset under every name and compression.
func TestFormats(t *testing.T) {
	plain, err := os.ReadFile("testdata/forms.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, "testdata/forms.jsonl", datasets.Options{})
	contents := map[string]string{
		"plain": string(plain), "gzip": gzipped(t, plain), "zstd": zstandard(t, plain),
		"gzip in two members": gzipped(t, plain[:1000]) + gzipped(t, plain[1000:]),
		"byte order mark":     "\xef\xbb\xbf" + string(plain),
		"carriage returns":    strings.ReplaceAll(string(plain), "\n", "\r\n"),
		"blank lines":         "\n\n" + strings.ReplaceAll(string(plain), "\n", "\n \n"),
	}
	for _, name := range []string{"a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.ndjson", "a.json.gz", "a.data", "a", "A.JSONL", "a.parquet"} {
		for kind, content := range contents {
			got := read(t, write(t, name, content), datasets.Options{})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s as %s (-want +got):\n%s", kind, name, diff)
			}
		}
	}
}

func TestDamagedFiles(t *testing.T) {
	text := []byte(strings.Repeat(`{"prompt": "a long enough prompt to fill a block"}`+"\n", 2000))
	packed, zipped := zstandard(t, text), gzipped(t, text)
	tests := []struct {
		name, file, give string
		want             []string
	}{
		{"empty", "a.jsonl", "", []string{"a.jsonl has no rows"}},
		{"blank", "a.jsonl", "\n \n", []string{"a.jsonl has no rows"}},
		{"empty gzip", "a.jsonl.gz", gzipped(t, nil), []string{"a.jsonl.gz has no rows"}},
		{"empty YAML", "a.yaml", "[]", []string{"a.yaml has no rows"}},
		{"cut gzip", "a.jsonl.gz", zipped[:len(zipped)-20], []string{"the gzip data ends early: the file is cut off", "after line"}},
		{"cut zstd", "a.jsonl.zst", packed[:len(packed)-6], []string{"the zstd data ends early: the file is cut off"}},
		{"damaged gzip", "a.jsonl.gz", zipped[:40] + "\x00\x00\x00" + zipped[43:], []string{"gzip data"}},
		{"YAML slip", "a.yaml", "- prompt: [", []string{"read dataset", "line"}},
		{"YAML of another kind", "a.yaml", "prompt: a", []string{"want a list of tasks"}},
		{"array", "a.jsonl", "[\n{\"prompt\": \"a\"}\n]", []string{"a file that is one array is named .json"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// Skipping rows must not hide that the file is not whole.
			source := open(t, write(t, tt.file, tt.give), datasets.Options{SkipBadRows: tt.name != "array"})
			var last error
			for _, err := range source.Tasks(t.Context()) {
				last = err
			}
			wantError(t, last, tt.want...)
		})
	}
	source := open(t, write(t, "a.jsonl", "{}\n{}"), datasets.Options{SkipBadRows: true})
	for _, err := range source.Tasks(t.Context()) {
		wantError(t, err, "no usable rows: all 2 are broken")
	}
}

func TestOpenRefuses(t *testing.T) {
	tests := []struct {
		name, path string
		want       []string
	}{
		{"missing", filepath.Join(t.TempDir(), "none.jsonl"), []string{"none.jsonl", "no such file", `"bundled"`}},
		{"empty directory", t.TempDir(), []string{"no data file is below the directory", ".jsonl", ".parquet"}},
		{"unknown", write(t, "a.txt", "id,prompt\n"), []string{".jsonl", ".parquet", ".yaml", ".csv", ".arrow"}},
		{"xz", write(t, "a.jsonl.xz", "\xfd7zXZ\x00\x00"), []string{"packed with xz", "unpack it, or pack it with gzip, zstd or bzip2"}},
		{"cut gzip header", write(t, "a.jsonl.gz", gzipped(t, nil)[:5]), []string{"the gzip data ends early"}},
		{"packed Parquet", write(t, "a.parquet.gz", gzipped(t, []byte("PAR1"))), []string{"a packed parquet file", "unpack it"}},
		{"not Parquet", write(t, "a.parquet", "PAR2"), []string{"named like a parquet file but does not begin like one"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := datasets.Open(tt.path, datasets.Options{})
			wantError(t, err, append(tt.want, "open dataset ")...)
		})
	}
	_, err := datasets.Open("bundled", datasets.Options{MaxTasks: -1})
	wantError(t, err, "MaxTasks is -1")
}

func TestPassesAreAlike(t *testing.T) {
	source := open(t, "testdata/forms.jsonl", datasets.Options{MaxTasks: 5})
	first, second := collect(t, source), collect(t, source)
	if diff := cmp.Diff(first, second); diff != "" || len(first) != 5 {
		t.Errorf("%d tasks, want 5; the second pass differs (-first +second):\n%s", len(first), diff)
	}
}

func TestContextEnds(t *testing.T) {
	cause := errors.New("enough")
	for _, path := range []string{"testdata/forms.jsonl", "bundled", parquetFile(t)} {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		n := 0
		for _, err := range open(t, path, datasets.Options{}).Tasks(ctx) {
			if n++; n == 1 {
				cancel(cause)
				continue
			}
			if n > 2 || !errors.Is(err, cause) {
				t.Errorf("%s: item %d after the context's end has error %v, want the cause and nothing more", path, n, err)
			}
		}
		if n != 2 {
			t.Errorf("%s: %d items, want a task and the cause", path, n)
		}
	}
}

func TestDigest(t *testing.T) {
	content := gzipped(t, []byte(`{"prompt": "a"}`))
	path := write(t, "a.jsonl.gz", content)
	got, err := open(t, path, datasets.Options{}).Digest(t.Context())
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))); err != nil || got != want {
		t.Errorf("Digest = %q, %v, want %q: that of the file as it lies there", got, err, want)
	}
	if first, err := open(t, datasets.Bundled, datasets.Options{}).Digest(t.Context()); err != nil || len(first) != len(got) {
		t.Errorf("Digest of the bundled tasks = %q, %v", first, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	big := open(t, write(t, "b.jsonl", strings.Repeat("{}\n", 8<<20)), datasets.Options{})
	if _, err := big.Digest(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Digest with a context that has ended: %v, want %v", err, context.Canceled)
	}
}

func read(t *testing.T, path string, options datasets.Options) []*episode.Task {
	t.Helper()
	return collect(t, open(t, path, options))
}

func open(t *testing.T, path string, options datasets.Options) *datasets.Source {
	t.Helper()
	source, err := datasets.Open(path, options)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func collect(t *testing.T, source *datasets.Source) []*episode.Task {
	t.Helper()
	var tasks []*episode.Task
	for task, err := range source.Tasks(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, task)
	}
	return tasks
}

func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func gzipped(t *testing.T, data []byte) string {
	t.Helper()
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	writer.Write(data)
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.String()
}

func zstandard(t *testing.T, data []byte) string {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	return string(encoder.EncodeAll(data, nil))
}

func golden(t *testing.T, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", t.Name()+".golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got); go test -update writes it:\n%s", path, diff)
	}
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q, want %q in it", err, part)
		}
	}
}
