//go:build !linux

package local

import "os"

// helper returns the path of the program that runs helpers: this one.
func (l *backend) helper() (string, error) { return os.Executable() }
