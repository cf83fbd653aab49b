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
	methodOpen     = "/open"     // a spec → the sandbox's number, and what opened has
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

// message is the content of a request or an answer.
type message = wire.Encoder

// headSize is the size of the length before a message.
const headSize = 4

// framed returns a message with its length before it.
func framed(m *message) net.Buffers {
	return net.Buffers{binary.BigEndian.AppendUint32(nil, uint32(len(m.Bytes))), m.Bytes}
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
	if _, err := io.CopyN(body, r, length); err != nil {
		return nil, cut(err)
	}
	return wire.NewDecoder(body.Bytes()), nil
}
