package sandbox

import "time"

// WithCgroups makes options that force a cgroup version: v1, v2 or none.
func WithCgroups(opts Options, version string) Options {
	opts.cgroups = version
	return opts
}

// WithLandlock makes options under which native does without namespaces.
func WithLandlock(opts Options) Options {
	opts.landlock = true
	return opts
}

// WithPatience makes options under which a guest may leave requests unanswered for so long.
func WithPatience(opts Options, patience time.Duration) Options {
	opts.patience = patience
	return opts
}
