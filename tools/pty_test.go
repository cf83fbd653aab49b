package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
)

func TestTerminalPty(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		pty := func(command string) string {
			t.Helper()
			call := e.call("terminal", args{"command": command, "pty": true, "timeout": 20})
			if call.Status != episode.CallOK {
				t.Fatalf("%s: %s", command, call.Result)
			}
			return fmt.Sprint(decode(t, call.Result)["output"])
		}
		for command, want := range map[string]string{
			"[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo terminal": "terminal",
			"stty size; echo $TERM":                             "24 80\nxterm",
			"echo a; echo b >&2":                                "a\nb",
			"cat; echo end":                                     "end", // nobody types
			"cat; cat; read x; echo end":                        "end",
			"python3 -c 'import getpass; getpass.getpass()' 2>&1 | tail -n 1": "Password: EOFError",
			"python3 -q; echo end":          ">>> \nend",
			"printf 'x\\033[31my\\033[0m'":  "xy",
			"[ -e /dev/fd/3 ] && echo open": "",
		} {
			if got := pty(command); got != want {
				t.Errorf("%q printed %q, want %q", command, got, want)
			}
		}
		pty("mkdir -p p; cd p; export FROM=pty; pf() { echo f; }")
		e.wantOutput("basename $PWD; echo $FROM; pf; echo ${TERM-none} | grep -c xterm", "p\npty\nf\n0")
		if call := e.call("terminal", args{"command": "sleep 60", "pty": true, "timeout": 1}); call.Status != episode.CallTimeout {
			t.Errorf("got %s: %s", call.Status, call.Result)
		}
	})
}

func TestProcessPty(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		r := e.ok("terminal", args{
			"command": `python3 -i -q`, "background": true, "pty": true, "watch_patterns": []string{">>>", "1764"},
		})
		id := r["session_id"]
		wait := func() map[string]any {
			return e.ok("process", args{"action": "wait", "session_id": id, "timeout": 20})
		}
		wantContains(t, wait()["notifications"], "pattern:>>>")
		r = e.ok("process", args{"action": "submit", "session_id": id, "data": "print(42 * 42)"})
		if r["bytes_written"] != 15.0 {
			t.Errorf("submit: %v", r)
		}
		for range 5 {
			if strings.Contains(fmt.Sprint(wait()["notifications"]), "line:1764") {
				break
			}
		}
		e.ok("process", args{"action": "write", "session_id": id, "data": "raise SystemExit(7)\r"})
		for range 5 {
			if r = wait(); r["status"] == "exited" {
				break
			}
		}
		if r["exit_code"] != 7.0 {
			t.Errorf("got %v", r)
		}
		wantContains(t, r["output"], "1764")
		if strings.Contains(fmt.Sprint(r["output"]), "\r\n") {
			t.Errorf("lines end as on a terminal: %q", r["output"])
		}

		id = e.ok("terminal", args{"command": "cat; echo over", "background": true, "pty": true})["session_id"]
		e.ok("process", args{"action": "close", "session_id": id})
		if r := wait(); r["status"] != "exited" || r["output"] != "over" {
			t.Errorf("after the end of file: %v", r)
		}
	})
}
