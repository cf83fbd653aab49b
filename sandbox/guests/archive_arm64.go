//go:build embedguest

package guests

import _ "embed" // for the directive

//go:embed packed-linux-arm64.tar.zst
var archive string
