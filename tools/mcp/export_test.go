package mcp

import "time"

// HurryUp makes the pauses between tries short, and the wait for a sign of life.
func HurryUp() { pause, pingTime = 10*time.Millisecond, time.Second }
