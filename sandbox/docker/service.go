package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"trajgen/sandbox"
)

// settleTime is how long a service without a health check must last to count as begun: one that cannot start ends within it.
const settleTime = time.Second

// restartPause is between the end of a service and its next start.
const restartPause = time.Second

// service is one that runs beside a box: a command in a box of its own, which has the other's network.
type service struct {
	sandbox.Service
	box   *box
	image *image
	began time.Time
	said  *sandbox.Capture
	stop  context.CancelFunc // ends the waiting for a restart
	ended chan struct{}      // closed when exit and err are set
	exit  sandbox.Exit
	err   error
	ready bool
}

// serve starts the services of a sandbox, in their order, and waits until all are ready.
func (x *box) serve(ctx context.Context, spec sandbox.Spec) error {
	if len(spec.Services) == 0 {
		return nil
	}
	if err := x.keepNames(ctx); err != nil {
		return err
	}
	for _, wanted := range spec.Services {
		for _, s := range x.services {
			if slices.Contains(wanted.After, s.Name) {
				if err := s.wait(ctx); err != nil {
					return err
				}
			}
		}
		if err := x.begin(ctx, spec, wanted); err != nil {
			return fmt.Errorf("start the service %s: %w", wanted.Name, err)
		}
	}
	for _, s := range x.services {
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin starts a service.
func (x *box) begin(ctx context.Context, spec sandbox.Spec, wanted sandbox.Service) error {
	b := x.backend
	own := sandbox.Spec{ID: spec.ID, Image: wanted.Image, Env: wanted.Env, Network: spec.Network, Limits: spec.Limits}
	found, err := b.image(ctx, &own)
	if err != nil {
		return err
	}
	as := *found
	if wanted.User != "" {
		as.user = wanted.User
	}
	s := &service{Service: wanted, image: found, said: sandbox.NewCapture(0, longestError/4), ended: make(chan struct{}), stop: func() {}}
	if s.box, err = b.run(ctx, own, &as, x); err != nil {
		if errors.Is(err, errNoImage) {
			b.images.forget(found) // the next sandbox finds it again
		}
		return err
	}
	x.services = append(x.services, s)
	process, err := s.start(ctx)
	if err != nil {
		close(s.ended)
		return err
	}
	s.began = time.Now()
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	go s.follow(ctx, process)
	return nil
}

// start puts a service's files in place, and starts its command.
func (s *service) start(ctx context.Context) (sandbox.Process, error) {
	command := slices.Concat(s.Entrypoint, s.Args)
	if s.Entrypoint == nil {
		command = slices.Concat(s.image.entrypoint, s.Args)
		if s.Args == nil {
			command = append(command, s.image.command...)
		}
	}
	if len(command) == 0 {
		return nil, fmt.Errorf("it has no command, and neither has its image %s", s.image.reference)
	}
	if len(s.Files) > 0 {
		to := client.CopyToContainerOptions{DestinationPath: "/", Content: archiveOf(s.Files)}
		if _, err := s.box.backend.engine.CopyToContainer(ctx, s.box.container, to); err != nil {
			return nil, fmt.Errorf("give it its files: %w", err)
		}
		s.Files = nil // a restart has them
	}
	return s.box.Start(ctx, s.in(command, sandbox.Command{Stdout: s.said, Stderr: s.said}))
}

// follow waits for the end of a service, and starts it again if it is to be.
func (s *service) follow(ctx context.Context, process sandbox.Process) {
	defer close(s.ended)
	for s.err == nil {
		s.exit, s.err = process.Wait(context.Background()) // close ends it
		if again := s.Restart == sandbox.RestartAlways || s.Restart != "" && s.exit.Code != 0; s.err != nil || !again {
			return
		}
		select {
		case <-time.After(restartPause):
			process, s.err = s.start(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// in is a command in the directory of a service.
func (s *service) in(args []string, c sandbox.Command) sandbox.Command {
	c.Args = args
	for _, dir := range []string{s.Workdir, s.image.workdir, "/"} {
		if c.Dir == "" {
			c.Dir = dir
		}
	}
	return c
}

// wait waits until a service is ready.
func (s *service) wait(ctx context.Context) error {
	if s.ready {
		return nil
	}
	var err error
	switch {
	case s.Once:
		err = s.over(ctx)
	case s.Health == nil:
		if s.pause(ctx, settleTime-time.Since(s.began)) && (s.err != nil || s.exit.Code != 0) {
			err = s.died()
		}
	default:
		err = s.healthy(ctx)
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("the service %s is not ready: %w", s.Name, context.Cause(ctx))
	}
	if err != nil {
		if said := strings.TrimSpace(strings.ToValidUTF8(string(s.said.Bytes()), "\uFFFD")); said != "" {
			return fmt.Errorf("%w; it printed: %s", err, said)
		}
		return fmt.Errorf("%w; it printed nothing", err)
	}
	s.ready = true
	return nil
}

// over waits for the end of a service that has one.
func (s *service) over(ctx context.Context) error {
	select {
	case <-s.ended:
		if s.err != nil || s.exit.Code != 0 {
			return s.died()
		}
	case <-ctx.Done():
	}
	return nil
}

// healthy repeats the health check.
func (s *service) healthy(ctx context.Context) error {
	h, failed, counts := s.Health, 0, s.began.Add(s.Health.Start)
	for {
		said, err := s.check(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if now := time.Now(); !now.Before(counts) {
			failed, counts = failed+1, now.Add(h.Interval)
		}
		if failed >= h.Retries {
			return fmt.Errorf("the service %s is not healthy: its check failed %d times, at last with %w: %s", s.Name, failed, err, said)
		}
		if s.pause(ctx, min(h.Interval, time.Second)) {
			return s.died()
		}
	}
}

// check is one health check, and what it printed.
func (s *service) check(ctx context.Context) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Health.Timeout)
	defer cancel()
	r, err := sandbox.Run(ctx, s.box, s.in(s.Health.Args, sandbox.Command{}), sandbox.RunOptions{Merge: true, Head: 1, Tail: longestError / 8})
	switch {
	case err != nil:
		return "", err
	case r.TimedOut:
		err = errors.New("a timeout")
	case r.Exit.Code != 0:
		err = fmt.Errorf("status %d", r.Exit.Code)
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(r.Stdout.Bytes()), "\uFFFD")), err
}

// pause waits, and reports whether the service has ended.
func (s *service) pause(ctx context.Context, d time.Duration) (ended bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.ended:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// died says how a service ended that should not have.
func (s *service) died() error {
	if s.err != nil {
		return fmt.Errorf("the service %s was lost: %w", s.Name, s.err)
	}
	return fmt.Errorf("the service %s ended with status %d", s.Name, s.exit.Code)
}

// close ends a service.
func (s *service) close() error {
	s.stop()
	err := s.box.discard()
	<-s.ended
	return err
}
