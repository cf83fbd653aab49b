//go:build embedguest

package embedded

import _ "embed" // for the directives

const foreignArch = "amd64"

//go:embed sandboxhelper-linux-arm64
var ownHelper string

//go:embed sandboxhelper-linux-amd64.gz
var foreignHelper string
