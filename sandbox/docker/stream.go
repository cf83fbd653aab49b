package docker

import (
	"io"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"trajgen/sandbox"
)

// stream is the standard input and output of a container as one connection. The engine sends output and errors together.
type stream struct {
	attached client.HijackedResponse
	output   *io.PipeReader
	errors   *sandbox.Capture // keeps a part of standard error
}

func newStream(attached client.HijackedResponse) *stream {
	output, to := io.Pipe()
	s := &stream{attached: attached, output: output, errors: sandbox.NewCapture(4<<10, 4<<10)}
	go func() {
		_, err := stdcopy.StdCopy(to, s.errors, attached.Reader)
		_ = to.CloseWithError(err)
	}()
	return s
}

// Read returns standard output.
func (s *stream) Read(p []byte) (int, error) { return s.output.Read(p) }

// Write writes to the standard input.
func (s *stream) Write(p []byte) (int, error) { return s.attached.Conn.Write(p) }

// Close ends the connection, and so the container's standard input.
func (s *stream) Close() error {
	_ = s.output.Close()
	return s.attached.Conn.Close()
}
