package plugin

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

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
		r.leave(ctx, 0, true)
	case <-r.ended:
	case <-ctx.Done():
	}
}

// errRetired means that nothing was sent.
var errRetired = errors.New("the process takes no more requests")

// exchange sends a request and returns its answer. After any error except errRetired, it is unknown whether the plugin carried
// out the request, and the process is retired.
func (r *process) exchange(ctx context.Context, req request) (got reply, err error) {
	line, err := req.line()
	if err != nil {
		return reply{}, err
	}
	answer := make(chan reply, 1) // buffered, so that a late answer does not block
	if !r.takes(req.ID, answer) {
		return reply{}, errRetired
	}
	defer func() { r.leave(ctx, req.ID, err != nil) }()
	if _, err := r.input.Write(line); errors.Is(err, feed.ErrFull) {
		return reply{}, errors.New("it does not read its input")
	} // a closed one is that of a process which has ended, see below
	select {
	case got := <-answer:
		return got, nil
	case <-r.ended:
	case <-r.broken:
	case <-ctx.Done():
	}
	select {
	case got := <-answer: // it came before the end
		return got, nil
	default:
		return reply{}, r.reason(ctx)
	}
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
	default:
		return ctx.Err()
	}
	text := fmt.Sprintf("it ended with status %d before it answered", r.exit.Code)
	switch {
	case r.err != nil:
		return fmt.Errorf("it was lost: %w", r.err)
	case r.exit.OOM:
		text = "it ran out of memory before it answered"
	case r.exit.Signal != 0:
		text = fmt.Sprintf("it was ended by signal %d before it answered", r.exit.Signal)
	}
	return &trouble{"plugin_crashed", text}
}

// takes reports whether the process takes requests. With an answer it is to be asked one, and lives until leave.
func (r *process) takes(id int64, answer chan reply) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.ended:
		r.retired = true
	default:
	}
	if !r.retired && answer != nil {
		r.waiting[id] = answer
	}
	return !r.retired
}

// leave ends a call, if one has the id. The last call to leave a retired process kills it, with its descendants.
func (r *process) leave(ctx context.Context, id int64, retire bool) {
	r.mu.Lock()
	delete(r.waiting, id)
	r.retired = r.retired || retire
	kill := r.retired && len(r.waiting) == 0
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

// fail records that the process broke the protocol: it wrote what is not an answer.
func (r *process) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retired = true
	if r.fault == nil {
		r.fault = &trouble{"plugin_protocol", err.Error()}
		close(r.broken)
	}
}

// trouble is what a process did instead of answering.
type trouble struct{ class, text string }

func (t *trouble) Error() string { return t.text }
