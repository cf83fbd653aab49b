package carry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"

	"trajgen/sandbox"
)

// ErrFull means that the files have no room where they go.
var ErrFull = errors.New("no space left for the files")

// Copy copies what lies at a path of a sandbox, a directory with all below it, to a path of another. Links are copied as such;
// sockets and pipes are left out. Where nothing lies, Copy copies nothing, and returns no error.
func Copy(ctx context.Context, from sandbox.Sandbox, source string, to sandbox.Sandbox, target string) error {
	if source == "/" || target == "/" {
		return fmt.Errorf("copy %s to %s: want a file or a directory below the root", source, target)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	reader, writer := io.Pipe()
	received := make(chan error, 1)
	go func() {
		err := stream(ctx, to, sandbox.Command{Args: []string{"receive", path.Dir(target), path.Base(target)}, Stdin: reader})
		reader.CloseWithError(errors.New("the copy has ended"))
		if err != nil {
			cancel(err)
		}
		received <- err
	}()
	sent := stream(ctx, from, sandbox.Command{Args: []string{"send", path.Dir(source), path.Base(source)}, Stdout: writer})
	writer.CloseWithError(sent) // nil is the end
	if err := errors.Join(<-received, sent); err != nil {
		return fmt.Errorf("copy %s: %w", source, err)
	}
	return nil
}

// stream runs one side of a copy.
func stream(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Command) error {
	cmd.Helper, cmd.Dir = helper, "/"
	result, err := sandbox.Run(ctx, sb, cmd, sandbox.RunOptions{Flood: math.MaxInt64})
	switch {
	case err != nil:
		return err
	case result.Exit.Code == full:
		return fmt.Errorf("%w: %s", ErrFull, result.Stderr.Bytes())
	case result.Exit.Code != 0 || result.TimedOut:
		return fmt.Errorf("status %d: %s", result.Exit.Code, result.Stderr.Bytes())
	}
	return nil
}
