package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
)

func TestReadFile(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		e.write("five.txt", "a\nb\nc\nd\ne\n")
		e.write("open.txt", "a\nb")
		e.write("empty.txt", "")
		e.write("crlf.txt", "\uFEFFa\r\nb\r\n")
		e.write("long.txt", strings.Repeat("ü", 2001)+"\n")
		e.write("nul.txt", "a\x00b")
		e.write("sixteen.txt", "\xff\xfea\x00\n\x00")
		e.write("latin1.txt", "caf\xe9\n")
		e.write("pic.png", "text")
		for _, tt := range []struct {
			args args
			want string
		}{
			{args{"path": "five.txt"}, `{"content":"1|a\n2|b\n3|c\n4|d\n5|e","total_lines":5,"file_size":10,"truncated":false}`},
			{args{"path": "five.txt", "offset": 2, "limit": 2},
				`{"content":"2|b\n3|c","total_lines":5,"file_size":10,"truncated":true,"hint":"lines 2-3 of 5; go on with offset=4"}`},
			{args{"path": "five.txt", "offset": -3, "limit": 0},
				`{"content":"1|a","total_lines":5,"file_size":10,"truncated":true,"hint":"lines 1-1 of 5; go on with offset=2"}`},
			{args{"path": "five.txt", "offset": 9223372036854775807},
				`{"content":"","total_lines":5,"file_size":10,"truncated":false,"hint":"offset 9223372036854775807 is past the end: the file has 5 lines"}`},
			{args{"path": "latin1.txt"}, `{"content":"1|caf` + "\uFFFD" + `","total_lines":1,"file_size":5,"truncated":false,` +
				`"hint":"the text is not all UTF-8: what is not is shown as ` + "\uFFFD" + `, and patch refuses the file"}`},
			{args{"path": "five.txt", "offset": 5}, `{"content":"5|e","total_lines":5,"file_size":10,"truncated":false}`},
			{args{"path": "five.txt", "offset": 6},
				`{"content":"","total_lines":5,"file_size":10,"truncated":false,"hint":"offset 6 is past the end: the file has 5 lines"}`},
			{args{"path": "open.txt", "limit": 1},
				`{"content":"1|a","total_lines":2,"file_size":3,"truncated":true,"hint":"lines 1-1 of 2; go on with offset=2"}`},
			{args{"path": "open.txt", "offset": 2}, `{"content":"2|b","total_lines":2,"file_size":3,"truncated":false}`},
			{args{"path": "empty.txt"}, `{"content":"","total_lines":0,"file_size":0,"truncated":false,"hint":"the file is empty"}`},
			{args{"path": "crlf.txt"}, `{"content":"1|a\n2|b","total_lines":2,"file_size":9,"truncated":false}`},
		} {
			if got := e.call("read_file", tt.args).Result; got != tt.want {
				t.Errorf("read_file(%v) = %s, want %s", tt.args, got, tt.want)
			}
		}
		content := e.ok("read_file", args{"path": "long.txt"})["content"].(string)
		if want := "1|" + strings.Repeat("ü", 2000) + "... [truncated]"; content != want {
			t.Errorf("long line: got %d bytes, want %d", len(content), len(want))
		}
		e.fails("binary_file", "read_file", args{"path": "nul.txt"})
		e.fails("binary_file", "read_file", args{"path": "pic.png"})
		for _, name := range []string{"b.dat", "b.obj", "b.db", "b.bin"} {
			e.write(name, "text\n")
			if got := e.ok("read_file", args{"path": name})["content"]; got != "1|text" {
				t.Errorf("%s: %v", name, got)
			}
			e.write(name, "te\x00t\n")
			e.fails("binary_file", "read_file", args{"path": name})
		}
		wantContains(t, e.fails("binary_file", "read_file", args{"path": "sixteen.txt"})["error"], "UTF-16")
		e.fails("not_a_directory", "read_file", args{"path": "five.txt/a"})
		e.fails("is_directory", "read_file", args{"path": "."})
		e.fails("not_regular", "read_file", args{"path": fifo(e)})
		e.fails("invalid_path", "read_file", args{"path": ""})
		similar := e.fails("not_found", "read_file", args{"path": "fife.txt"})["similar_files"].([]any)
		if len(similar) != 1 || similar[0] != "five.txt" {
			t.Errorf("similar files: %v", similar)
		}
		e.ok("terminal", args{"command": "ln -s nothing nowhere"})
		lost := e.fails("not_found", "read_file", args{"path": "nowhere"})
		wantContains(t, lost["error"], "a link to something that is not there")
		if lost["similar_files"] != nil {
			t.Errorf("similar to itself: %v", lost)
		}
		e.ok("terminal", args{"command": "mkdir x; cd x"})
		wantContains(t, e.fails("not_found", "read_file", args{"path": "y"})["error"], "the terminal is in")
	})
}

func fifo(e *episodeOf) string {
	e.t.Helper()
	e.ok("terminal", args{"command": "mkfifo pipe"})
	return "pipe"
}

func TestReadFilePages(t *testing.T) {
	e := open(t, "local", "file")
	e.write("big.txt", strings.Repeat(strings.Repeat("x", 999)+"\n", 300))
	r := e.fails("too_large", "read_file", args{"path": "big.txt"})
	wantContains(t, r["error"], "limit=99 fits from offset=1")
	if r["total_lines"] != 300.0 || r["file_size"] != 300_000.0 {
		t.Errorf("total_lines %v, file_size %v", r["total_lines"], r["file_size"])
	}
	e.fails("too_large", "read_file", args{"path": "big.txt", "limit": 100})
	r = e.ok("read_file", args{"path": "big.txt", "limit": 99})
	wantContains(t, r["hint"], "lines 1-99 of 300; go on with offset=100")
}

func TestWriteFile(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		workdir := e.box.Layout().Workdir
		got := e.call("write_file", args{"path": "a/b/c.txt", "content": "x\n"}).Result
		if want := `{"bytes_written":2,"dirs_created":true,"resolved_path":"` + workdir + `/a/b/c.txt","files_modified":["a/b/c.txt"]}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if r := e.ok("write_file", args{"path": "a/d.txt", "content": "x"}); r["dirs_created"] != false {
			t.Errorf("dirs_created: %v", r)
		}
		e.write("crlf.txt", "\uFEFFa\r\nb\r\n")
		e.ok("write_file", args{"path": "crlf.txt", "content": "x\ny\r\nz\n"})
		e.wantFile("crlf.txt", "\uFEFFx\r\ny\r\nz\r\n")
		e.write("run.sh", "a")
		e.ok("terminal", args{"command": "chmod 750 run.sh"})
		e.ok("write_file", args{"path": "run.sh", "content": "b"})
		e.wantOutput("stat -c %a run.sh; ls", "750\na\ncrlf.txt\nrun.sh")

		r := e.ok("write_file", args{"path": "x.json", "content": "{\n  \"a\": }"})
		wantContains(t, r["lint"], "line 2, column 8")
		r = e.ok("write_file", args{"path": "x.yaml", "content": "a: [1"})
		wantContains(t, r["lint"], "error")
		r = e.ok("write_file", args{"path": "y.yml", "content": "a: 1\n---\nb: 2\n"})
		wantContains(t, r["lint"], "ok")

		e.fails("is_directory", "write_file", args{"path": "a", "content": "x"})
		e.fails("not_a_directory", "write_file", args{"path": "run.sh/x", "content": "x"})
		for _, path := range []string{"/etc/x", "/proc/self/comm", "/dev/null", "/usr/lib/systemd/x", "/boot/../etc/x", "../../../../../../../../etc/x"} {
			if call := e.call("write_file", args{"path": path, "content": "x"}); call.Status != episode.CallDenied || call.ErrorClass != "denied" {
				t.Errorf("write to %s: %s %s", path, call.Status, call.Result)
			}
		}
		e.ok("write_file", args{"path": "~/home.txt", "content": "h"})
		e.wantOutput("cat ~/home.txt", "h")
	})
}

func TestPatchReplace(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		e.write("a.txt", "one\r\ntwo\nthree\r\n")
		got := e.call("patch", args{"path": "a.txt", "old_string": "one\ntwo", "new_string": "1\n2\n3"}).Result
		want := `{"success":true,"strategy":"exact","confidence":1,"replacements":1,"diff":"--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n-one\n-two\n+1\n+2\n+3\n three\n",` +
			`"files_modified":["a.txt"],"resolved_path":"` + e.box.Layout().Workdir + `/a.txt"}`
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		e.wantFile("a.txt", "1\r\n2\r\n3\nthree\r\n")
		e.write("b.txt", "x\ny\nx\n")
		r := e.fails("ambiguous", "patch", args{"path": "b.txt", "old_string": "x", "new_string": "z"})
		wantContains(t, r["error"], "2 matches of old_string in b.txt (strategy exact), at lines 1, 3")
		e.ok("patch", args{"path": "b.txt", "old_string": "x", "new_string": "", "replace_all": true})
		e.wantFile("b.txt", "\ny\n\n")
		e.write("many.txt", strings.Repeat("q", 100_000))
		e.fails("too_large", "patch", args{"path": "many.txt", "old_string": "q", "new_string": strings.Repeat("z", 1000), "replace_all": true})
		e.write("self.txt", "-aaa-\nx\n x\nx\n")
		for _, old := range []string{"aa", "x \nx"} {
			r = e.fails("ambiguous", "patch", args{"path": "self.txt", "old_string": old, "new_string": "z"})
			wantContains(t, r["error"], "overlaps itself")
		}
		e.ok("patch", args{"path": "self.txt", "old_string": "aa", "new_string": "b", "replace_all": true})
		e.wantFile("self.txt", "-ba-\nx\n x\nx\n")
		e.fails("identical", "patch", args{"path": "b.txt", "old_string": "y", "new_string": "y"})
		e.fails("empty_old_string", "patch", args{"path": "b.txt", "old_string": "", "new_string": "y"})
		e.fails("missing_argument", "patch", args{"path": "b.txt", "old_string": "y"})
		e.fails("missing_argument", "patch", args{"old_string": "y", "new_string": "z"})
		e.fails("not_found", "patch", args{"path": "nosuch", "old_string": "y", "new_string": "z"})
		e.fails("denied", "patch", args{"path": "/etc/hosts", "old_string": "y", "new_string": "z"})
		e.write("c.py", "def f():\n    return beta(2)\n\nprint(\"hi\")\n")
		r = e.fails("no_match", "patch", args{"path": "c.py", "old_string": "return beta(9)", "new_string": "x"})
		like := r["did_you_mean"].(map[string]any)
		if want := "2|    return beta(2)\n"; like["lines"] != want {
			t.Errorf("did_you_mean %q, want %q", like["lines"], want)
		}
		wantContains(t, like["diff"], "-return beta(9)\n+    return beta(2)\n")
		e.fails("escape_drift", "patch", args{"path": "c.py", "old_string": `print("hi")`, "new_string": `print(\"ho\")`})
		e.fails("escape_drift", "patch", args{"path": "c.py", "old_string": `print(\"hi\")`, "new_string": `print(\"ho\\n\")`})
		e.wantFile("c.py", "def f():\n    return beta(2)\n\nprint(\"hi\")\n")
	})
}

// TestPatchShowsOtherSpacing is about texts that differ in white space in ways that no edit is made for.
func TestPatchShowsOtherSpacing(t *testing.T) {
	e := open(t, "local", "file")
	e.write("a.py", "def f(a,b):\n    return g(a,\n        b)\nx=1\nif x==1:y=2\ncompute(alpha,beta)\n")
	for old, want := range map[string]string{
		"x = 1": "4|x=1\n", "if x == 1: y = 2": "5|if x==1:y=2\n", "return g(a, b)": "2|    return g(a,\n3|        b)\n",
		"compute(\n    alpha,\n    beta\n)\n": "6|compute(alpha,beta)\n",
	} {
		r := e.fails("no_match", "patch", args{"path": "a.py", "old_string": old, "new_string": "z"})
		if like, _ := r["did_you_mean"].(map[string]any); like["lines"] != want {
			t.Errorf("%q: did_you_mean %q, want %q", old, like["lines"], want)
		}
	}
	r := e.fails("no_match", "patch", args{"mode": "patch", "patch": "*** Begin Patch\n*** Update File: a.py\n-x = 1\n+x = 2\n*** End Patch"})
	wantContains(t, r["error"], "4|x=1\n")
}

func TestPatchV4A(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		files := map[string]string{"a.py": "def a():\n    return 1\n\ndef b():\n    return 1\n", "old.txt": "old\n", "gone.txt": "x"}
		for name, content := range files {
			e.write(name, content)
		}
		e.ok("terminal", args{"command": "chmod 755 old.txt"})
		r := e.ok("patch", args{"mode": "patch", "patch": `*** Begin Patch
*** Update File: a.py
@@ def b():
-    return 1
+    return 2
*** Add File: new/n.txt
+line
+
+last
*** Delete File: gone.txt
*** Move File: old.txt -> moved/new.txt
*** End Patch
`})
		e.wantFile("a.py", "def a():\n    return 1\n\ndef b():\n    return 2\n")
		e.wantFile("new/n.txt", "line\n\nlast\n")
		e.wantFile("moved/new.txt", "old\n")
		e.wantOutput("ls -R; stat -c %a moved/new.txt", ".:\na.py\nmoved\nnew\n\n./moved:\nnew.txt\n\n./new:\nn.txt\n755")
		wantContains(t, r["files_moved"], "old.txt -> moved/new.txt")
		wantContains(t, r["diff"], "-    return 1\n+    return 2\n")

		e.ok("terminal", args{"command": "ln -s a.py link.py"})
		// All or nothing: the first section of each would be fine.
		for class, rest := range map[string]string{
			"invalid_patch": "*** Add File: ../x\n+x",
			"exists":        "*** Add File: a.py\n+x",
			"not_found":     "*** Delete File: nosuch",
			"no_match":      "*** Update File: a.py\n-nosuch\n+x",
			"denied":        "*** Move File: a.py -> /etc/x",
			// Two names of one file, and a file that would have to be a directory.
			"same_file":       "*** Update File: a.py\n-    return 2\n+    return 3\n*** Update File: link.py\n-def b():\n+def c():",
			"not_a_directory": "*** Add File: first.txt/x\n+x",
			"is_directory":    "*** Add File: second/x\n+x\n*** Add File: second\n+x",
			"too_large":       manyFiles(600),
		} {
			text := "*** Begin Patch\n*** Add File: first.txt\n+1\n" + rest + "\n*** End Patch"
			wantContains(t, e.fails(class, "patch", args{"mode": "patch", "patch": text})["error"], "nothing was changed")
		}
		e.wantFile("a.py", "def a():\n    return 1\n\ndef b():\n    return 2\n")
		e.wantOutput("rm link.py; ls", "a.py\nmoved\nnew")
		if _, err := e.box.Files().Stat(t.Context(), "first.txt"); err == nil {
			t.Error("a refused patch wrote a file")
		}
		e.ok("terminal", args{"command": "mkdir dir"})
		call := e.call("patch", args{"mode": "patch", "patch": "*** Add File: one.txt\n+1\n*** Add File: dir\n+x"})
		if call.Status == episode.CallOK {
			t.Errorf("a directory was replaced: %s", call.Result)
		}
		e.wantOutput("ls", "a.py\ndir\nmoved\nnew")
	})
}

// manyFiles is a patch that adds so many files.
func manyFiles(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "*** Add File: many/%d\n+x\n", i)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func TestSearchFiles(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		for name, content := range map[string]string{
			"b.txt": "alpha\r\nbeta\r\nalpha beta\r\n", "a/x.py": "import alpha\n", "a/y.py": "nothing\n", ".hid/z.txt": "alpha",
			".dot": "alpha", "bin.txt": "alpha\x00", "a-b/w.py": "no\n",
		} {
			e.write(name, content)
		}
		e.ok("terminal", args{"command": "ln -s b.txt link; mkfifo pipe"})
		for _, tt := range []struct {
			args args
			want string
		}{
			{args{"pattern": "alph.$"}, `{"total_count":2,"matches":[{"path":"a/x.py","line":1,"content":"import alpha"},` +
				`{"path":"b.txt","line":1,"content":"alpha"}],"truncated":false}`},
			{args{"pattern": "alpha", "limit": 1, "offset": 1, "context": 1}, `{"total_count":3,"matches":[{"path":"b.txt","line":1,` +
				`"content":"alpha","after":["beta"]}],"truncated":true}`},
			{args{"pattern": "beta", "path": "b.txt", "context": 5}, `{"total_count":2,"matches":[{"path":"b.txt","line":2,"content":"beta",` +
				`"before":["alpha"],"after":["alpha beta"]},{"path":"b.txt","line":3,"content":"alpha beta","before":["alpha","beta"]}],"truncated":false}`},
			{args{"pattern": "alpha", "output_mode": "files_only"}, `{"total_count":2,"files":["a/x.py","b.txt"],"truncated":false}`},
			{args{"pattern": "alpha", "output_mode": "count"}, `{"total_count":3,"total_files":2,"counts":{"a/x.py":1,"b.txt":2},"truncated":false}`},
			{args{"pattern": "alpha", "file_glob": "*.py"}, `{"total_count":1,"matches":[{"path":"a/x.py","line":1,"content":"import alpha"}],"truncated":false}`},
			{args{"pattern": "*.py", "target": "files", "limit": 2}, `{"total_count":3,"files":["a/x.py","a/y.py"],"truncated":true}`},
			{args{"pattern": "a/**", "target": "files"}, `{"total_count":2,"files":["a/x.py","a/y.py"],"truncated":false}`},
			{args{"pattern": "x.p", "target": "files", "path": "a"}, `{"total_count":1,"files":["a/x.py"],"truncated":false}`},
			{args{"pattern": "zzz"}, `{"total_count":0,"matches":[],"truncated":false}`},
		} {
			if got := e.call("search_files", tt.args).Result; got != tt.want {
				t.Errorf("search_files(%v)\ngot  %s\nwant %s", tt.args, got, tt.want)
			}
		}
		e.fails("invalid_pattern", "search_files", args{"pattern": "(?=x)"})
		e.fails("invalid_pattern", "search_files", args{"pattern": "[", "target": "files"})
		e.fails("not_found", "search_files", args{"pattern": "x", "path": "nosuch"})

		again := func(want string) {
			t.Helper()
			if call := e.turn("search_files", args{"pattern": "nothing"}); !strings.Contains(call.Result, want) || want == "" && strings.Contains(call.Result, "_warning") {
				t.Errorf("got %s, want it to contain %q", call.Result, want)
			}
		}
		for _, want := range []string{"", "", `"_warning":"the third`, "BLOCKED"} {
			again(want)
		}
		e.turn("search_files", args{"pattern": "import"})
		again("")
		again("")
		e.write("a/z.py", "nothing else\n") // as a background process would
		again("z.py")
		again("")
		e.turn("terminal", args{"command": "true"})
		again("")
		again("")

		e.ok("terminal", args{"command": "mkdir -p ~/.ssh && echo k1 > ~/.ssh/key && echo k1 > .env && echo k1 > .env.example && ln -s .env open"})
		for _, path := range []string{".env", "open"} {
			e.fails("denied", "search_files", args{"pattern": "k1", "path": path})
		}
		if got, want := e.call("search_files", args{"pattern": "k1", "file_glob": ".env*", "output_mode": "files_only"}).Result,
			`{"total_count":1,"files":[".env.example"],"truncated":false,"withheld":1}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := e.call("search_files", args{"pattern": "k1", "path": "~/.ssh"}).Result, `{"total_count":0,"matches":[],"truncated":false,"withheld":1}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := e.call("search_files", args{"pattern": ".env*", "target": "find", "offset": 1 << 62, "limit": 1 << 62}).Result,
			`{"total_count":2,"files":[],"truncated":false}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestTodo(t *testing.T) {
	e := open(t, "local", "todo")
	if got, want := e.call("todo", args{}).Result,
		`{"todos":[],"summary":{"total":0,"pending":0,"in_progress":0,"completed":0,"cancelled":0}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	e.ok("todo", args{"todos": []args{{"id": "1", "content": "read", "status": "in_progress"}, {"id": "2", "content": "write"}}})
	got := e.call("todo", args{"merge": true, "todos": []args{{"id": "1", "status": "completed"}, {"id": "3", "content": "test", "status": "pending"}}}).Result
	want := `{"todos":[{"id":"1","content":"read","status":"completed"},{"id":"2","content":"write","status":"pending"},` +
		`{"id":"3","content":"test","status":"pending"}],"summary":{"total":3,"pending":2,"in_progress":0,"completed":1,"cancelled":0}}`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	e.fails("invalid_todos", "todo", args{"merge": true, "todos": []args{{"id": "9", "status": "completed"}}})
	e.fails("invalid_arguments", "todo", args{"todos": []args{{"id": "1", "content": "x", "status": "done"}}})
	if got := e.call("todo", args{}).Result; got != want {
		t.Errorf("after refused changes: got %s, want %s", got, want)
	}
	if got := e.ok("todo", args{"todos": []args{}})["todos"].([]any); len(got) != 0 {
		t.Errorf("emptied list: %v", got)
	}
}
