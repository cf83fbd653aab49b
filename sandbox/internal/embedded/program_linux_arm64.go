//go:build embedguest

package embedded

import _ "embed" // for the directive

// Program is the broker and the guests, an executable file.
//
//go:embed sandboxd-linux-arm64
var Program string

// Helper is the program that lies in sandboxes.
//
//go:embed sandboxd-linux-arm64-helper
var Helper string
