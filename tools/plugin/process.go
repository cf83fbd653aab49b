package plugin

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/internal/feed"
)

// killTime bounds the kill of a process. It is less than the dispatcher waits for a tool after its timeout.
const killTime = 3 * time.Second

// process is a running plugin. A retired process gets no more requests and is killed when its last call has ended.
type process struct {
	proc   sandbox.Process
	input  *feed.Feed
	stderr *sandbox.Capture
	broken chan struct{} // closed when fault is set
	ended  chan struct{} // closed when exit and err are set
	exit   sandbox.Exit
	err    error

	mu      sync.Mutex // guards the rest
	waiting map[int64]chan reply
	retired bool
	fault   error // output that is not an answer
}

// start writes the plugin's files and runs it. The process outlives ctx.
func (p *plugin) start(ctx context.Context, box sandbox.Sandbox) (*process, error) {
	layout := box.Layout()
	dir := path.Join(layout.Tmp, "trajgen-plugins", p.cfg.Name)
	writes := make([]sandbox.FileWrite, len(p.files), len(p.files)+1)
	for i, file := range p.files {
		writes[i] = file
		writes[i].Path = path.Join(dir, file.Path)
	}
	if len(writes) == 0 { // the directory must exist
		writes = append(writes, sandbox.FileWrite{Path: path.Join(dir, ".plugin"), Replace: true})
	}
	if err := box.Files().Write(ctx, writes...); err != nil {
		return nil, fmt.Errorf("put its files in place: %w", err)
	}
	run := &process{
		input: feed.New(maxInput), stderr: sandbox.NewCapture(0, 4<<10), waiting: map[int64]chan reply{},
		broken: make(chan struct{}), ended: make(chan struct{}),
	}
	cmd := sandbox.Command{
		Args: p.cfg.Command, Dir: dir, Stdin: run.input,
		Stdout: &splitter{line: run.receive, fail: run.fail},
		Stderr: &bounded{to: run.stderr, fail: run.fail},
		// Python would buffer an answer: this is the most common reason for a missing one.
		Env: []string{"TRAJGEN_PLUGIN_DIR=" + dir, "PYTHONUNBUFFERED=1"},
	}
	if p.runner == nil {
		cmd.Env = append(cmd.Env, "TRAJGEN_WORKDIR="+layout.Workdir)
	}
	cmd.Env = append(cmd.Env, p.env...)
	var err error
	if run.proc, err = box.Start(ctx, cmd); err != nil {
		run.input.Close()
		return nil, fmt.Errorf("start it: %w", err)
	}
	return run, nil
}

// watch records the end of the process. It returns when the process or ctx has ended.
func (r *process) watch(ctx context.Context) {
	r.exit, r.err = r.proc.Wait(ctx)
	r.input.Close()
	close(r.ended)
}

// guard kills a process that breaks the protocol while no call waits; otherwise the end of the call does. It returns when the
// process is broken or has ended, or when ctx has ended.
func (r *process) guard(ctx context.Context) {
	select {
	case <-r.broken:
		r.retire(ctx)
	case <-r.ended:
	case <-ctx.Done():
	}
}

// errRetired means that nothing was sent.
var errRetired = errors.New("the process takes no more requests")

// exchange sends a request and returns its answer. After any error except errRetired, it is unknown whether the plugin carried
// out the request, and the process is retired.
func (r *process) exchange(ctx context.Context, req request) (reply, error) {
	line, err := req.line()
	if err != nil {
		return reply{}, err
	}
	answer := make(chan reply, 1) // buffered, so that a late answer does not block
	if !r.enter(req.ID, answer) {
		return reply{}, errRetired
	}
	failed := true
	defer func() { r.leave(ctx, req.ID, failed) }()
	if _, err := r.input.Write(line); errors.Is(err, feed.ErrFull) {
		return reply{}, errors.New("it does not read its input")
	} // a closed one is that of a process which has ended, as is told below
	// Wait with the call's context, so that the time counts as time in the sandbox.
	waiting, stop := context.WithCancel(ctx)
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		_, _ = r.proc.Wait(waiting)
	}()
	defer func() { stop(); <-waited }()
	select {
	case got := <-answer:
		failed = false
		return got, nil
	case <-r.ended:
	case <-r.broken:
	case <-ctx.Done():
	}
	select {
	case got := <-answer: // it came before the end
		failed = false
		return got, nil
	default:
	}
	return reply{}, r.reason(ctx)
}

// reason returns why no answer came.
func (r *process) reason(ctx context.Context) error {
	select {
	case <-r.broken:
		return r.fault
	default:
	}
	select {
	case <-r.ended:
		if r.err != nil {
			return fmt.Errorf("it was lost: %w", r.err)
		}
		return &exited{r.exit}
	default:
	}
	return ctx.Err()
}

// exited means that the process ended before the answer.
type exited struct{ exit sandbox.Exit }

func (e *exited) Error() string {
	switch {
	case e.exit.OOM:
		return "it ran out of memory before it answered"
	case e.exit.Signal != 0:
		return fmt.Sprintf("it was ended by signal %d before it answered", e.exit.Signal)
	}
	return fmt.Sprintf("it ended with status %d before it answered", e.exit.Code)
}

func (r *process) enter(id int64, answer chan reply) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.ended:
		r.retired = true
	default:
	}
	if r.retired {
		return false
	}
	r.waiting[id] = answer
	return true
}

// leave ends a call. The last call to leave a retired process kills it, with its descendants.
func (r *process) leave(ctx context.Context, id int64, failed bool) {
	r.mu.Lock()
	delete(r.waiting, id)
	r.retired = r.retired || failed
	kill := r.retired && len(r.waiting) == 0
	r.mu.Unlock()
	if kill {
		r.kill(ctx)
	}
}

// retire takes the process out of service.
func (r *process) retire(ctx context.Context) {
	r.mu.Lock()
	r.retired = true
	kill := len(r.waiting) == 0
	r.mu.Unlock()
	if kill {
		r.kill(ctx)
	}
}

func (r *process) kill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	// A process that survives ends with its sandbox.
	_ = r.proc.Kill(ctx, 0)
	r.input.Close()
}

// receive handles a line of output.
func (r *process) receive(line []byte) {
	got, err := readReply(line)
	if err != nil {
		r.fail(err)
		return
	}
	r.mu.Lock()
	answer := r.waiting[got.id]
	if answer != nil {
		r.waiting[got.id] = nil // a second answer has no receiver, though the call counts until leave
	}
	retired, broken := r.retired, r.fault != nil
	r.mu.Unlock()
	switch {
	case broken: // all later output is ignored
	case answer != nil:
		answer <- got
	case !retired: // an abandoned call may still be answered
		r.fail(fmt.Errorf("it answered a request %d that is not open", got.id))
	}
}

// fail records that the process broke the protocol.
func (r *process) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retired = true
	if r.fault == nil {
		r.fault = &violation{err}
		close(r.broken)
	}
}

// violation is output that is not an answer.
type violation struct{ cause error }

func (v *violation) Error() string { return v.cause.Error() }

// failureOf makes the failure of a call for the model.
func failureOf(name string, err error) error {
	class := "plugin_failed"
	if _, ok := errors.AsType[*violation](err); ok {
		class = "plugin_protocol"
	}
	if _, ok := errors.AsType[*exited](err); ok {
		class = "plugin_crashed"
	}
	return registry.Failf(class, "plugin %s: %s; it is started anew for the next call", name, err)
}
