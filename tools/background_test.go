package tools_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
)

// replaced gives an episode another sandbox for its terminal.
func replaced(e *episodeOf, box sandbox.Sandbox) {
	e.t.Helper()
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		e.t.Fatal(err)
	}
	set, err := reg.Select([]string{"terminal"}, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	e.session = set.Session(registry.SessionConfig{Sandbox: func(context.Context) (sandbox.Sandbox, error) { return box, nil }})
	e.t.Cleanup(e.session.Close)
}

// undying is a sandbox whose processes cannot be killed.
type undying struct{ sandbox.Sandbox }

func (u undying) Start(ctx context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	p, err := u.Sandbox.Start(ctx, cmd)
	return undyingProcess{p}, err
}

type undyingProcess struct{ sandbox.Process }

func (undyingProcess) Kill(context.Context, time.Duration) error {
	return errors.New("operation not permitted")
}

// What was not killed is not said to be.
func TestNotKilled(t *testing.T) {
	e := open(t, "local", "terminal")
	replaced(e, undying{e.box})
	e.ok("terminal", args{"command": "read x; exit 7", "background": true})
	if r := e.fails("not_killed", "process", args{"action": "kill", "session_id": "proc_1"}); r["status"] != "running" {
		t.Errorf("kill: %v", r)
	}
	if r := e.ok("process", args{"action": "poll", "session_id": "proc_1"}); r["status"] != "running" {
		t.Errorf("poll: %v", r)
	}
	e.ok("process", args{"action": "submit", "session_id": "proc_1", "data": "x"})
	if r := e.ok("process", args{"action": "wait", "session_id": "proc_1"}); r["exit_code"] != 7.0 || r["completion_reason"] == "killed" {
		t.Errorf("wait: %v", r)
	}
}

// A process that the table forgot takes no memory any more.
func TestForgottenProcesses(t *testing.T) {
	e := open(t, "local", "terminal")
	e.ok("terminal", args{"command": "true", "background": true})
	e.ok("process", args{"action": "wait", "session_id": "proc_1"})
	first := tools.FirstProcess(e.session)
	for i := 2; i <= 65; i++ {
		e.ok("terminal", args{"command": "true", "background": true})
		e.ok("process", args{"action": "wait", "session_id": fmt.Sprint("proc_", i)})
	}
	e.fails("not_found", "process", args{"action": "poll", "session_id": "proc_1"})
	for range 100 {
		if runtime.GC(); first.Value() == nil {
			return
		}
		time.Sleep(time.Millisecond) // its goroutines return
	}
	t.Error("the forgotten process is still held")
}
