//go:build embedguest

package guests

import (
	_ "embed" // for the directive

	"trajgen/sandbox/internal/embedded"
)

//go:embed packed-linux-amd64.tar.zst
var archive string

func init() { embedded.Hold(archive) }
