package relay

import (
	"context"
	"io"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

// command is a command that a server has started.
type command struct {
	box     *served
	process sandbox.Process
	stdin   *pump // nil when there is none
	outputs []*source
	asked   sandbox.Command
}

// mute lets go who waits for room to send output.
func (c *command) mute() {
	for _, s := range c.outputs {
		s.close()
	}
}

// start starts a command, says so, and stays until it ends.
func (s *server) start(ctx context.Context, id uint64, d *wire.Decoder) {
	c, err := s.launch(ctx, id, d)
	if err != nil {
		s.answer(ctx, id, nil, err)
		return
	}
	_, terminal := c.process.(sandbox.Terminal)
	var m message
	m.Bool(false)
	m.Int(int64(c.process.PID()))
	m.Bool(terminal && c.asked.TTY != nil)
	s.connect(c, id) // before the other end may send to it
	s.answer(ctx, id, &m, nil)
	exit, err := c.process.Wait(context.WithoutCancel(ctx)) // the backend's Close ends it
	c.release(s.conn)
	var e wire.Encoder
	encodeExit(&e, exit, err)
	_ = s.conn.post(s.life, nil, frameExit, address{stream: id}, e.Bytes)
}

// connect carries a command's socket.
func (s *server) connect(c *command, id uint64) {
	if !c.asked.Socket {
		return
	}
	conn := c.process.Socket()
	if conn == nil {
		s.conn.send(frameEnd, address{id, channelSocket}, []byte{1})
		return
	}
	c.box.sockets.run(newSocket(s.conn, id, conn))
}

// launch starts a command with its channels at its standard streams.
func (s *server) launch(ctx context.Context, id uint64, d *wire.Decoder) (*command, error) {
	box, err := s.box(d)
	if err != nil {
		return nil, err
	}
	var request start
	request.decode(d)
	if d.Err() != nil {
		return nil, d.Err()
	}
	c, cmd := &command{box: box, asked: request.command}, request.command
	output := func(channel uint8) io.Writer {
		o := s.conn.newSource(address{id, channel})
		c.outputs = append(c.outputs, o)
		return o
	}
	if request.flags&hasStdout != 0 {
		cmd.Stdout = output(channelStdout)
	}
	switch {
	case request.flags&isMerged != 0:
		cmd.Stderr = cmd.Stdout
	case request.flags&hasStderr != 0:
		cmd.Stderr = output(channelStderr)
	}
	if request.flags&hasStdin != 0 {
		reader, writer := io.Pipe()
		at := address{id, channelStdin}
		c.stdin = newPump(s.conn, at, writer, func(bool) { _ = writer.Close() })
		cmd.Stdin = reader
		if err := s.conn.attach(at, c.stdin); err != nil {
			return nil, err
		}
	}
	c.process, err = box.Start(ctx, cmd)
	if err != nil {
		c.release(s.conn)
		return nil, err
	}
	s.mu.Lock()
	s.commands[id] = c
	shut := box.shut
	s.mu.Unlock()
	if shut {
		c.mute()
	}
	return c, nil
}

// release gives up the channels of a command that has ended.
func (c *command) release(conn *conn) {
	c.mute()
	if c.stdin != nil {
		conn.detach(c.stdin.at)
		c.stdin.end(true)
	}
}
