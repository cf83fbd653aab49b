//go:build embedguest

package embedded

import _ "embed" // for the directive

// Program is the broker and the guests, an executable file.
//
//go:embed sandboxd-linux-amd64
var Program string
