package modal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"trajgen/sandbox"
)

// machine is what the service calls a sandbox.
type machine struct {
	id, task, app string
	tags          map[string]string
	created       float64
	box           sandbox.Sandbox
	ended         chan struct{}

	lifetime *time.Timer
	idle     time.Duration

	once sync.Once
	err  error

	mu      sync.Mutex // guards what follows
	outcome *pb.GenericResult
	execs   map[string]*exec
	busy    int
	unused  *time.Timer
}

func (s *Server) create(ctx context.Context, r *pb.SandboxCreateV2Request) (*pb.SandboxCreateV2Response, error) {
	d := r.GetDefinition()
	i, err := s.image(d.GetImageId())
	if err != nil {
		return nil, err
	}
	m := &machine{
		id: s.id("sb"), app: r.GetAppId(), tags: map[string]string{}, ended: make(chan struct{}), execs: map[string]*exec{},
		idle: time.Duration(d.GetIdleTimeoutSecs()) * time.Second,
	}
	m.task = "ta" + m.id[2:]
	for _, t := range r.GetTags() {
		m.tags[t.GetTagName()] = t.GetTagValue()
	}
	spec := sandbox.Spec{ID: m.id, Network: sandbox.NetworkLoopback, Limits: sandbox.Limits{
		Memory: int64(d.GetResources().GetMemoryMbMax()) << 20, CPUs: float64(d.GetResources().GetMilliCpuMax()) / 1000,
		Disk: 2 << 30, Processes: 1000,
	}}
	if d.GetNetworkAccess().GetNetworkAccessType() == pb.NetworkAccess_OPEN {
		spec.Network = sandbox.NetworkFull
	}
	if m.box, err = s.machines.Open(ctx, spec); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if err := m.boot(ctx, i, d.GetEntrypointArgs()); err != nil {
		return nil, status.Error(codes.FailedPrecondition, errors.Join(err, m.box.Close()).Error())
	}
	m.lifetime = time.AfterFunc(time.Duration(d.GetTimeoutSecs())*time.Second, func() { _ = m.finish(pb.GenericResult_GENERIC_STATUS_TIMEOUT) })
	s.mu.Lock()
	s.next++
	m.created = float64(s.next)
	s.sandboxes[m.id] = m
	s.mu.Unlock()
	m.use(0)
	return pb.SandboxCreateV2Response_builder{
		SandboxId: m.id, TaskId: m.task, CommandRouterAccess: pb.CommandRouterAccess_builder{Jwt: s.token(m.task), Url: s.routerURL()}.Build(),
	}.Build(), nil
}

// boot brings in the image's files and starts what keeps the machine up.
func (m *machine) boot(ctx context.Context, i *image, entrypoint []string) error {
	if i.sealed != nil {
		if _, err := m.script(ctx, "tar -C / -xpf -", i.sealed); err != nil {
			return err
		}
	}
	p, err := m.box.Start(ctx, sandbox.Command{Args: entrypoint, Dir: "/"})
	if err != nil {
		return fmt.Errorf("entrypoint: %w", err)
	}
	go func() {
		if _, err := p.Wait(context.WithoutCancel(ctx)); err == nil {
			_ = m.finish(pb.GenericResult_GENERIC_STATUS_SUCCESS)
		}
	}()
	return nil
}

// seal packs what a machine can have changed. Commands may go on meanwhile, as in the service.
func (m *machine) seal(ctx context.Context) ([]byte, error) {
	return m.script(ctx, "cd / && tar -cf - --numeric-owner workspace tests tmp root home opt srv mnt var/tmp", nil)
}

func (m *machine) script(ctx context.Context, script string, stdin []byte) ([]byte, error) {
	var out, said bytes.Buffer
	p, err := m.box.Start(ctx, sandbox.Command{Args: []string{"/bin/sh", "-c", script}, Stdin: bytes.NewReader(stdin), Stdout: &out, Stderr: &said})
	if err != nil {
		return nil, err
	}
	x, err := p.Wait(ctx)
	if err == nil && x.Code != 0 {
		err = fmt.Errorf("%s: exit code %d: %s", script, x.Code, strings.TrimSpace(said.String()))
	}
	return out.Bytes(), err
}

func (m *machine) result() *pb.GenericResult {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.outcome
}

// use counts the commands that run: without any, the machine is idle.
func (m *machine) use(change int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy += change
	if m.unused != nil {
		m.unused.Stop()
	}
	if m.busy == 0 {
		m.unused = time.AfterFunc(m.idle, func() { _ = m.finish(pb.GenericResult_GENERIC_STATUS_IDLE_TIMEOUT) })
	}
}

// finish ends the machine.
func (m *machine) finish(how pb.GenericResult_GenericStatus) error {
	m.once.Do(func() {
		m.err = m.box.Close()
		m.mu.Lock()
		m.outcome = pb.GenericResult_builder{Status: how}.Build()
		execs := m.execs
		unused := m.unused
		m.mu.Unlock()
		if m.lifetime != nil {
			m.lifetime.Stop()
		}
		if unused != nil {
			unused.Stop()
		}
		for _, e := range execs {
			e.lost()
		}
		close(m.ended)
	})
	return m.err
}
