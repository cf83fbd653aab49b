package relay

import "fmt"

// Version is what both ends speak.
const Version = version

// The kinds of a command's pieces, for tests that speak the protocol themselves.
const (
	PieceStdout = pieceStdout
	PieceExit   = pieceExit
)

// Methods are all that a client may ask for.
var Methods = []string{
	methodOpen, methodShut, methodStart, methodForget, methodKill, methodResize, methodSend, methodReceive, methodKillAll, methodStat, methodRead,
	methodWrite, methodList, methodRemove, methodSnapshot, methodDrop, methodTraffic, methodPing, methodBye,
}

// Hello is what an end of some version says first.
func Hello(version int) []byte { return fmt.Appendf(nil, "%s%d {}\n", magic, version) }

// Err returns why the connection ended, or nil while it has not.
func (c *Client) Err() error { return c.link.lost() }
