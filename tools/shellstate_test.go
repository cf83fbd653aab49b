package tools_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

func TestTerminalHandsOn(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		e.wantOutput("greet() { local who=$1\ncat <<EOF\n}\nhello $who\nEOF\n}; shout() { greet \"${1^^}\"; }; export -f shout", "")
		e.wantOutput("greet you; shout me; bash -c 'type -t shout; type -t greet'", "}\nhello you\n}\nhello ME\nfunction")
		e.wantOutput("alias ll='echo listed' say=echo; shopt -s extglob globstar; set -o pipefail; set -f", "")
		e.wantOutput("ll -a; say hi; shopt -q extglob && echo ext; false | true; echo $?; echo *", "listed -a\nhi\next\n1\n*")
		e.wantOutput("set +f; pick() { case $1 in +(a|b)) echo ab;; *) echo no;; esac; }", "")
		e.wantOutput("pick abba; unalias ll; unset -f greet; touch f1; echo f*", "ab\nf1")
		e.wantOutput("type -t ll greet; ll 2>&1 | tail -n 1; pick x", "bash: line 1: ll: command not found\nno")

		// What ends or traces a shell belongs to the command that asked for it.
		e.wantOutput("set -eux; true", "++ true")
		e.wantOutput("false; echo ${nosuch}alive", "alive")

		// Those that shadow what the harness itself uses change nothing.
		e.wantOutput("set() { echo shadow; }; printf() { echo shadow; }; exit() { echo shadow; }; eval() { :; }; cd() { builtin cd /; }", "")
		e.wantOutput("exec() { :; }; trap() { :; }; shopt() { :; }", "")
		if call := e.call("terminal", args{"command": "sleep 60", "background": true}); call.Elapsed > 30*time.Second {
			t.Errorf("started after %s", call.Elapsed)
		}
		e.wantOutput("unset -f exec trap shopt set printf exit eval cd; pwd", e.box.Layout().Workdir)

		e.wantOutput("export BIG=$(printf '%100000s' | tr ' ' x); f() { echo \"é $1\"; }", "")
		e.wantOutput("echo ${#BIG}; f ü; x=äö; echo ${#x}; unset BIG", "100000\né ü\n2")
		e.wantOutput("export V=kept; big=$(printf '%1200000s' | tr ' ' x); eval \"large() { echo $big; }\"", "")
		e.wantOutput("echo ${V-dropped}", "dropped") // more than a mebibyte is not handed on, and blocks nobody

		e.wantOutput("mkdir -p a/b/c; cd a/b/c", "")
		e.wantOutput("rm -r ../../b", "")
		e.wantOutput("pwd", e.box.Layout().Workdir+"/a")
	})
}

// TestTerminalSideBySide holds that commands that run at the same time do not undo each other's changes.
func TestTerminalSideBySide(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		e.ok("terminal", args{"command": "mkdir -p d; export GONE=1"})
		commands := []string{
			"export A=1; sleep 0.4", "sleep 0.1; export B=2", "unset GONE; sleep 0.2", "cd d; sleep 0.3", "h() { echo h; }; sleep 0.3",
			"sleep 0.2; alias hh='echo alias'",
		}
		var all sync.WaitGroup
		for i, command := range commands {
			all.Go(func() {
				call := e.session.Call(t.Context(), registry.Request{
					ID: fmt.Sprintf("side_%d", i), Name: "terminal", Arguments: fmt.Sprintf("{%q:%q}", "command", command),
				})
				if call.Status != episode.CallOK {
					t.Errorf("%s: %s", command, call.Result)
				}
			})
		}
		all.Wait()
		e.wantOutput("echo $A $B ${GONE-gone}; basename $PWD; h; hh", "1 2 gone\nd\nh\nalias")
	})
}

func TestTerminalKillsTrees(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		if runtime.GOOS != "linux" {
			t.Skip("no setsid")
		}
		// The words are not plain, so the check of detached commands does not see them.
		call := e.call("terminal", args{"timeout": 1, "command": `trap 'echo asked > asked' TERM
s=setsid; python3 -c 'import subprocess, time
subprocess.Popen(["setsid", "sh", "-c", "trap : TERM; while sleep 0.1; do echo x >> alive; done"])
time.sleep(60)'`})
		if call.Status != episode.CallTimeout {
			t.Fatalf("got %s: %s", call.Status, call.Result)
		}
		size := func() string {
			return fmt.Sprint(e.ok("terminal", args{"command": "cat alive | wc -l; sleep 0.3"})["output"])
		}
		if first, second := size(), size(); first != second || first == "0" {
			t.Errorf("what the command started goes on: %s lines and then %s", first, second)
		}
		e.wantOutput("cat asked", "asked")

		// A killed command changes nothing.
		e.call("terminal", args{"timeout": 1, "command": "cd /; export K=1; sleep 60"})
		e.wantOutput("echo ${K-none}; pwd", "none\n"+e.box.Layout().Workdir)

		// A descendant that holds the pipe keeps nobody waiting.
		call = e.call("terminal", args{"timeout": 30, "command": `python3 -c 'import subprocess; subprocess.Popen(["sleep", "60"])'; echo done`})
		if call.Result != `{"output":"done","exit_code":0,"error":null}` || call.Elapsed.Seconds() > 10 {
			t.Errorf("after %s: %s", call.Elapsed, call.Result)
		}
	})
}
