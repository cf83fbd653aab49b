package scripted_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
)

// TestTranslation runs what the oracle makes of a call whose tool is not there, with the terminal's shell and with a
// script, and looks at what it prints and leaves behind.
func TestTranslation(t *testing.T) {
	for _, program := range []string{"bash", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s on this machine", program)
		}
	}
	const nasty = "it's \"$HOME\" `x` \\n\n\tEOF\nEOF\nEOF2 & ünï 𝄞 <b>\n"
	tests := []struct {
		name, tool string
		args       map[string]any
		prints     string            // "*" for anything
		leaves     map[string]string // beside or instead of what was there
	}{
		{"read", "read_file", map[string]any{"path": "a b.txt"}, "     1\tone\n     2\ttwo\n     3\tthree\n", nil},
		{"read a part", "read_file", map[string]any{"path": "a b.txt", "offset": 2, "limit": 1}, "     2\ttwo\n", nil},
		{"write", "write_file", map[string]any{"path": "new/deep/f.txt", "content": nasty}, "", map[string]string{"new/deep/f.txt": nasty}},
		{"write without last newline", "write_file", map[string]any{"path": "f'q.txt", "content": nasty + "x"}, "", map[string]string{"f'q.txt": nasty + "x"}},
		{"write nothing", "write_file", map[string]any{"path": "a b.txt", "content": ""}, "", map[string]string{"a b.txt": ""}},
		{"write zeros", "write_file", map[string]any{"path": "z", "content": "a\x00b\n"}, "", map[string]string{"z": "a\x00b\n"}},
		{"write a dash", "write_file", map[string]any{"path": "-n", "content": "x\n"}, "", map[string]string{"-n": "x\n"}},
		{"replace", "patch", map[string]any{"path": "a b.txt", "old_string": "two\n", "new_string": nasty}, "*", map[string]string{"a b.txt": "one\n" + nasty + "three\n"}},
		{"replace all", "patch", map[string]any{"mode": "replace", "path": "a b.txt", "old_string": "e", "new_string": "E", "replace_all": true}, "*", map[string]string{"a b.txt": "onE\ntwo\nthrEE\n"}},
		{"replace what is there twice", "patch", map[string]any{"path": "a b.txt", "old_string": "e", "new_string": "E"}, "*", nil},
		{"replace in DOS lines", "patch", map[string]any{"path": "dos.txt", "old_string": "a\nb", "new_string": "c\nd"}, "*", map[string]string{"dos.txt": "c\r\nd\r\n"}},
		{"V4A", "patch", map[string]any{"mode": "patch", "patch": "*** Begin Patch\n*** Update File: a b.txt\n@@ one\n-two\n+2\n three\n*** Add File: n/new.txt\n+'x'\n+\n*** Delete File: .hid/c\n*** Move File: dos.txt -> moved/d.txt\n*** End Patch"},
			"*", map[string]string{"a b.txt": "one\n2\nthree\n", "n/new.txt": "'x'\n\n", ".hid/c": "-", "dos.txt": "-", "moved/d.txt": "a\r\nb\r\n"}},
		{"V4A that does not fit", "patch", map[string]any{"mode": "patch", "patch": "*** Begin Patch\n*** Delete File: dos.txt\n*** Update File: a b.txt\n-four\n+4\n*** End Patch"}, "*", nil},
		{"search", "search_files", map[string]any{"pattern": `^t\w+`}, "./a b.txt:2:two\n./a b.txt:3:three\n", nil},
		{"search in one file", "search_files", map[string]any{"pattern": `[a-c]`, "path": "dos.txt"}, "dos.txt:1:a\r\ndos.txt:2:b\r\n", nil},
		{"search as RE2 writes it", "search_files", map[string]any{"pattern": `(?i)T\D{2}$`, "file_glob": "*.txt"}, "./a b.txt:2:two\n", nil},
		{"search files only", "search_files", map[string]any{"pattern": "o", "output_mode": "files_only"}, "./a b.txt\n", nil},
		{"search count", "search_files", map[string]any{"pattern": "o", "output_mode": "count"}, "./a b.txt:2\n", nil},
		{"search context", "search_files", map[string]any{"pattern": "two", "context": 1}, "./a b.txt-1-one\n./a b.txt:2:two\n./a b.txt-3-three\n", nil},
		{"search limit", "search_files", map[string]any{"pattern": "t", "limit": 1}, "./a b.txt:2:two\n", nil},
		{"find", "search_files", map[string]any{"pattern": "*.txt", "target": "files"}, "./a b.txt\n./dos.txt\n", nil},
		{"script", "execute_code", map[string]any{"code": "print('''" + nasty + "''', end='')"}, strings.ReplaceAll(nasty, `\n`, "\n"), nil},
		{"terminal", "terminal", map[string]any{"command": "echo $((6*7)) '\"'", "timeout": 5}, "42 \"\n", nil},
		{"terminal elsewhere", "terminal", map[string]any{"command": "cat c", "workdir": ".hid"}, "two\n", nil},
	}
	there := map[string]string{"a b.txt": "one\ntwo\nthree\n", "dos.txt": "a\r\nb\r\n", ".hid/c": "two\n"}
	for _, tt := range tests {
		for _, tool := range []string{"terminal", "execute_code"} {
			if tt.tool == tool {
				continue
			}
			t.Run(tt.name+"/"+tool, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				for name, content := range there {
					write(t, filepath.Join(dir, name), content)
				}
				raw, _ := json.Marshal(tt.args)
				tk := &episode.Task{ID: "t", Prompt: []episode.Message{{Role: "user", Content: "x"}}, Gold: []episode.Step{gold("", tt.tool, string(raw))}}
				a := begin(t, newServer(t, scripted.Config{Policy: scripted.Oracle}, tk), tk, "e", tool).next()
				if len(a.ToolCalls) != 1 || a.ToolCalls[0].Function.Name != tool {
					t.Fatalf("turn = %q, want one call of %s", a, tool)
				}
				var args struct{ Command, Code string }
				if err := json.Unmarshal([]byte(a.ToolCalls[0].Function.Arguments), &args); err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command("bash", "-c", args.Command)
				if tool == "execute_code" {
					cmd = exec.Command("python3", "-c", args.Code)
				}
				cmd.Dir = dir
				out, _ := cmd.CombinedOutput() // a refused patch fails, as the tool does
				if tt.prints != "*" && string(out) != tt.prints {
					t.Errorf("%s\nprints %q, want %q", args, out, tt.prints)
				}
				want := map[string]string{}
				for _, files := range []map[string]string{there, tt.leaves} {
					for name, content := range files {
						want[name] = content
						if content == "-" {
							delete(want, name)
						}
					}
				}
				if diff := cmp.Diff(want, read(t, dir)); diff != "" {
					t.Errorf("%s\nprints %s\nfiles (-want +got):\n%s", args, out, diff)
				}
			})
		}
	}
}

// TestUntranslatable leaves out what cannot be done, and a step whose calls are all gone does not end the episode.
func TestUntranslatable(t *testing.T) {
	tk := task("t")
	tk.Gold = []episode.Step{
		gold("First a plan.", "todo", `{"todos":[]}`),
		gold("Then this.", "terminal", `{"command":"ls"}`),
		gold("", "execute_code", `{"code":"import trajgen_tools"}`),
		gold("", "process", `{"action":"list"}`),
		{Content: "The end."},
	}
	c := begin(t, newServer(t, scripted.Config{Policy: scripted.Oracle}, tk), tk, "e", "terminal")
	want := []string{"First a plan.\nThen this.|terminal({\"command\":\"ls\"})", "The end."}
	if diff := cmp.Diff(want, texts(c.play(9))); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		content, err := os.ReadFile(path)
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
