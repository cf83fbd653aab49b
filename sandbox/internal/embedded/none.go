//go:build !embedguest || !linux || (!amd64 && !arm64)

package embedded

// Program is the broker and the guests, an executable file.
const Program = ""
