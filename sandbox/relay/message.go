package relay

import (
	"context"
	"fmt"
	"io/fs"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

// The methods of a call. A sandbox, a snapshot and a command are named by the stream of the call that made them.
const (
	methodOpen     = iota + 1 // a spec → a layout, and what else the sandbox is
	methodShut                // sandbox → its connections
	methodStart               // sandbox, a command → its number, and whether it is a terminal
	methodKill                // command, grace
	methodResize              // command, size
	methodKillAll             // sandbox
	methodStat                // sandbox, path → info
	methodRead                // sandbox, path, offset, limit → info, data
	methodWrite               // sandbox, files
	methodList                // sandbox, path → infos
	methodRemove              // sandbox, paths
	methodSnapshot            // sandbox
	methodDrop                // snapshot
	methodTraffic             // sandbox → connections
	methodBye                 // ends everything
	methodsEnd
)

// Bounds of contents.
const (
	maxFile  = 1 << 30  // the largest file that is written
	maxRead  = 16 << 20 // what is read of a file at once: both sides hold it in memory
	maxBatch = 16 << 20 // files are written together up to this size
	maxList  = 16 << 20 // what is said of a directory's entries
)

// longestCall is how long the message of a call may be.
func longestCall(method int64) int {
	if method == methodWrite {
		return maxFile + 1<<20
	}
	return 32 << 20
}

// longestAnswer is how long the answer to a call may be.
func longestAnswer(method int64) int {
	switch method {
	case methodRead:
		return maxRead + 1<<20
	case methodList:
		return maxList
	}
	return 8 << 20
}

// message is what a call says or is answered with. Long contents are not copied into it.
type message struct {
	wire.Encoder
	parts [][]byte
}

// bulk appends bytes that a Decoder takes as a blob.
func (m *message) bulk(p []byte) {
	if len(p) <= inline {
		m.Blob(p)
		return
	}
	m.Int(int64(len(p)))
	m.parts = append(m.parts, m.Bytes, p)
	m.Bytes = nil
}

func (m *message) length() int {
	n := len(m.Bytes)
	for _, part := range m.parts {
		n += len(part)
	}
	return n
}

func (m *message) file(f *sandbox.FileWrite) {
	m.String(f.Path)
	m.Int(int64(f.Mode))
	m.Bool(f.Replace)
	m.bulk(f.Data)
}

func decodeFiles(d *wire.Decoder) []sandbox.FileWrite {
	var files []sandbox.FileWrite
	for range d.Len() {
		if d.Err() != nil {
			break
		}
		files = append(files, sandbox.FileWrite{Path: d.String(), Mode: fs.FileMode(d.Int()), Replace: d.Bool(), Data: d.Blob()})
	}
	return files
}

// say sends a message in a frame, after a number; one that is too long for it follows on the body channel. It reports
// whether it has begun: the other end has to be told when it does not go on. first bounds the beginning, rest the rest.
func (c *conn) say(first, rest context.Context, kind uint8, stream uint64, head int64, m *message) (begun bool, err error) {
	at := address{stream: stream, channel: channelBody}
	e := wire.Encoder{Bytes: make([]byte, 0, 16+len(m.Bytes))}
	e.Int(head)
	n := m.length()
	if n <= inline {
		e.Int(0)
		for _, part := range append(m.parts, m.Bytes) {
			e.Bytes = append(e.Bytes, part...)
		}
		err := c.post(first, nil, kind, at, e.Bytes)
		return err == nil, err
	}
	e.Int(int64(n))
	body := c.newSource(at)
	defer body.close()
	if err := c.post(first, nil, kind, at, e.Bytes); err != nil {
		return false, err
	}
	for _, part := range append(m.parts, m.Bytes) {
		if err := body.send(rest, part); err != nil {
			return true, err
		}
	}
	return true, nil
}

// hear takes what say sent. It calls done with the head and the message, now or when the whole has come.
func (c *conn) hear(f frame, longest func(head int64) int, done func(head int64, m *wire.Decoder), broken func()) error {
	d := wire.NewDecoder(f.payload)
	head, length := d.Int(), d.Int()
	if d.Err() != nil || length < 0 || length > int64(longest(head)) {
		return fmt.Errorf("%w: a message of %d bytes", wire.ErrMalformed, length)
	}
	if length == 0 {
		done(head, d)
		return nil
	}
	return c.attach(f.at, &collector{conn: c, at: f.at, want: int(length), broken: broken, done: func(m []byte) { done(head, wire.NewDecoder(m)) }})
}
