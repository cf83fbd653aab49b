// Package all links every sandbox backend there is, so that sandbox.Open finds it by name. What must stay small, the
// program that lies in sandboxes above all, does without.
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
