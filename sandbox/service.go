package sandbox

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"time"
)

// Service is a program that runs beside a sandbox, with an image of its own: a database, a web server. Both have one network, in
// which the service's name leads to the loopback address. It has its own files and processes, and limits as large as the sandbox's.
//
// It starts with the sandbox, and ends when that is closed: KillAll does not end it, and a snapshot has none of its files.
type Service struct {
	// Name of letters, digits, '-', '_' and '.'.
	Name  string
	Image string // "" is the backend's default
	// Entrypoint and Args together are the command. Without either, that part is the image's; an Entrypoint replaces the image's
	// arguments, too.
	Entrypoint, Args []string
	Env              map[string]string
	Workdir          string // "" is the image's
	User             string // "" is the image's
	// Files are in its container before it starts, as root's. Their paths are absolute.
	Files []FileWrite
	// Health says when it is ready; with nil, it is when it has begun.
	Health *Health
	// Once says that it is ready when it has ended, with status 0.
	Once bool
	// Restart says that it starts again a second after its end: RestartAlways, or RestartFailed for an end with an error.
	Restart string
	// After are earlier services that must be ready before this one starts. A sandbox opens when all are ready.
	After []string
}

// The values of Service.Restart, beside "" for never.
const (
	RestartAlways = "always"
	RestartFailed = "on-failure"
)

// Health is a command in a service's container that succeeds once the service is well. It is run at once and each second, or each
// Interval if that is shorter. The service is given up at the Retries-th failure after Start, of which one in each Interval counts.
type Health struct {
	Args                     []string
	Interval, Timeout, Start time.Duration
	Retries                  int
}

var hostPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,253}$`)

// checkServices refuses services, and names of the sandbox, that cannot be had.
func (s *Spec) checkServices(offered bool) error {
	switch {
	case len(s.Services)+len(s.Hosts) == 0:
		return nil
	case !offered:
		return errors.New("services: a sandbox of this backend is one machine: take docker or podman")
	case s.From != nil:
		return errors.New("services: a fork has those of its snapshot, and none of its own")
	}
	return CheckServices(s.Services, s.Hosts)
}

// CheckServices returns all that is wrong with the services and hosts of a Spec.
func CheckServices(services []Service, hosts []string) error {
	var errs []error
	var earlier []string
	for _, service := range services {
		bad := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("service %q: "+format, append([]any{service.Name}, args...)...))
		}
		if !hostPattern.MatchString(service.Name) {
			bad("its name is not of letters, digits, '-', '_' and '.'")
		}
		if slices.Contains(earlier, service.Name) {
			bad("another has its name")
		}
		for _, name := range service.After {
			if !slices.Contains(earlier, name) {
				bad("it comes after %q, which is not before it in the list", name)
			}
		}
		if h := service.Health; h != nil && (len(h.Args) == 0 || h.Timeout <= 0 || h.Retries < 1 || h.Interval < 0 || service.Once) {
			bad("its health check needs a command, a timeout and retries, and a service that goes on")
		}
		if r := service.Restart; r != "" && r != RestartFailed && (r != RestartAlways || service.Once) {
			bad("restart is %q; want %s, or %s for a service that goes on", r, RestartFailed, RestartAlways)
		}
		for _, f := range service.Files {
			if !path.IsAbs(f.Path) {
				bad("the path of its file %q is not absolute", f.Path)
			}
		}
		earlier = append(earlier, service.Name)
	}
	for _, name := range hosts {
		if !hostPattern.MatchString(name) {
			errs = append(errs, fmt.Errorf("host %q is not of letters, digits, '-', '_' and '.'", name))
		}
	}
	return errors.Join(errs...)
}
