package relay

import (
	"context"
	"encoding/binary"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// started is a command that a server has started.
type started struct {
	process sandbox.Process
	halves  atomic.Int32 // directions of its socket that have ended
}

// start starts a command, answers with its id, and stays until it ends. Cancelling the request kills the command.
func (s *server) start(w http.ResponseWriter, r *http.Request, d *wire.Decoder) error {
	box, err := s.box(d)
	if err != nil {
		return err
	}
	var request guest.Start
	d.Take(&request)
	if d.Err() != nil {
		return d.Err()
	}
	out := &output{answer: w}
	out.Lock() // until the answer has begun
	cmd := commandOf(&request)
	out.connect(&cmd, request.FDs)
	if request.FDs&guest.FDStdin != 0 {
		cmd.Stdin = r.Body
	}
	process, err := box.Start(r.Context(), cmd)
	if err != nil {
		out.over = true
		out.Unlock()
		return err
	}
	id := box.commands.add(&started{process: process})
	_, terminal := process.(sandbox.Terminal)
	var m message
	m.Bool(false)
	m.Int(id)
	m.Int(int64(process.PID()))
	m.Bool(terminal && cmd.TTY != nil)
	writeMessage(w, &m)
	flush(w)
	out.Unlock()
	stop := context.AfterFunc(r.Context(), func() {
		box.commands.remove(id)
		_ = process.Kill(s.life, 0)
	})
	exit, err := process.Wait(context.WithoutCancel(r.Context())) // the backend's Close ends it
	stop()
	out.exit(exit, err)
	return nil
}

// output receives what a command prints, from several goroutines.
type output struct {
	sync.Mutex
	answer http.ResponseWriter
	over   bool
}

func (o *output) connect(cmd *sandbox.Command, fds int64) {
	if fds&guest.FDStdout != 0 {
		cmd.Stdout = printer{o, pieceStdout}
	}
	switch {
	case fds&guest.FDMerged != 0:
		cmd.Stderr = cmd.Stdout
	case fds&guest.FDStderr != 0:
		cmd.Stderr = printer{o, pieceStderr}
	}
}

// printer is one of a command's output streams.
type printer struct {
	output *output
	kind   byte
}

func (p printer) Write(data []byte) (int, error) {
	p.output.Lock()
	defer p.output.Unlock()
	chunk := pieces.Get().(*[]byte)
	defer pieces.Put(chunk)
	for rest := data; len(rest) > 0; {
		if p.output.over {
			return 0, syscall.EPIPE
		}
		n := copy((*chunk)[pieceHead:], rest)
		rest = rest[n:]
		(*chunk)[0] = p.kind
		binary.BigEndian.PutUint32((*chunk)[1:], uint32(n))
		if _, err := p.output.answer.Write((*chunk)[:pieceHead+n]); err != nil {
			return 0, err
		}
		flush(p.output.answer)
	}
	return len(data), nil
}

// exit sends how the command ended. Output after it is refused.
func (o *output) exit(exit sandbox.Exit, err error) {
	o.Lock()
	defer o.Unlock()
	o.over = true
	var m message
	encodeJSON(&m.Encoder, &exit)
	encodeError(&m.Encoder, err)
	_, _ = o.answer.Write([]byte{pieceExit, 0, 0, 0, 0})
	writeMessage(o.answer, &m)
}
