package build

import (
	"maps"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
)

// configure takes instructions that say how the image is used.
func (s *stage) configure(command instructions.Command) error {
	config := &s.config
	line := func(c instructions.ShellDependantCmdLine) []string {
		if c.PrependShell {
			return append(s.shell(), strings.Join(c.CmdLine, " "))
		}
		return c.CmdLine
	}
	switch c := command.(type) {
	case *instructions.EnvCommand:
		for _, kv := range c.Env {
			config.Env = set(config.Env, kv.Key, kv.Value)
		}
	case *instructions.LabelCommand:
		if config.Labels == nil {
			config.Labels = map[string]string{}
		}
		for _, kv := range c.Labels {
			config.Labels[kv.Key] = kv.Value
		}
	case *instructions.CmdCommand:
		config.Cmd, s.cmd = line(c.ShellDependantCmdLine), true
	case *instructions.EntrypointCommand:
		config.Entrypoint = line(c.ShellDependantCmdLine)
		if !s.cmd {
			config.Cmd = nil // that of the base is meant for another entrypoint
		}
	case *instructions.HealthCheckCommand:
		h := c.Health
		config.Healthcheck = &v1.HealthConfig{Test: h.Test, Interval: h.Interval, Timeout: h.Timeout, StartPeriod: h.StartPeriod, Retries: h.Retries}
	case *instructions.UserCommand:
		config.User = c.User
	case *instructions.ShellCommand:
		config.Shell = c.Shell
	case *instructions.StopSignalCommand:
		config.StopSignal = c.Signal
	case *instructions.OnbuildCommand:
		config.OnBuild = append(config.OnBuild, c.Expression)
	case *instructions.ExposeCommand:
		config.ExposedPorts = with(config.ExposedPorts, c.Ports)
	case *instructions.VolumeCommand:
		config.Volumes = with(config.Volumes, c.Volumes)
	case *instructions.MaintainerCommand:
	default:
		return refuse("this instruction is not known here")
	}
	return nil
}

func with(set map[string]struct{}, names []string) map[string]struct{} {
	all := maps.Clone(set)
	if all == nil {
		all = map[string]struct{}{}
	}
	for _, name := range names {
		all[name] = struct{}{}
	}
	return all
}

func (s *stage) shell() []string {
	if len(s.config.Shell) > 0 {
		return slices.Clone(s.config.Shell)
	}
	return []string{"/bin/sh", "-c"}
}
