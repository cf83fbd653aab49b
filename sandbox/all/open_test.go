//go:build !embedguest

package all_test

import "trajgen/sandbox/sandboxtest"

func sealed(caps sandboxtest.Caps) sandboxtest.Caps { return caps }
