package modal_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/modal/modaltest"
)

// holder is the name under which this program holds a sandbox until it is killed.
const holder = "modal-holder"

func hold(stateDir, settings string) error {
	options := sandbox.Options{StateDir: stateDir}
	if err := json.Unmarshal([]byte(settings), &options.Settings); err != nil {
		return err
	}
	b, err := sandbox.Open("modal", options)
	if err != nil {
		return err
	}
	if _, err := b.Open(context.Background(), sandbox.Spec{ID: "held"}); err != nil {
		return err
	}
	fmt.Println("open")
	select {}
}

// TestSweep kills a runner and has the next one end its machines, and those of no other.
func TestSweep(t *testing.T) {
	s, options := start(t)
	living := open(t, options)
	sb := box(t, living, sandbox.Spec{ID: "living"})
	settings, err := json.Marshal(options.Settings)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "/proc/self/exe")
	c.Args = []string{holder, options.StateDir, string(settings)}
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if killed := c.Process.Kill(); err != nil || killed != nil || line != "open\n" {
		t.Fatalf("the other runner said %q, %v, %v", line, err, killed)
	}
	_ = c.Wait()
	if n := s.Running(); n != 2 {
		t.Fatalf("%d machines run, want 2", n)
	}
	// Without the secrets, the record stays for who has them.
	if _, err := sandbox.Sweep(options.StateDir); err == nil {
		t.Error("swept without credentials")
	}
	t.Setenv("MODAL_TOKEN_ID", modaltest.TokenID)
	t.Setenv("MODAL_TOKEN_SECRET", modaltest.TokenSecret)
	for want := range 2 {
		removed, err := sandbox.Sweep(options.StateDir)
		if err != nil || len(removed) != 1-want {
			t.Errorf("sweep: got %v, %v", removed, err)
		}
	}
	if n := s.Running(); n != 1 {
		t.Errorf("%d machines run, want the living runner's", n)
	}
	sh(t, sb, "true")
}

// TestSweepKnowsItsOwn has a record that names no machines.
func TestSweepKnowsItsOwn(t *testing.T) {
	s, options := start(t)
	box(t, open(t, options), sandbox.Spec{ID: "living"})
	err := sandbox.Kinds()["modal"].Sweep(t.Context(), sandbox.Instance{Name: "modal-1", Settings: options.Settings})
	if err == nil || errors.Is(err, sandbox.ErrGone) || s.Running() != 1 {
		t.Errorf("got %v, and %d machines", err, s.Running())
	}
}
