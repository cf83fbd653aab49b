package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
)

// TestNoArgumentIsDropped gives every tool what models give it that it does not have: each is read as what it means, or
// flagged as what makes no difference, or refused.
func TestNoArgumentIsDropped(t *testing.T) {
	for _, tt := range []struct {
		tool    string
		base    args
		flagged string // extra arguments that are flagged, name=value
		refused string
	}{
		{"read_file", args{}, "file_path=f.txt filename=f.txt file=f.txt target_file=f.txt", ""},
		{"read_file", args{"path": "f.txt"}, "start_line=1 end_line=1 max_lines=3 encoding=utf-8 explanation=x description=x",
			"encoding=latin-1 view_range=1 tail=3 raw=true column=2 line=1"},
		{"write_file", args{"path": "new.txt"}, "contents=x text=x file_text=x", "data=x"},
		{"write_file", args{"path": "new.txt", "content": "x"}, "encoding=utf-8 create_dirs=true overwrite=true reason=x",
			"overwrite=false mode=a mode=0755 executable=true backup=true insert_line=3 dry_run=true"},
		{"patch", args{"path": "f.txt", "dry_run": true}, "", ""},
		{"patch", args{"path": "f.txt", "new_string": "y", "dry_run": true}, "old_str=a old_text=a search=a", "oldest=a"},
		{"patch", args{"path": "f.txt", "old_string": "a", "dry_run": true}, "new_str=y new_text=y replacement=y", "content=y"},
		{"patch", args{"path": "f.txt", "old_string": "a", "new_string": "y", "dry_run": true}, "allow_multiple=true instruction=x",
			"count=1 line=2 regex=true create=true ignore_whitespace=true occurrence=2 start_line=1"},
		{"search_files", args{}, "query=a regex=a", ""},
		{"search_files", args{"pattern": "A"}, "case_insensitive=true -i=true i=true directory=. include=*.txt glob=*.txt max_results=3 " +
			"context_lines=1 recursive=true thought=x", "recursive=false case_sensitive=false exclude=x multiline=true type=py -v=true max_depth=1 word=true"},
		{"terminal", args{}, "cmd=ls command_line=ls", ""},
		{"terminal", args{"command": "ls"}, "cwd=. working_directory=. is_background=false timeout_seconds=9 shell=bash description=x purpose=x",
			"env=x shell=fish stdin=x timeout_ms=100 sudo=true user=root input=x check=true"},
		{"process", args{"action": "list"}, "thinking=x", "signal=9 pid=1 all=true"},
		{"process", args{"action": "poll"}, "id=proc_9 process_id=proc_9", "name=x"},
		{"execute_code", args{}, "script=1 source_code=1", ""},
		{"execute_code", args{"code": "1"}, "language=python", "language=ruby timeout=3 packages=x args=x stdin=x cwd=/"},
		{"todo", args{}, "comment=x", "add=x remove=x"},
		{"memory", args{"action": "remove", "target": "memory"}, "old_string=x old=x", "key=x index=1"},
		{"memory", args{"action": "add", "target": "memory"}, "text=x entry=x", "value=x"},
		{"clarify", args{"question": "why?"}, "rationale=x", "multiple=true default=x"},
		{"session_search", args{"query": "x"}, "max_results=3", "since=x"},
	} {
		for _, extra := range append(strings.Fields(tt.flagged), strings.Fields(tt.refused)...) {
			e := open(t, "local", "all")
			e.write("f.txt", "a\nb\n")
			given := args{}
			for name, value := range tt.base {
				given[name] = value
			}
			name, value, _ := strings.Cut(extra, "=")
			given[name] = value
			if name == "view_range" || name == "args" {
				given[name] = []int{1, 2}
			}
			got := e.call(tt.tool, given)
			flagged := strings.Contains(strings.Join(got.Coerced, " "), ":"+name)
			unknown := got.Status == episode.CallInvalidArguments && strings.Contains(got.Result, name+": expected one of ")
			if want := strings.Contains(" "+tt.flagged+" ", " "+extra+" "); flagged != want || unknown == want {
				t.Errorf("%s with %s: %s, coerced %q: %s", tt.tool, extra, got.Status, got.Coerced, got.Result)
			}
		}
	}
}

// TestArgumentsMeanWhatTheySay is about the effect of other names.
func TestArgumentsMeanWhatTheySay(t *testing.T) {
	e := open(t, "local", "all")
	e.write("f.txt", "1\n2\n3\n4\n5\n")
	e.write("d/x", "")
	if got := e.ok("read_file", args{"file_path": "f.txt", "start_line": 2, "end_line": 4})["content"]; got != "2|2\n3|3\n4|4" {
		t.Errorf("lines 2 to 4: %v", got)
	}
	if got := e.ok("terminal", args{"cmd": "ls", "cwd": "d"})["output"]; got != "x" {
		t.Errorf("ls in d: %v", got)
	}
	e.ok("patch", args{"file_path": "f.txt", "old_str": "1\n", "new_str": ""})
	e.wantFile("f.txt", "2\n3\n4\n5\n")
}

func TestAppend(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		e.write("a.txt", "one")
		e.ok("read_file", args{"path": "a.txt"})
		if r := e.ok("write_file", args{"path": "a.txt", "content": " two\n", "append": true}); r["bytes_written"] != 5.0 || r["_warning"] != nil {
			t.Errorf("append: %v", r)
		}
		e.wantFile("a.txt", "one two\n")
		e.ok("write_file", args{"path": "d/new.txt", "content": "x", "append": "true"})
		e.wantFile("d/new.txt", "x")
		e.write("crlf.txt", "\uFEFFa\r\n")
		e.ok("write_file", args{"path": "crlf.txt", "content": "b\n", "append": true})
		e.wantFile("crlf.txt", "\uFEFFa\r\nb\r\n")
		e.ok("execute_code", args{"code": "from trajgen_tools import write_file\nwrite_file('a.txt', 'three\\n', append=True)"})
		e.wantFile("a.txt", "one two\nthree\n")
	})
	e := open(t, "local", "file")
	e.write("large", strings.Repeat("x", 50<<20))
	e.fails("too_large", "write_file", args{"path": "large", "content": "y", "append": true})
}

func TestPatchDryRun(t *testing.T) {
	e := open(t, "local", "file")
	e.write("a.txt", "x\ny\nx\n")
	r := e.ok("patch", args{"path": "a.txt", "old_string": "y", "new_string": "z", "dry_run": true})
	if wantContains(t, r["diff"], "-y\n+z"); r["dry_run"] != true {
		t.Errorf("result: %v", r)
	}
	r = e.ok("patch", args{"mode": "patch", "dry_run": true, "patch": "*** Begin Patch\n*** Update File: a.txt\n-y\n+z\n*** Add File: b.txt\n+b\n*** End Patch"})
	if wantContains(t, r["diff"], "-y\n+z"); r["dry_run"] != true || fmt.Sprint(r["files_created"]) != "[b.txt]" {
		t.Errorf("result: %v", r)
	}
	e.fails("no_match", "patch", args{"path": "a.txt", "old_string": "w", "new_string": "z", "dry_run": true})
	e.wantFile("a.txt", "x\ny\nx\n")
	e.fails("not_found", "read_file", args{"path": "b.txt"})
}

func TestPatchExpectedReplacements(t *testing.T) {
	e := open(t, "local", "file")
	e.write("a.txt", "x\ny\nx\nzzz\n")
	patch := func(old string, expected int) args {
		return args{"path": "a.txt", "old_string": old, "new_string": "w", "expected_replacements": expected}
	}
	for _, given := range []args{patch("x", 1), patch("x", 3), patch("y", 2), patch("zz", 1)} {
		wantContains(t, e.fails("unexpected_count", "patch", given)["error"], "nothing was changed")
	}
	e.wantFile("a.txt", "x\ny\nx\nzzz\n")
	e.ok("patch", patch("x", 2))
	e.ok("patch", patch("y", 1))
	e.wantFile("a.txt", "w\nw\nw\nzzz\n")
	e.fails("invalid_argument", "patch", args{"mode": "patch", "patch": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch", "expected_replacements": 1})
}

func TestSearchIgnoresCase(t *testing.T) {
	e := open(t, "local", "file")
	e.write("Dir/ReadMe.md", "Straße\nHELLO\nhello|x\n")
	for _, tt := range []struct {
		args  args
		count float64
	}{
		{args{"pattern": "hello"}, 1},
		{args{"pattern": "hello", "ignore_case": true}, 2},
		{args{"pattern": "zzz|HeLLo$", "ignore_case": true}, 1},
		{args{"pattern": "(?-i)hello", "ignore_case": true}, 1},
		{args{"pattern": "readme", "target": "files"}, 0},
		{args{"pattern": "readme", "target": "files", "ignore_case": true}, 1},
		{args{"pattern": "dir/*.MD", "target": "files", "ignore_case": true}, 1},
	} {
		if got := e.ok("search_files", tt.args)["total_count"]; got != tt.count {
			t.Errorf("%v finds %v, want %v", tt.args, got, tt.count)
		}
	}
	wantContains(t, e.fails("invalid_pattern", "search_files", args{"pattern": "(", "ignore_case": true})["error"], "missing closing )")
}
