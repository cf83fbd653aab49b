package relay_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"

	"trajgen/sandbox"
	_ "trajgen/sandbox/local"
	_ "trajgen/sandbox/native"
	"trajgen/sandbox/relay"
	"trajgen/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// pair makes two ends of a byte stream.
func pair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	listener, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if a, err = net.Dial("unix", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// serve offers a backend over a stream of this process. What is sent through wrap, if any, is what the client gets.
func serve(t testing.TB, backend sandbox.Backend, opts relay.Options) *relay.Client {
	t.Helper()
	ours, theirs := pair(t)
	return dial(t, ours, theirs, backend, opts)
}

func dial(t testing.TB, ours, theirs io.ReadWriteCloser, backend sandbox.Backend, opts relay.Options) *relay.Client {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- relay.Serve(theirs, backend, slog.New(slog.DiscardHandler)) }()
	client, err := relay.Dial(t.Context(), ours, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		<-served
	})
	return client
}

// child is an agent in a process of its own.
type child struct {
	io.ReadCloser
	io.WriteCloser
	cmd *exec.Cmd
}

func (c child) Close() error {
	return c.WriteCloser.Close()
}

func startAgent(t testing.TB, args ...string) child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startChild(t, &exec.Cmd{Path: self, Args: append([]string{"trajgen-helper", "agent"}, args...)})
}

func startChild(t testing.TB, cmd *exec.Cmd) child {
	t.Helper()
	c := child{cmd: cmd}
	var err error
	if c.WriteCloser, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if c.ReadCloser, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = cmd.Wait()
	})
	return c
}

// TestContract asks everything of backends at the other end of a stream, in this process and in another.
func TestContract(t *testing.T) {
	for _, name := range []string{"local", "native"} {
		t.Run(name, func(t *testing.T) {
			sandboxtest.Run(t, func(t testing.TB) sandbox.Backend {
				return serve(t, sandboxtest.Open(t, name, sandbox.Options{}), relay.Options{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
			}, sandboxtest.Caps{})
		})
	}
	t.Run("agent", func(t *testing.T) {
		sandboxtest.Run(t, func(t testing.TB) sandbox.Backend {
			return dialAgent(t, "host", "--plain-ok", "--state-dir", t.TempDir())
		}, sandboxtest.Caps{})
	})
	t.Run("bare", func(t *testing.T) {
		sandboxtest.Run(t, func(t testing.TB) sandbox.Backend { return &fleet{t: t} }, sandboxtest.Caps{Lacks: map[string]string{
			"remove stays inside": "its files are those of the machine", "links do not lead out": "its files are those of the machine",
		}})
	})
}

// fleet starts an agent for each sandbox, as those do that make a container for each.
type fleet struct {
	t testing.TB

	mu   sync.Mutex
	open map[string]*relay.Client
}

type ship struct {
	sandbox.Sandbox
	end func() error
}

func (s ship) Close() error { return s.end() }

func (f *fleet) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	dir := f.t.TempDir()
	client, err := relay.Dial(ctx, startAgent(f.t, "bare", "--workdir", dir+"/work", "--home", dir+"/home", "--tmp", dir+"/tmp", "--tests", dir+"/tests"), relay.Options{})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[spec.ID] != nil {
		return nil, errors.Join(errors.New("it exists"), client.Close())
	}
	sb, err := client.Open(ctx, spec)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if f.open == nil {
		f.open = map[string]*relay.Client{}
	}
	f.open[spec.ID] = client
	return ship{sb, func() error {
		f.mu.Lock()
		if f.open[spec.ID] == client {
			delete(f.open, spec.ID)
		}
		f.mu.Unlock()
		return errors.Join(sb.Close(), client.Close())
	}}, nil
}

func (f *fleet) Guarantees() sandbox.Guarantees {
	return sandbox.Guarantees{Backend: "fleet", Level: sandbox.LevelNone}
}

func (f *fleet) Close() error { return nil }

func dialAgent(t testing.TB, args ...string) *relay.Client {
	t.Helper()
	client, err := relay.Dial(t.Context(), startAgent(t, args...), relay.Options{Name: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
