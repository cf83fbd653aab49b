//go:build embedguest

package guests

import (
	_ "embed" // for the directive

	"trajgen/sandbox/internal/embedded"
)

//go:embed packed-linux-arm64.tar.zst
var archive string

func init() { embedded.Hold(archive) }
