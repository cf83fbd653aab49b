//go:build !embedguest || !linux || (!amd64 && !arm64)

package embedded

// Program is an executable file.
const Program = ""
