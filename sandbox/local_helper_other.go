//go:build !linux

package sandbox

import "os"

// helper is the path of the program that runs helpers: this one.
func (l *local) helper() (string, error) { return os.Executable() }
