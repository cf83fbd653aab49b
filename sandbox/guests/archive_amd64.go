//go:build embedguest

package guests

import _ "embed" // for the directive

//go:embed packed-linux-amd64.tar.zst
var archive string
