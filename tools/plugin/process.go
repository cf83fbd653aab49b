package plugin

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"

	"trajgen/sandbox"
	"trajgen/tools/internal/feed"
	"trajgen/tools/internal/program"
)

// process is a running plugin. A retired process gets no more requests and is killed when its last call has ended.
type process struct {
	*program.Process
	broken chan struct{} // closed when fault is set

	mu      sync.Mutex // guards the rest
	waiting map[int64]chan reply
	retired bool
	fault   error // output that is not an answer
}

// start writes the plugin's files and runs it. The process outlives ctx.
func (p *plugin) start(ctx context.Context, box sandbox.Sandbox) (*process, error) {
	layout := box.Layout()
	dir := path.Join(layout.Tmp, "trajgen-plugins", p.cfg.Name)
	if err := program.Put(ctx, box, dir, p.files); err != nil {
		return nil, err
	}
	cmd := sandbox.Command{
		Args: p.cfg.Command, Dir: dir,
		// Python would buffer an answer: this is the most common reason for a missing one.
		Env: []string{"TRAJGEN_PLUGIN_DIR=" + dir, "PYTHONUNBUFFERED=1"},
	}
	if p.runner == nil {
		cmd.Env = append(cmd.Env, "TRAJGEN_WORKDIR="+layout.Workdir)
	}
	cmd.Env = append(cmd.Env, p.env...)
	run := &process{waiting: map[int64]chan reply{}, broken: make(chan struct{})}
	var err error
	run.Process, err = program.Start(ctx, box, cmd, program.Streams{
		MaxInput: maxInput, MaxLine: maxLine, Line: run.receive, Fail: run.fail, Log: 4 << 10, MaxLog: maxLog,
	})
	return run, err
}

// guard kills a process that breaks the protocol while no call waits; otherwise the end of the call does. It returns when the
// process is broken or has ended, or when ctx has ended.
func (r *process) guard(ctx context.Context) {
	select {
	case <-r.broken:
		r.leave(ctx, 0, true)
	case <-r.Ended:
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
	if _, err := r.Input.Write(line); errors.Is(err, feed.ErrFull) {
		return reply{}, errors.New("it does not read its input")
	} // a closed one is that of a process which has ended, see below
	select {
	case got := <-answer:
		return got, nil
	case <-r.Ended:
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
	case <-r.Ended:
	default:
		return ctx.Err()
	}
	if r.Err != nil {
		return fmt.Errorf("it was lost: %w", r.Err)
	}
	return &trouble{"plugin_crashed", r.HowEnded() + " before it answered"}
}

// takes reports whether the process takes requests. With an answer it is to be asked one, and lives until leave.
func (r *process) takes(id int64, answer chan reply) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.Ended:
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
		r.Kill(ctx)
	}
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
