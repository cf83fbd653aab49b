// Package bare is the backend of one sandbox: the machine or container that this process runs in. Agents serve it.
package bare

import "log/slog"

// Options say where a bare sandbox has its directories, as absolute paths. The zero value works.
type Options struct {
	Workdir string // "" is /workspace; created if missing, as are the next two
	Home    string // "" is the user's
	Tmp     string // "" is /tmp
	Tests   string // "" is /tests; not created
	// Shallow removes deeply nested directories when the sandbox is closed: what removes the rest may fail on them.
	Shallow bool
	Logger  *slog.Logger
}
