package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

func Example() {
	// main and TestMain begin with sandbox.Init().
	backend, err := sandbox.Open("local", sandbox.Options{}) // "native" for what a model writes
	if err != nil {
		fmt.Println(err)
		return
	}
	defer backend.Close()
	ctx := context.Background()
	sb, err := backend.Open(ctx, sandbox.Spec{ID: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sb.Close()
	err = sb.Files().Write(ctx, sandbox.FileWrite{Path: "greeting", Data: []byte("hello\n")})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	result, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"sh", "-c", "cat greeting; exit 3"}}, sandbox.RunOptions{})
	fmt.Printf("%s%d %v\n", result.Stdout.Bytes(), result.Exit.Code, err)
	// Output:
	// hello
	// 3 <nil>
}

func TestUnknownBackend(t *testing.T) {
	_, err := sandbox.Open("teapot", sandbox.Options{})
	if err == nil || !strings.Contains(err.Error(), `"teapot" (have local, native)`) {
		t.Errorf("got %v", err)
	}
}

func TestDefaultStateDir(t *testing.T) {
	for _, tt := range []struct {
		uid     int
		runtime string
		want    string
	}{{0, "/run/user/0", "/run/trajgen"}, {7, "/run/user/7", "/run/user/7/trajgen"}} {
		if got := sandbox.DefaultStateDir(tt.uid, tt.runtime); got != tt.want {
			t.Errorf("DefaultStateDir(%d, %q) = %q, want %q", tt.uid, tt.runtime, got, tt.want)
		}
	}
	if got := sandbox.DefaultStateDir(7, ""); !strings.HasSuffix(got, "/trajgen-7") {
		t.Errorf("without a runtime directory: got %q", got)
	}
}

// TestCapture compares with keeping everything.
func TestCapture(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		head, tail := random.IntN(20), random.IntN(20)
		c := sandbox.NewCapture(head, tail)
		var all []byte
		for range random.IntN(12) {
			piece := make([]byte, random.IntN(25))
			for i := range piece {
				piece[i] = byte(random.IntN(256))
			}
			all = append(all, piece...)
			if n, err := c.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("write: %d, %v", n, err)
			}
		}
		first := all[:min(head, len(all))]
		rest := all[len(first):]
		last := rest[max(0, len(rest)-tail):]
		if !bytes.Equal(c.Head(), first) || !bytes.Equal(c.Tail(), last) || !bytes.Equal(c.Bytes(), append(bytes.Clone(first), last...)) {
			t.Fatalf("head %d, tail %d of %x: got %x and %x, want %x and %x", head, tail, all, c.Head(), c.Tail(), first, last)
		}
		if c.Total() != int64(len(all)) || c.Omitted() != int64(len(all)-len(first)-len(last)) {
			t.Fatalf("total %d, omitted %d of %d", c.Total(), c.Omitted(), len(all))
		}
	}
}

func TestScripted(t *testing.T) {
	backend := &sandboxtest.Scripted{Command: func(ctx context.Context, sb *sandboxtest.ScriptedSandbox, cmd sandbox.Command) (sandbox.Exit, error) {
		if cmd.Args[0] == "sleep" {
			<-ctx.Done()
		}
		fmt.Fprint(cmd.Stdout, "played ", cmd.Args)
		return sandbox.Exit{Code: 4}, sb.Files().Write(ctx, sandbox.FileWrite{Path: "left", Data: []byte("behind")})
	}}
	defer backend.Close()
	sb, err := backend.Open(t.Context(), sandbox.Spec{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"a", "b"}}, sandbox.RunOptions{})
	if err != nil || r.Exit.Code != 4 || string(r.Stdout.Bytes()) != "played [a b]" {
		t.Errorf("got %+v %q, %v", r.Exit, r.Stdout.Bytes(), err)
	}
	data, _, err := sb.Files().Read(t.Context(), "/workspace/left", 0, 100)
	if err != nil || string(data) != "behind" {
		t.Errorf("got %q, %v", data, err)
	}
	if err := sb.Files().Remove(t.Context(), "left", "nowhere"); err != nil {
		t.Errorf("remove: %v", err)
	}
	if _, err := sb.Files().Stat(t.Context(), "left"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed file: got %v", err)
	}
	if err := sb.Files().Remove(t.Context(), "/"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("remove the root: got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	r, err = sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"sleep"}}, sandbox.RunOptions{})
	if err != nil || !r.TimedOut || r.Exit.Signal != 9 {
		t.Errorf("got %+v, %v, want a killed command", r, err)
	}
	backend.Opened()[0].Lose()
	if _, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"a"}}); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("got %v, want ErrGone", err)
	}
}
