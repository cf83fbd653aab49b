package relay

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"trajgen/sandbox/internal/wire"
)

// The methods of a request. A request that makes an object lasts as long as the object: cancelling the request ends it. A
// command, a file and an info are encoded as the guest's Start, Write and Info.
const (
	methodOpen     = "/open"     // a spec → the sandbox's number, its layout, and its optional interfaces
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

// Bounds of contents, in bytes.
const (
	maxFile  = 1 << 30  // a file that is written
	maxRead  = 16 << 20 // one read of a file: both sides hold it in memory
	maxBatch = 16 << 20 // files that are written together
	maxList  = 16 << 20 // the encoded entries of a directory
)

// longestCall bounds the message of a request.
func longestCall(method string) int {
	if method == methodWrite {
		return maxFile + 1<<20
	}
	return 32 << 20
}

// longestAnswer bounds the message of an answer.
func longestAnswer(method string) int {
	switch method {
	case methodRead:
		return maxRead + 1<<20
	case methodList:
		return maxList
	}
	return 8 << 20
}

// message is the content of a request or an answer. Long contents are not copied into it.
type message struct {
	wire.Encoder
	parts net.Buffers
}

// bulk appends bytes that a Decoder reads as a blob.
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

// headSize is the size of the length before a message.
const headSize = 4

// framed returns the message with its length before it.
func (m *message) framed() net.Buffers {
	length := binary.BigEndian.AppendUint32(nil, uint32(m.length()))
	return append(append(net.Buffers{length}, m.parts...), m.Bytes)
}

// readMessage reads a framed message. It allocates as bytes arrive and does not trust the announced length.
func readMessage(r io.Reader, longest int) (*wire.Decoder, error) {
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
