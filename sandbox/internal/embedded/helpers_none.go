//go:build !embedguest

package embedded

const helperAMD64, helperARM64 = "", ""
