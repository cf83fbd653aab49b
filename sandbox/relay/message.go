package relay

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"trajgen/sandbox/internal/wire"
)

// The methods of a request. Those that make something last as long as that: when the request is given up, it is ended.
// A command, a file and an info are the guest's Start, Write and Info.
const (
	methodOpen     = "/open"     // a spec → a sandbox's number, its layout, and what else it is
	methodShut     = "/shut"     // sandbox → its connections
	methodStart    = "/start"    // sandbox, a command, its input → its number, whether it is a terminal, its output
	methodForget   = "/forget"   // command
	methodKill     = "/kill"     // command, grace
	methodResize   = "/resize"   // command, size
	methodSend     = "/send"     // command, bytes for its socket
	methodReceive  = "/receive"  // command → bytes of its socket
	methodKillAll  = "/killall"  // sandbox
	methodStat     = "/stat"     // sandbox, path → info
	methodRead     = "/read"     // sandbox, path, offset, limit → info, data
	methodWrite    = "/write"    // sandbox, files
	methodList     = "/list"     // sandbox, path → infos
	methodRemove   = "/remove"   // sandbox, paths
	methodSnapshot = "/snapshot" // sandbox → its number
	methodDrop     = "/drop"     // snapshot
	methodTraffic  = "/traffic"  // sandbox → connections
	methodPing     = "/ping"     // → nothing
	methodBye      = "/bye"      // ends everything
)

// Bounds of contents.
const (
	maxFile  = 1 << 30  // the largest file that is written
	maxRead  = 16 << 20 // what is read of a file at once: both sides hold it in memory
	maxBatch = 16 << 20 // files are written together up to this size
	maxList  = 16 << 20 // what is said of a directory's entries
)

// longestCall is how long the message of a request may be.
func longestCall(method string) int {
	if method == methodWrite {
		return maxFile + 1<<20
	}
	return 32 << 20
}

// longestAnswer is how long the answer to a request may be.
func longestAnswer(method string) int {
	switch method {
	case methodRead:
		return maxRead + 1<<20
	case methodList:
		return maxList
	}
	return 8 << 20
}

// message is what a request says or is answered with. Long contents are not copied into it.
type message struct {
	wire.Encoder
	parts net.Buffers
}

// bulk appends bytes that a Decoder takes as a blob.
func (m *message) bulk(p []byte) {
	if len(p) <= 4<<10 {
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

// headSize is that of the length before a message.
const headSize = 4

// framed is the message with its length before it.
func (m *message) framed() net.Buffers {
	length := binary.BigEndian.AppendUint32(nil, uint32(m.length()))
	return append(append(net.Buffers{length}, m.parts...), m.Bytes)
}

// hear takes a framed message. How long it is going to be is believed bit by bit.
func hear(r io.Reader, longest int) (*wire.Decoder, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, cut(err)
	}
	length := int64(binary.BigEndian.Uint32(head[:]))
	if length > int64(longest) {
		return nil, fmt.Errorf("%w: a message of %d bytes", wire.ErrMalformed, length)
	}
	body := bytes.NewBuffer(make([]byte, 0, min(length+bytes.MinRead, 1<<20)))
	if n, err := io.Copy(body, io.LimitReader(r, length)); err != nil || n < length {
		return nil, cut(orEnd(err))
	}
	return wire.NewDecoder(body.Bytes()), nil
}

func orEnd(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}
