package registry

import (
	"context"
	"errors"
	"sync"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// meter counts the wall time during which a call waited for its sandbox, and has the images that it attached. Operations of one
// call may overlap.
type meter struct {
	now   func() time.Time
	keeps bool // for a twin; set before the call runs

	mu     sync.Mutex // guards the fields below
	active int
	since  time.Time
	total  time.Duration
	gone   error // the first error of a lost sandbox, even if the tool hides it
	images []episode.Part
	kept   []AnswerImage // as they came, if keeps
	ended  bool          // the call is over; the time of a process that it left behind does not count
}

func (m *meter) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.active == 0 {
		m.since = m.now()
	}
	m.active++
}

func (m *meter) stop(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.active--
	if m.ended {
		return
	}
	if m.active == 0 {
		m.total += m.now().Sub(m.since)
	}
	if m.gone == nil && errors.Is(err, sandbox.ErrGone) {
		m.gone = err
	}
}

// end ends the measurement.
func (m *meter) end() (spent time.Duration, images []episode.Part, gone error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ended && m.active > 0 {
		m.total += m.now().Sub(m.since)
	}
	m.ended = true
	return m.total, m.images, m.gone
}

// Sandbox opens the episode's sandbox at the first call and returns it. Time spent in its operations is counted for this call.
func (e *Env) Sandbox(ctx context.Context) (sandbox.Sandbox, error) {
	return metered(e.meter, func() (sandbox.Sandbox, error) {
		box, err := e.Session.sandbox(ctx)
		if err != nil {
			return nil, err
		}
		return meteredSandbox{box, e.meter}, nil
	})
}

// InSandbox counts the time until done is called as spent in the sandbox, for a call that waits for a process of an earlier one.
func (e *Env) InSandbox() (done func()) {
	e.meter.start()
	return func() { e.meter.stop(nil) }
}

func metered[T any](m *meter, operation func() (T, error)) (result T, err error) {
	m.start()
	defer func() { m.stop(err) }()
	return operation()
}

// done is metered for an operation without a result.
func done(m *meter, operation func() error) error {
	_, err := metered(m, func() (struct{}, error) { return struct{}{}, operation() })
	return err
}

// meteredSandbox is a sandbox whose operations are measured.
type meteredSandbox struct {
	sandbox.Sandbox
	meter *meter
}

func (s meteredSandbox) Start(ctx context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	p, err := metered(s.meter, func() (sandbox.Process, error) { return s.Sandbox.Start(ctx, cmd) })
	if err != nil {
		return nil, err
	}
	return meteredProcess{p, s.meter}, nil
}

func (s meteredSandbox) KillAll(ctx context.Context) error {
	return done(s.meter, func() error { return s.Sandbox.KillAll(ctx) })
}

func (s meteredSandbox) Files() sandbox.Files { return meteredFiles{s.Sandbox.Files(), s.meter} }

type meteredProcess struct {
	sandbox.Process
	meter *meter
}

func (p meteredProcess) Wait(ctx context.Context) (sandbox.Exit, error) {
	return metered(p.meter, func() (sandbox.Exit, error) { return p.Process.Wait(ctx) })
}

func (p meteredProcess) Kill(ctx context.Context, grace time.Duration) error {
	return done(p.meter, func() error { return p.Process.Kill(ctx, grace) })
}

type meteredFiles struct {
	sandbox.Files
	meter *meter
}

func (f meteredFiles) Stat(ctx context.Context, path string) (sandbox.Info, error) {
	return metered(f.meter, func() (sandbox.Info, error) { return f.Files.Stat(ctx, path) })
}

func (f meteredFiles) Read(ctx context.Context, path string, offset, limit int64) (data []byte, info sandbox.Info, err error) {
	err = done(f.meter, func() (err error) { data, info, err = f.Files.Read(ctx, path, offset, limit); return err })
	return data, info, err
}

func (f meteredFiles) Write(ctx context.Context, files ...sandbox.FileWrite) error {
	return done(f.meter, func() error { return f.Files.Write(ctx, files...) })
}

func (f meteredFiles) Remove(ctx context.Context, paths ...string) error {
	return done(f.meter, func() error { return f.Files.Remove(ctx, paths...) })
}

func (f meteredFiles) List(ctx context.Context, path string) ([]sandbox.Info, error) {
	return metered(f.meter, func() ([]sandbox.Info, error) { return f.Files.List(ctx, path) })
}
