package docker

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/moby/moby/client"

	"trajgen/sandbox"
)

// stream is the standard input and output of a container as one connection. The engine sends output and errors in frames: a
// byte for the stream, three zero bytes, and a length of four bytes.
type stream struct {
	attached client.HijackedResponse
	left     int // bytes of the frame of output that is being read
	errors   *sandbox.Capture
}

// Kinds of frame.
const (
	frameOut = 1
	frameErr = 2
)

func newStream(attached client.HijackedResponse) *stream {
	return &stream{attached: attached, errors: sandbox.NewCapture(4<<10, 4<<10)}
}

// Read returns standard output, and keeps a part of standard error.
func (s *stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for s.left == 0 {
		var header [8]byte
		if _, err := io.ReadFull(s.attached.Reader, header[:]); err != nil {
			return 0, err
		}
		length := int64(binary.BigEndian.Uint32(header[4:]))
		switch header[0] {
		case frameOut:
			s.left = int(length)
		case frameErr:
			if _, err := io.CopyN(s.errors, s.attached.Reader, length); err != nil {
				return 0, err
			}
		default:
			return 0, fmt.Errorf("the engine sent a frame of kind %d (want %d or %d)", header[0], frameOut, frameErr)
		}
	}
	n, err := s.attached.Reader.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// Write writes to the standard input.
func (s *stream) Write(p []byte) (int, error) { return s.attached.Conn.Write(p) }

// Close ends the connection, and so the container's standard input.
func (s *stream) Close() error { return s.attached.Conn.Close() }
