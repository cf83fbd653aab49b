package native

import (
	"cmp"
	"log/slog"
	"time"

	"trajgen/sandbox"
)

// Trial is what tests alone ask for.
type Trial struct {
	Cgroups  string        // forces a version: v1, v2 or none
	Landlock bool          // does without namespaces
	Patience time.Duration // is how long a guest may leave requests unanswered
}

// Try opens native so.
func Try(trial Trial, opts sandbox.Options) (sandbox.Backend, error) {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	return open(options{Options: opts, cgroups: trial.Cgroups, landlock: trial.Landlock, patience: trial.Patience})
}
