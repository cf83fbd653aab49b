// Package bare is the backend of one sandbox, which is the machine or container that this process runs in. Agents serve it.
package bare

import "log/slog"

// Options say where a bare sandbox has its places, as absolute paths. The zero value works.
type Options struct {
	Workdir string // "" is /workspace; made if need be, as are the others
	Home    string // "" is the user's
	Tmp     string // "" is /tmp
	Tests   string // "" is /tests; not made
	// Shallow removes directories that lie deep in one another when the sandbox is closed: those that come to remove what is
	// left of it may fail to, and are in trouble then.
	Shallow bool
	Logger  *slog.Logger
}
