// Package all links every sandbox backend, so that sandbox.Open finds it by name. Programs that must stay small, such as the
// one inside sandboxes, do not import it.
package all

import (
	_ "trajgen/sandbox/daytona"
	_ "trajgen/sandbox/docker"
	_ "trajgen/sandbox/gvisor"
	_ "trajgen/sandbox/local"
	_ "trajgen/sandbox/modal"
	_ "trajgen/sandbox/native"
	_ "trajgen/sandbox/singularity"
	_ "trajgen/sandbox/ssh"
)
