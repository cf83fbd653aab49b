// Package native is the sandbox backend of this machine's own namespaces, cgroups and seccomp, or of Landlock where it cannot
// make namespaces.
package native

import "trajgen/sandbox"

func init() {
	sandbox.Register("native", sandbox.Kind{
		About: "namespaces, cgroups and seccomp of this machine; nothing to install", Open: openPlain, Sweep: sweep,
		LeastLevel: sandbox.LevelLandlock,
	})
}
