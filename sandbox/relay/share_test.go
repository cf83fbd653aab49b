package relay_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"trajgen/sandbox"
)

// gate is a writer that holds its caller up until it is opened.
type gate struct {
	opened chan struct{}
	total  int64
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.opened
	g.total += int64(len(p))
	return len(p), nil
}

// TestSlowReader lets floods wait for their readers: others are served meanwhile, and nothing of the floods is lost.
func TestSlowReader(t *testing.T) {
	sb := agent(t, "bare", "--workdir", t.TempDir())
	const size = 3 << 20
	var floods []sandbox.Process
	var gates []*gate
	for range 5 {
		g := &gate{opened: make(chan struct{})}
		p, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"head", "-c", fmt.Sprint(size), "/dev/zero"}, Stdout: g})
		if err != nil {
			t.Fatal(err)
		}
		gates, floods = append(gates, g), append(floods, p)
	}
	// One whose output is never read.
	never := &gate{opened: make(chan struct{})}
	defer close(never.opened)
	if _, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"yes"}, Stdout: never}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	data := bytes.Repeat([]byte("0123456789"), 300_000)
	for range 20 {
		r, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"cat"}, Stdin: bytes.NewReader(data)}, sandbox.RunOptions{Head: len(data)})
		if err != nil || !bytes.Equal(r.Stdout.Bytes(), data) {
			t.Fatalf("beside floods: got %d bytes, %+v, %v", r.Stdout.Total(), r.Exit, err)
		}
		if err := sb.Files().Write(ctx, sandbox.FileWrite{Path: "f", Data: data}); err != nil {
			t.Fatal(err)
		}
		if got, _, err := sb.Files().Read(ctx, "f", 0, 1<<30); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("read beside floods: got %d bytes, %v", len(got), err)
		}
	}
	for i, p := range floods {
		waiting, cancel := context.WithTimeout(ctx, time.Millisecond)
		if exit, err := p.Wait(waiting); err == nil {
			t.Errorf("a flood that was not read: got %+v", exit)
		}
		cancel()
		close(gates[i].opened)
		exit, err := p.Wait(ctx)
		if err != nil || exit.Code != 0 || gates[i].total != size {
			t.Errorf("flood %d: got %d bytes, %+v, %v", i, gates[i].total, exit, err)
		}
	}
}

// TestSlowCommands has commands not read what is typed: others are served meanwhile.
func TestSlowCommands(t *testing.T) {
	sb := agent(t, "bare", "--workdir", t.TempDir())
	data := make([]byte, 2<<20)
	for range 30 {
		if _, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"sleep", "75.5"}, Stdin: bytes.NewReader(data)}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(200 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := sb.Files().Write(ctx, sandbox.FileWrite{Path: "f", Data: data}); err != nil {
		t.Errorf("beside them: %v", err)
	}
}

// TestManyAtOnce runs a hundred commands that all talk.
func TestManyAtOnce(t *testing.T) {
	sb := agent(t, "bare", "--workdir", t.TempDir())
	var wait sync.WaitGroup
	for i := range 100 {
		wait.Go(func() {
			in := strings.Repeat(fmt.Sprintln(i), 5000)
			r, err := sandbox.Run(t.Context(), sb, sandbox.Command{
				Args: []string{"sh", "-c", fmt.Sprintf("cat; echo %d >&2; exit %d", i, i)}, Stdin: strings.NewReader(in),
			}, sandbox.RunOptions{})
			if err != nil || r.Exit.Code != i || string(r.Stdout.Bytes()) != in || string(r.Stderr.Bytes()) != fmt.Sprintln(i) {
				t.Errorf("command %d: got %+v, %d bytes, %q, %v", i, r.Exit, r.Stdout.Total(), r.Stderr.Bytes(), err)
			}
		})
	}
	wait.Wait()
}

// TestSocket talks both ways for long, and hangs up both ways.
func TestSocket(t *testing.T) {
	sb := agent(t, "bare", "--workdir", t.TempDir())
	start := func(script string, out io.Writer) sandbox.Process {
		p, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"sh", "-c", script}, Socket: true, Stdout: out})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	data := bytes.Repeat([]byte("0123456789"), 300_000)
	p := start("cat <&3 >&3", nil)
	go func() {
		_, _ = p.Socket().Write(data)
		_ = p.Socket().(interface{ CloseWrite() error }).CloseWrite()
	}()
	if got, err := io.ReadAll(p.Socket()); err != nil || !bytes.Equal(got, data) {
		t.Errorf("echo: got %d bytes, %v", len(got), err)
	}
	p.Socket().Close()

	kept := sandbox.NewCapture(100, 0)
	p = start("cat <&3; echo end", kept)
	p.Socket().Close()
	if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 || string(kept.Bytes()) != "end\n" {
		t.Errorf("after a hang-up: got %+v, %q, %v", exit, kept.Bytes(), err)
	}
	p = start("exec 3<&-; sleep 75.3", nil)
	if n, err := p.Socket().Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the command's: got %d bytes, %v, want the end", n, err)
	}
	p.Socket().Close()
	p = start("sleep 75.3", nil)
	if err := p.Socket().SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := p.Socket().Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("got %d bytes, %v, want a deadline", n, err)
	}
	if err := sb.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Socket().SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := p.Socket().Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the sandbox's: got %d bytes, %v, want the end", n, err)
	}
}
