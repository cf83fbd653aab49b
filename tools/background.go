package tools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/internal/feed"
	"trajgen/tools/policy"
)

// Bounds of background processes.
const (
	maxProcesses  = 64
	processOutput = 200_000 // characters of output kept for each
	maxInput      = 1 << 20 // bytes that wait for a process to read them
)

// processTable is the background processes of an episode.
type processTable struct {
	mu      sync.Mutex // guards the rest
	started int
	all     []*process // in the order in which they were started
}

func processesOf(s *registry.Session) *processTable {
	return registry.State(s, "tools.processes", func() *processTable { return &processTable{} })
}

// process is a background process.
type process struct {
	id       string
	command  string
	dir      string
	tty      bool
	proc     sandbox.Process
	output   *capture
	stdin    *feed.Feed
	watcher  *watcher
	notify   bool                         // notify the model of its end
	reported atomic.Bool                  // a result for the model had its end
	killed   atomic.Bool                  // by the process tool
	forget   func()                       // releases what the session would release at its end
	typed    atomic.Pointer[policy.Typed] // input so far, as it was judged, with the shell that started it
	done     chan struct{}                // closed when exit and err are set
	exit     sandbox.Exit
	err      error
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// status returns the state for results, with the exit code of a process that has ended.
func (p *process) status() (string, *int) {
	switch {
	case !p.ended():
		return "running", nil
	case p.err != nil:
		return "lost", nil
	}
	return "exited", new(p.exit.Code)
}

// backgroundResult is the result of starting a process.
type backgroundResult struct {
	Output    string   `json:"output"`
	SessionID string   `json:"session_id"`
	ExitCode  int      `json:"exit_code"`
	Error     *string  `json:"error"`
	Notify    bool     `json:"notify_on_complete,omitempty"`
	Watch     []string `json:"watch_patterns,omitempty"`
}

func startBackground(ctx context.Context, env *registry.Env, box sandbox.Sandbox, args terminalArgs) (any, error) {
	table := processesOf(env.Session)
	table.mu.Lock()
	defer table.mu.Unlock()
	if err := table.makeRoom(); err != nil {
		return nil, err
	}
	shell := shellOf(env.Session)
	p := &process{
		id: fmt.Sprintf("proc_%d", table.started+1), command: args.Command, dir: cmp.Or(args.Workdir, shell.directory(box.Layout())),
		tty: args.Pty, output: newRolling(processOutput), stdin: feed.New(maxInput), watcher: newWatcher(args.Watch),
		notify: args.Notify, done: make(chan struct{}),
	}
	p.typed.Store(&policy.Typed{Command: args.Command, Context: shell.judged(box.Layout(), args.Workdir), Exports: shell.exports()})
	p.output.cleaner.terminal, p.output.tap = args.Pty, p.watcher.see
	given := shell.give(box.Layout(), args)
	start := given.shellCommand(background, box.Layout())
	start.Stdin, start.Stdout, start.Stderr, start.TTY = p.stdin, p.output, p.output, args.tty()
	var err error
	if p.proc, err = box.Start(ctx, start); err != nil {
		p.stdin.Close()
		return nil, startFailure(err)
	}
	// The shell closes its end before it evaluates the command, so this returns at once.
	stop := context.AfterFunc(ctx, func() { p.proc.Socket().Close() })
	report := given.talk(p.proc)
	stop()
	p.proc.Socket().Close()
	p.watch(env.Session)
	if given.refused(report) {
		return nil, noWorkdir(args.Workdir)
	}
	shell.remember(given, report)
	table.started++
	table.all = append(table.all, p)
	return backgroundResult{
		Output: "Background process started", SessionID: p.id, Notify: p.notify, Watch: p.watcher.patterns,
	}, nil
}

// makeRoom drops the oldest process that has ended when the table is full.
func (t *processTable) makeRoom() error {
	if len(t.all) < maxProcesses {
		return nil
	}
	i := slices.IndexFunc(t.all, (*process).ended)
	if i < 0 {
		return notRun("too_many_processes", "%d background processes are running; kill some first", maxProcesses)
	}
	t.all[i].forget()
	t.all = slices.Delete(t.all, i, i+1)
	return nil
}

// watch records the process's end. The session's end stops watch and waits for it; the process ends with the sandbox.
func (p *process) watch(s *registry.Session) {
	// Not the call's context: the process outlives the call.
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		p.exit, p.err = p.proc.Wait(ctx)
		p.stdin.Close()
		close(p.done)
	}()
	p.forget = s.OnClose(func() {
		cancel()
		<-p.done
	})
}

func (t *processTable) list() []*process {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.all)
}

// find returns nil for an unknown process.
func (t *processTable) find(id string) *process {
	for _, p := range t.list() {
		if p.id == id {
			return p
		}
	}
	return nil
}
