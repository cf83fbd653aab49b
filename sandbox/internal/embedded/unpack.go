//go:build embedguest && (amd64 || arm64)

package embedded

import (
	"strings"

	"trajgen/sandbox/internal/packed"
)

func unpack(names ...string) (map[string][]byte, error) {
	return packed.Read(strings.NewReader(archive), names...)
}
