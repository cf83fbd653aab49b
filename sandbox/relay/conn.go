package relay

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// Sizes. A peer that goes beyond them has broken the protocol, and the connection ends.
const (
	headerSize = 14        // length uint32, kind uint8, channel uint8, stream uint64
	maxChunk   = 16 << 10  // bytes in a data frame: what others have to wait for
	maxFrame   = 64 << 10  // bytes in any other frame
	window     = 512 << 10 // bytes that may be on their way, or wait for a slow reader, on each channel
	slots      = 32        // frames that may wait to be written, but for those that the read loop sends
	inline     = 32 << 10  // longest message that travels in a frame of its own; a longer one comes on a channel
)

// Kinds of frame.
const (
	frameCall   = iota + 1 // the stream's first; its payload is a method and a message
	frameReply             // answers a call
	frameCancel            // the caller no longer waits
	frameExit              // the command of the stream has ended, after all of its output
	frameForget            // the caller will not ask for the stream's command again
	frameData              // bytes of a channel
	frameEnd               // nothing follows on the channel; a payload of one byte means that nothing is read any more either
	frameCredit            // the payload says how many more bytes of the channel may be sent
	framePing
	framePong
)

// Channels of a stream.
const (
	channelBody = iota // a message that is too long for a frame
	channelStdin
	channelStdout
	channelStderr
	channelSocket
)

// address is one direction of a channel.
type address struct {
	stream  uint64
	channel uint8
}

// frame is a frame that is no data.
type frame struct {
	kind    uint8
	at      address
	payload []byte
}

// sink takes what comes in on a channel. The read loop calls it, so it must not block.
type sink interface {
	// data takes bytes, which are valid during the call alone. An error ends the connection.
	data(p []byte) error
	// end is told that nothing follows; when reset, that the other direction is not read either.
	end(reset bool)
}

// conn carries channels over a byte stream. Everything that is written goes through one goroutine, which writes what has
// gathered at once; everything that is read comes through another.
type conn struct {
	rw     io.ReadWriteCloser
	in     *bufio.Reader
	handle func(frame) error // called by the read loop with what is not about channels; must not block
	ended  func()            // called once, when the connection has ended

	slots chan struct{}
	wake  chan struct{}
	out   struct {
		sync.Mutex
		buffer []byte
		slots  int // taken by what is in the buffer
	}

	gone     chan struct{} // closed when the connection has ended
	progress atomic.Int64  // changes when the other end has shown that it lives

	mu      sync.Mutex // guards what follows
	sinks   map[address]sink
	sources map[address]*source
	reason  error // why it ended
}

func newConn(rw io.ReadWriteCloser) *conn {
	c := &conn{
		rw: rw, slots: make(chan struct{}, slots), wake: make(chan struct{}, 1), gone: make(chan struct{}),
		sinks: map[address]sink{}, sources: map[address]*source{},
	}
	// Small, because thousands of connections may be idle; what is longer is read past it.
	c.in = bufio.NewReaderSize(rw, 4<<10)
	return c
}

// lose ends the connection. The first reason stands.
func (c *conn) lose(reason error) {
	c.mu.Lock()
	if c.reason != nil {
		c.mu.Unlock()
		return
	}
	c.reason = reason
	close(c.gone)
	sinks := c.sinks
	c.sinks, c.sources = map[address]sink{}, map[address]*source{}
	c.mu.Unlock()
	_ = c.rw.Close()
	for _, s := range sinks {
		s.end(true)
	}
	if c.ended != nil {
		c.ended()
	}
}

// lost is why the connection ended, nil while it has not.
func (c *conn) lost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// attach registers who takes what comes in at an address. It is refused when the connection has ended.
func (c *conn) attach(at address, s sink) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == nil {
		c.sinks[at] = s
	}
	return c.reason
}

// detach reports whether a reader was attached.
func (c *conn) detach(at address) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.sinks[at]
	delete(c.sinks, at)
	return ok
}

// send queues a frame without waiting: for the read loop, whose answers are few and small.
func (c *conn) send(kind uint8, at address, payload []byte) {
	c.queue(kind, at, payload, 0)
}

// post waits for its turn before it queues a frame, so that what waits to be written stays short.
func (c *conn) post(ctx context.Context, stop <-chan struct{}, kind uint8, at address, payload []byte) error {
	select {
	case <-c.gone:
		return c.lost()
	case <-stop:
		return errStopped
	default:
	}
	select {
	case c.slots <- struct{}{}:
	case <-c.gone:
		return c.lost()
	case <-stop:
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.queue(kind, at, payload, 1)
	return nil
}

// errStopped means that the other end wants no more of what is sent.
var errStopped = errors.New("nobody listens any more")

func (c *conn) queue(kind uint8, at address, payload []byte, slots int) {
	select {
	case <-c.gone:
		return // it would never be written
	default:
	}
	c.out.Lock()
	b := binary.BigEndian.AppendUint32(c.out.buffer, uint32(len(payload)))
	b = append(b, kind, at.channel)
	b = binary.BigEndian.AppendUint64(b, at.stream)
	c.out.buffer = append(b, payload...)
	c.out.slots += slots
	c.out.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write writes what was queued until the connection ends.
func (c *conn) write() {
	var spare []byte
	for {
		select {
		case <-c.wake:
		case <-c.gone:
			return
		}
		c.out.Lock()
		batch, taken := c.out.buffer, c.out.slots
		c.out.buffer, c.out.slots = spare, 0
		c.out.Unlock()
		if _, err := c.rw.Write(batch); err != nil {
			c.lose(fmt.Errorf("write: %w", err))
			return
		}
		for range taken {
			<-c.slots
		}
		if taken > 0 && len(batch) >= maxChunk {
			c.progress.Add(1) // a peer that is stuck takes no more than fits into a pipe
		}
		if spare = batch[:0]; cap(spare) > 4*maxChunk {
			spare = nil
		}
	}
}
