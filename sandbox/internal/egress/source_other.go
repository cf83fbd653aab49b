//go:build !linux

package egress

// asSource returns nil: sandboxes with such sockets need Linux, and elsewhere answers come from the socket's own address.
func asSource([]byte) []byte { return nil }
