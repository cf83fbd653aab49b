package sandbox

// WithCgroups makes options that force a cgroup version: v1, v2 or none.
func WithCgroups(opts Options, version string) Options {
	opts.cgroups = version
	return opts
}
