package tools_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
)

// counting is a sandbox that counts what is asked of it.
type counting struct {
	sandbox.Sandbox
	trips []string
}

func (c *counting) Start(ctx context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	c.trips = append(c.trips, strings.TrimSpace("start "+cmd.Helper))
	return c.Sandbox.Start(ctx, cmd)
}

func (c *counting) Files() sandbox.Files { return countingFiles{c.Sandbox.Files(), c} }

type countingFiles struct {
	files sandbox.Files
	c     *counting
}

func (f countingFiles) Stat(ctx context.Context, path string) (sandbox.Info, error) {
	f.c.trips = append(f.c.trips, "stat")
	return f.files.Stat(ctx, path)
}

func (f countingFiles) Read(ctx context.Context, path string, offset, limit int64) ([]byte, sandbox.Info, error) {
	f.c.trips = append(f.c.trips, "read")
	return f.files.Read(ctx, path, offset, limit)
}

func (f countingFiles) Write(ctx context.Context, files ...sandbox.FileWrite) error {
	f.c.trips = append(f.c.trips, "write")
	return f.files.Write(ctx, files...)
}

func (f countingFiles) List(ctx context.Context, path string) ([]sandbox.Info, error) {
	f.c.trips = append(f.c.trips, "list")
	return f.files.List(ctx, path)
}

func (f countingFiles) Remove(ctx context.Context, paths ...string) error {
	f.c.trips = append(f.c.trips, "remove")
	return f.files.Remove(ctx, paths...)
}

// count gives an episode's sandbox a counter.
func count(e *episodeOf) *counting {
	e.t.Helper()
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		e.t.Fatal(err)
	}
	set, err := reg.Select([]string{"file"}, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	c := &counting{Sandbox: e.box}
	e.session = set.Session(registry.SessionConfig{Sandbox: func(context.Context) (sandbox.Sandbox, error) { return c, nil }})
	e.t.Cleanup(e.session.Close)
	return c
}

// turn makes a call in a turn of its own.
func (e *episodeOf) turn(name string, a args) episode.ToolCall {
	e.t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		e.t.Fatal(err)
	}
	e.n++
	return e.session.Call(e.t.Context(), registry.Request{ID: fmt.Sprintf("call_%d", e.n), Turn: e.n, Name: name, Arguments: string(text)})
}

func TestRoundTrips(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		e.write("small.txt", "a\nb\n")
		e.write("large.txt", strings.Repeat(strings.Repeat("x", 99)+"\n", 20_000))
		e.write("book.ipynb", `{"cells":[]}`)
		c := count(e)
		for _, tt := range []struct {
			name string
			args args
			want string
		}{
			{"read_file", args{"path": "small.txt"}, "read"},
			{"read_file", args{"path": "large.txt", "limit": 10}, "read, start read_file"}, // its size is not known yet
			{"read_file", args{"path": "large.txt", "limit": 10, "offset": 100}, "start read_file"},
			{"read_file", args{"path": "book.ipynb"}, "start read_file"},
			{"write_file", args{"path": "small.txt", "content": "c\n"}, "read, write"},
			{"write_file", args{"path": "new.txt", "content": "c\n"}, "read, stat, write"},
			{"patch", args{"path": "small.txt", "old_string": "c", "new_string": "d"}, "read, write"},
			{"search_files", args{"pattern": "d"}, "start search_files"},
		} {
			c.trips = nil
			if call := e.turn(tt.name, tt.args); call.Status != episode.CallOK {
				t.Errorf("%s(%v): %s", tt.name, tt.args, call.Result)
			}
			if got := strings.Join(c.trips, ", "); got != tt.want {
				t.Errorf("%s(%v) took %s, want %s", tt.name, tt.args, got, tt.want)
			}
		}
	})
}

// TestReadFileLarge compares pages of a large file, made in the sandbox, with what the runner would make of it.
func TestReadFileLarge(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		var b strings.Builder
		b.WriteString("\uFEFF")
		for i := range 100_000 {
			fmt.Fprintf(&b, "line %d \u00fc\r\n", i+1)
		}
		b.WriteString("open end")
		e.write("large.txt", b.String())
		for _, tt := range []struct {
			offset      int
			first, last string
			hint        string
		}{
			{1, "1|line 1 \u00fc", "2|line 2 \u00fc", "go on with offset=3"},
			{70_000, "70000|line 70000 \u00fc", "70001|line 70001 \u00fc", "lines 70000-70001 of 100001"},
			{100_000, "100000|line 100000 \u00fc", "100001|open end", ""},
		} {
			r := e.ok("read_file", args{"path": "large.txt", "offset": tt.offset, "limit": 2})
			if want := tt.first + "\n" + tt.last; r["content"] != want {
				t.Errorf("from %d: %q, want %q", tt.offset, r["content"], want)
			}
			if r["total_lines"] != 100_001.0 || r["file_size"] != float64(b.Len()) {
				t.Errorf("total_lines %v, file_size %v", r["total_lines"], r["file_size"])
			}
			if tt.hint == "" && (r["truncated"] != false || r["hint"] != nil) {
				t.Errorf("at the end: %v", r)
			}
			wantContains(t, fmt.Sprint(r["hint"]), tt.hint)
		}
		wantContains(t, e.ok("read_file", args{"path": "large.txt"})["hint"], "the file is large")
		e.ok("terminal", args{"command": "head -c 600000 /dev/zero > zero.txt"})
		e.fails("binary_file", "read_file", args{"path": "zero.txt"})
	})
}

func TestReadFileSpecial(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		e.ok("terminal", args{"command": "mkdir d; ln -s /dev/zero zero; ln -s /proc/self/environ env; ln -s d dir; ln -s .env secret; ln -s loop loop"})
		e.write(".env", "KEY=1")
		e.write(".env.example", "KEY=")
		if got := e.ok("read_file", args{"path": "/dev/null"}); got["total_lines"] != 0.0 {
			t.Errorf("/dev/null: %v", got)
		}
		for _, path := range []string{
			"/dev/zero", "/dev/urandom", "/dev/full", "/dev/stdin", "/dev/tty", "/dev/fd/0", "/proc/self/fd/0",
			"/proc/self/environ", "/proc/1/cmdline", "/proc/self/maps", "/proc/self/task/1/environ",
		} {
			e.fails("not_regular", "read_file", args{"path": path})
		}
		for _, link := range []string{"zero", "env"} {
			if call := e.call("read_file", args{"path": link}); call.ErrorClass != "not_regular" && call.ErrorClass != "permission" {
				t.Errorf("read %s: %s %s", link, call.Status, call.Result)
			}
		}
		e.fails("is_directory", "read_file", args{"path": "dir"})
		if call := e.call("read_file", args{"path": "loop"}); call.Status != episode.CallError {
			t.Errorf("a loop of links: %s", call.Result)
		}
		for _, path := range []string{".env", "secret", ".env.local", "d/.env.production", "~/.ssh/id_rsa", "~/.netrc"} {
			if call := e.call("read_file", args{"path": path}); call.Status != episode.CallDenied {
				t.Errorf("read %s: %s %s", path, call.Status, call.Result)
			}
		}
		e.ok("read_file", args{"path": ".env.example"})
		wantContains(t, e.fails("binary_file", "read_file", args{"path": addPicture(e)})["is_image"], "true")
	})
}

func addPicture(e *episodeOf) string {
	e.write("p.png", "\x89PNG")
	return "p.png"
}

func TestReadFileDocuments(t *testing.T) {
	pack := func(files map[string]string) string {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for name, content := range files {
			part, err := w.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := part.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	documents := map[string]struct{ content, want string }{
		"book.ipynb": {`{"cells":[{"cell_type":"markdown","source":["# T\n","x"]},{"cell_type":"code","source":"1+1","outputs":[` +
			`{"output_type":"execute_result","data":{"text/plain":["2"],"image/png":"AAAA"}},{"output_type":"stream","text":["hi\n"]}]}]}`,
			"1|[cell 1: markdown]\n2|# T\n3|x\n4|\n5|[cell 2: code]\n6|1+1\n7|\n8|[output of cell 2]\n9|2\n10|\n11|[output of cell 2]\n12|hi\n13|"},
		"letter.docx": {pack(map[string]string{"word/document.xml": `<w:document xmlns:w="w"><w:body><w:p><w:r><w:t>Dear</w:t></w:r><w:r><w:tab/><w:t>you &amp; me</w:t></w:r></w:p>` +
			`<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:body></w:document>`}),
			"1|Dear\tyou & me\n2|a \tb \t"},
		"sums.xlsx": {pack(map[string]string{
			"xl/workbook.xml":            `<workbook xmlns:r="r"><sheets><sheet name="One" sheetId="1" r:id="rId1"/></sheets></workbook>`,
			"xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="rId1" Target="worksheets/sheet1.xml"/></Relationships>`,
			"xl/sharedStrings.xml":       `<sst><si><t>name</t></si><si><r><t>to</t></r><r><t>tal</t></r></si></sst>`,
			"xl/worksheets/sheet1.xml": `<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row>` +
				`<row r="2"><c r="A2" t="inlineStr"><is><t>x</t></is></c><c r="B2"><v>1.5</v></c></row></sheetData></worksheet>`,
		}), "1|[sheet One]\n2|name\t\ttotal\n3|x\t1.5"},
	}
	each(t, func(t *testing.T, e *episodeOf) {
		for name, document := range documents {
			e.write(name, document.content)
			r := e.ok("read_file", args{"path": name})
			if r["content"] != document.want {
				t.Errorf("%s: got %q, want %q", name, r["content"], document.want)
			}
		}
		e.write("broken.docx", "no zip")
		e.fails("unreadable_document", "read_file", args{"path": "broken.docx"})
		e.write("bomb.docx", pack(map[string]string{"word/document.xml": "<w:t>" + strings.Repeat(" ", 33<<20)}))
		wantContains(t, e.fails("unreadable_document", "read_file", args{"path": "bomb.docx"})["error"], "too large")
	})
}

func TestReadFileAgain(t *testing.T) {
	e := open(t, "local", "all")
	e.write("a.txt", "a\n")
	read := func(want string) {
		t.Helper()
		if call := e.turn("read_file", args{"path": "a.txt"}); !strings.Contains(call.Result, want) {
			t.Errorf("got %s, want it to contain %s", call.Result, want)
		}
	}
	read(`"content":"1|a"`)
	read(`{"status":"unchanged"`)
	read(`BLOCKED`)
	e.turn("read_file", args{"path": "a.txt", "limit": 7})
	read(`BLOCKED`)
	e.turn("terminal", args{"command": "true"})
	read(`"content":"1|a"`)
	read(`"dedup":true,"content_returned":false`)
	e.write("a.txt", "b\n") // as a background process would
	read(`"content":"1|b"`)
	e.turn("write_file", args{"path": "a.txt", "content": "c\n"})
	read(`"content":"1|c"`)
	code := "from trajgen_tools import read_file\nfor i in range(3): print(read_file('a.txt')['content'])"
	wantContains(t, e.turn("execute_code", args{"code": code}).Result, `1|c\n1|c\n1|c`)
}

// What left the model's context is sent again: what a shorter conversation has no more, and what was cut when it was new.
func TestReadAgainWhatWasForgotten(t *testing.T) {
	e := open(t, "local", "all")
	e.write("a.txt", strings.Repeat("needle\n", 3))
	long := strings.Repeat("x", 1500)
	read, search := args{"path": "a.txt"}, args{"pattern": "needle"}
	var last episode.ToolCall
	for range 4 {
		e.turn("read_file", read)
	}
	for range 5 {
		last = e.turn("search_files", search)
	}
	if last.ErrorClass != "repeated" {
		t.Fatalf("the fifth search: %s", last.Result)
	}
	e.session.Forget(last.Turn + 1)
	for _, again := range []episode.ToolCall{e.turn("read_file", read), e.turn("search_files", search)} {
		if !strings.Contains(again.Result, "needle") || strings.Contains(again.Result, "_warning") {
			t.Errorf("%s of what was forgotten: %s", again.Name, again.Result)
		}
	}
	if again := e.turn("read_file", read); !strings.Contains(again.Result, "unchanged") {
		t.Errorf("what was sent again was forgotten, too: %s", again.Result)
	}

	cut := openLimited(t, "local", registry.ResultLimits{Tools: map[string]int{"read_file": 1000, "search_files": 1000}}, "all")
	cut.write("long.txt", strings.Repeat(long+"\n", 6))
	for _, give := range []struct {
		tool string
		args args
	}{{"read_file", args{"path": "long.txt"}}, {"search_files", args{"pattern": "x"}}} {
		for i := range 5 {
			if got := cut.turn(give.tool, give.args); !got.Truncated || got.Status != episode.CallOK {
				t.Errorf("%s %d, of which only a part was shown: %s %s", give.tool, i, got.Status, got.Result)
			}
		}
	}
}

// What a script reads is not in front of the model.
func TestScriptsReadForThemselves(t *testing.T) {
	e := open(t, "local", "all")
	e.write("a.txt", "1\n2\n3\n4\n")
	e.turn("read_file", args{"path": "a.txt", "limit": 2})
	e.turn("execute_code", args{"code": "from trajgen_tools import read_file\nread_file('a.txt')"})
	wantContains(t, decode(t, e.turn("write_file", args{"path": "a.txt", "content": "1\n"}).Result)["_warning"], "only a part")
	e.write("b.txt", "1\n")
	e.turn("read_file", args{"path": "b.txt"})
	e.write("b.txt", "2\n") // as a background process would
	e.turn("execute_code", args{"code": "from trajgen_tools import read_file\nread_file('b.txt')"})
	wantContains(t, decode(t, e.turn("write_file", args{"path": "b.txt", "content": "3\n"}).Result)["_warning"], "had changed since")
}

func TestStaleWrites(t *testing.T) {
	e := open(t, "local", "all")
	warning := func(name string, a args, want string) {
		t.Helper()
		r := decode(t, e.turn(name, a).Result)
		if got := fmt.Sprint(r["_warning"]); want == "" && r["_warning"] != nil || !strings.Contains(got, want) {
			t.Errorf("%s(%v): warning %q, want %q", name, a, got, want)
		}
	}
	e.write("a.txt", "1\n2\n3\n4\n")
	warning("write_file", args{"path": "a.txt", "content": "1\n2\n3\n4\n5\n"}, "") // never looked at
	e.turn("terminal", args{"command": "echo 6 >> a.txt"})
	warning("write_file", args{"path": "a.txt", "content": "1\n2\n3\n4\n"}, "had changed since")
	e.turn("terminal", args{"command": "echo 5 >> a.txt"})
	warning("patch", args{"path": "a.txt", "old_string": "5", "new_string": "6"}, "had changed since")
	warning("patch", args{"path": "a.txt", "old_string": "6", "new_string": "5"}, "")
	e.write("b.txt", "1\n2\n3\n4\n")
	e.turn("read_file", args{"path": "b.txt", "limit": 2})
	warning("write_file", args{"path": "b.txt", "content": "x\n2\n3\n4\n"}, "only a part of the file that this replaces: 1-2 of 4 lines")
	e.write("c.txt", "1\n2\n3\n4\n")
	e.turn("read_file", args{"path": "c.txt", "limit": 2})
	e.turn("read_file", args{"path": "c.txt", "offset": 3})
	e.turn("terminal", args{"command": "ln -s c.txt link; touch c.txt"})
	warning("write_file", args{"path": "link", "content": "x\n2\n3\n4\n"}, "")
	e.wantFile("c.txt", "x\n2\n3\n4\n")
}

func TestPatchHints(t *testing.T) {
	e := open(t, "local", "file")
	e.write("a.txt", "alpha\n")
	wrong := args{"path": "a.txt", "old_string": "beta", "new_string": "gamma"}
	if r := e.fails("no_match", "patch", wrong); r["_hint"] != nil {
		t.Errorf("first failure: %v", r)
	}
	wantContains(t, e.fails("no_match", "patch", wrong)["_hint"], "read_file first")
	wantContains(t, e.fails("no_match", "patch", wrong)["_hint"], "3 patches")
	e.ok("patch", args{"path": "a.txt", "old_string": "alpha", "new_string": "beta"})
	if r := e.fails("no_match", "patch", args{"path": "a.txt", "old_string": "zeta", "new_string": "x"}); r["_hint"] != nil {
		t.Errorf("after a success: %v", r)
	}
}

func TestWriteFileEcho(t *testing.T) {
	e := open(t, "local", "file")
	e.write("a.txt", "x\ny\n")
	e.turn("read_file", args{"path": "a.txt"})
	message := decode(t, e.turn("read_file", args{"path": "a.txt"}).Result)["message"]
	e.fails("echo", "write_file", args{"path": "a.txt", "content": message})
	e.fails("echo", "write_file", args{"path": "a.txt", "content": "1|x\n2|z\n"})
	e.fails("echo", "write_file", args{"path": "new.txt", "content": "7|x\n8|z\n"})
	e.ok("write_file", args{"path": "t.csv", "content": "1|x\n2|z\n"})
	e.ok("write_file", args{"path": "b.txt", "content": "1|x\n7|z\n"})
	e.ok("write_file", args{"path": "c.txt", "content": "1|one line\n"})
	e.wantFile("a.txt", "x\ny\n")
}

func TestSensitivePaths(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		e.ok("terminal", args{"command": "ln -s /etc etc; ln -s ~ home; mkdir -p ~/.ssh; ln -s ~/.ssh/authorized_keys keys"})
		for _, path := range []string{"etc/x", "~/.ssh/config", "~/.aws/credentials", "home/.netrc", "home/.config/gh/x", "/var/run/docker.sock"} {
			for name, a := range map[string]args{
				"write_file": {"path": path, "content": "x"},
				"patch":      {"mode": "patch", "patch": "*** Add File: " + path + "\n+x"},
			} {
				// What the sandbox itself forbids is not reached.
				if call := e.call(name, a); call.Status != episode.CallDenied && call.ErrorClass != "permission" {
					t.Errorf("%s %s: %s %s", name, path, call.Status, call.Result)
				}
			}
		}
		e.write("a.txt", "x")
		e.fails("denied", "patch", args{"mode": "patch", "patch": "*** Move File: a.txt -> home/.netrc"})
		e.fails("denied", "patch", args{"path": "/etc/hosts", "old_string": "a", "new_string": "b"})
		// A link to nothing is replaced and not followed.
		e.ok("write_file", args{"path": "keys", "content": "x"})
		e.ok("terminal", args{"command": "rm keys; ln -s ~/.ssh/authorized_keys keys"})
		e.ok("patch", args{"mode": "patch", "patch": "*** Add File: keys\n+x"})
		e.wantOutput("ls -A ~/.ssh", "")
		e.ok("write_file", args{"path": ".npmrc", "content": "x"})
	})
}

func TestLint(t *testing.T) {
	e := open(t, "local", "all")
	for _, tt := range []struct{ path, content, status, want string }{
		{"a.py", "def f(:\n  pass\n", "error", "line 1"},
		{"b.py", "import os\nprint(os.getcwd())\n", "ok", ""},
		{"a.go", "package p\n\nfunc f( {\n", "error", "3:"},
		{"b.go", "package p\n\nfunc f() {}\n", "ok", ""},
		{"a.toml", "a = [1\n", "error", "line 2"},
		{"b.toml", "a = [1]\n", "ok", ""},
		{"a.js", "function f( {\n", "error", "SyntaxError"},
		{"b.js", "import x from 'y';\nexport const z = x;\n", "ok", ""},
		{"c.js", "return 1\nconst a = await 1\n", "error", "SyntaxError"},
		{"a.mjs", "const a = await 1\nlet a\n", "error", "SyntaxError"},
		{"a.rs", "fn f( {\n", "error", "error"},
		{"b.rs", "fn f()   {}\n", "ok", ""},
	} {
		check, _ := e.ok("write_file", args{"path": tt.path, "content": tt.content})["lint"].(map[string]any)
		if check["status"] == "skipped" {
			t.Logf("%s: %v", tt.path, check["message"])
			continue
		}
		if check["status"] != tt.status || !strings.Contains(fmt.Sprint(check["output"]), tt.want) {
			t.Errorf("%s: %v, want %s with %q", tt.path, check, tt.status, tt.want)
		}
	}
	// The package that a project has is asked.
	e.write("ts/node_modules/typescript/index.js", `module.exports = {JsxEmit: {}, ScriptTarget: {}, ModuleKind: {}, flattenDiagnosticMessageText: (text) => text,
		transpileModule: (text) => ({diagnostics: text.includes('= ;') ?
			[{file: {getLineAndCharacterOfPosition: () => ({line: 2})}, start: 1, messageText: 'Expression expected.'}] : []})}`)
	for content, want := range map[string]string{"let x = ;\n": "output:line 3: Expression expected. status:error", "let x = 1;\n": "status:ok"} {
		check := fmt.Sprint(e.ok("write_file", args{"path": "ts/a.tsx", "content": content})["lint"])
		if !strings.Contains(check, "node is not installed") {
			wantContains(t, check, want)
		}
	}
	r := e.ok("write_file", args{"path": "a.json", "content": "{\n"})
	wantContains(t, r["lint"], "status:error")
	r = e.ok("write_file", args{"path": "a.json", "content": "\n{\n"})
	wantContains(t, r["lint"], "status:ok")
	wantContains(t, r["lint"], "nothing new")
	r = e.ok("patch", args{"path": "a.json", "old_string": "{", "new_string": "{]"})
	wantContains(t, r["lint"], "status:error")
}
