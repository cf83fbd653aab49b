//go:build !embedguest || (!amd64 && !arm64)

package embedded

const foreignArch, ownHelper, foreignHelper = "", "", ""
