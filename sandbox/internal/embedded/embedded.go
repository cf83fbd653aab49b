// Package embedded holds the commands sandboxd and sandboxhelper, in what was built with the tag embedguest after
// scripts/build-guest. In all else both are empty, and the whole program runs itself again instead.
package embedded

import (
	"compress/gzip"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
)

// Helper is the program that lies in sandboxes, an executable file for Linux on an architecture; "" where there is none.
// It belongs to all who ask.
func Helper(goarch string) (string, error) {
	switch {
	case ownHelper != "" && goarch == runtime.GOARCH:
		return ownHelper, nil
	case foreignHelper != "" && goarch == foreignArch:
		return foreign()
	}
	return "", nil
}

// foreign unpacks what few ask for.
var foreign = sync.OnceValues(func() (string, error) {
	packed, err := gzip.NewReader(strings.NewReader(foreignHelper))
	if err != nil {
		return "", fmt.Errorf("unpack the program for %s: %w", foreignArch, err)
	}
	program, err := io.ReadAll(packed)
	if err != nil {
		return "", fmt.Errorf("unpack the program for %s: %w", foreignArch, err)
	}
	return string(program), nil
})
