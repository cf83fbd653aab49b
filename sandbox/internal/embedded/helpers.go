//go:build embedguest

package embedded

import _ "embed" // for the directives

//go:embed sandboxhelper-linux-amd64
var helperAMD64 string

//go:embed sandboxhelper-linux-arm64
var helperARM64 string
