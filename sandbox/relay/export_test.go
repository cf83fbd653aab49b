package relay

import (
	"encoding/binary"
	"encoding/json"

	"trajgen/sandbox/internal/wire"
)

// Version is what both ends speak.
const Version = version

// Kinds of frame, for tests that speak the protocol themselves.
const (
	FrameCall   = frameCall
	FrameReply  = frameReply
	FrameExit   = frameExit
	FrameData   = frameData
	FrameCredit = frameCredit

	ChannelBody   = channelBody
	ChannelStdout = channelStdout
)

// Hello is what an end of some version says first.
func Hello(version int64) []byte {
	body, _ := json.Marshal(hello{})
	e := wire.Encoder{Bytes: []byte(magic)}
	e.Int(version)
	e.Int(int64(len(body)))
	return append(e.Bytes, body...)
}

// Frame is a frame.
func Frame(kind, channel uint8, stream uint64, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
	b = append(b, kind, channel)
	b = binary.BigEndian.AppendUint64(b, stream)
	return append(b, payload...)
}
