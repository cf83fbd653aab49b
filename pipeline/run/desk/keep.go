package desk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A sandbox dies with its owner. To keep one, a separate process, the keeper, runs the command and stays when the command ends.

// keeperMark is the environment variable that makes a keeper.
const keeperMark = "TRAJGEN_KEEPER"

// keeperFD is the descriptor on which a keeper reports that it stays.
const keeperFD = 3

// IsKeeper reports whether this process is a keeper, and removes the mark from the environment of its children.
func IsKeeper() bool {
	_, ok := os.LookupEnv(keeperMark)
	os.Unsetenv(keeperMark)
	return ok
}

// StartKeeper runs the same command in a keeper, and returns when the keeper has ended or stays. One that has failed has said why:
// the error is an *exec.ExitError.
func StartKeeper(stdin io.Reader, stdout, stderr io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), keeperMark+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the terminal
	cmd.Stdin = stdin
	out, outEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	log, logEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	stays, staysEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = outEnd, logEnd, []*os.File{staysEnd}
	err = cmd.Start()
	for _, end := range []*os.File{outEnd, logEnd, staysEnd} {
		end.Close()
	}
	if err != nil {
		return fmt.Errorf("start the keeper of the sandbox: %w", err)
	}
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(stdout, out) })
	copying.Go(func() { _, _ = io.Copy(stderr, log) })
	word, err := io.ReadAll(stays)
	if err == nil && len(word) > 0 {
		// The keeper has closed its streams. A process in the sandbox may hold them open; do not wait for it.
		patience := time.Now().Add(2 * time.Second)
		err = errors.Join(out.SetReadDeadline(patience), log.SetReadDeadline(patience))
		copying.Wait()
		return errors.Join(err, cmd.Process.Release())
	}
	copying.Wait()
	return cmd.Wait()
}

// Stay keeps the sandbox for a time, or until ctx ends.
func (d *Desk) Stay(ctx context.Context, w io.Writer, id string, keep time.Duration) error {
	fmt.Fprintf(w, "sandbox %s is kept for %s, working directory %s; trajgen sandbox list shows it; end it with: kill %d\n",
		id, keep, d.Sandbox.Layout().Workdir, os.Getpid())
	if err := letGo(); err != nil {
		return err
	}
	timer := time.NewTimer(keep)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// letGo closes the standard streams, so that their readers see the end, and reports that on keeperFD.
func letGo() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for fd := range 3 {
		if err := unix.Dup2(int(null.Fd()), fd); err != nil {
			return fmt.Errorf("let go of the standard streams: %w", err)
		}
	}
	stays := os.NewFile(keeperFD, "stays")
	_, err = stays.WriteString("stays\n")
	return errors.Join(err, stays.Close())
}
