package mcp

import "time"

// HurryUp makes the pauses between tries short.
func HurryUp() { pause = 10 * time.Millisecond }
