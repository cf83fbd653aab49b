package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"go.yaml.in/yaml/v3"

	"trajgen/sandbox"
)

// maxOwn is how many servers a task may declare.
const maxOwn = 10

// OfTask reads the servers that a task declares itself, as the run file's are declared. A dataset is a stranger's: it names no files,
// variables, models or money of the runner's, and URLs only of hosts that the run file names.
func (s Settings) OfTask(servers json.RawMessage) (own Settings, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(servers)) // JSON is YAML, and the declarations' durations are texts
	decoder.KnownFields(true)
	if err := decoder.Decode(&own.Servers); err != nil {
		return own, fmt.Errorf("mcp: servers: %w", err)
	}
	errs := []error{own.Validate()}
	if len(own.Servers) > maxOwn {
		errs = append(errs, fmt.Errorf("mcp: %d servers; at most %d", len(own.Servers), maxOwn))
	}
	enabled := s.Enabled()
	for _, name := range own.Enabled() {
		bad := func(wrong bool, format string, args ...any) {
			if wrong {
				errs = append(errs, fmt.Errorf("mcp server %s: "+format, append([]any{name}, args...)...))
			}
		}
		c := own.Servers[name]
		bad(slices.Contains(enabled, name), "the run file declares one of this name, too: call the task's differently")
		bad(len(c.Files)+len(c.EnvAllow)+len(c.HeaderEnv)+len(c.Packages) > 0 || c.OAuth != nil || c.Sampling != nil || c.Shared,
			"files, packages, env_allow, header_env, oauth, sampling and shared are only for servers of the run file")
		if u, err := url.Parse(c.URL); c.URL != "" && err == nil {
			bad(!slices.Contains(s.TaskHosts, u.Host), "its host is %s, and the run file allows tasks no server there (mcp: {task_hosts: [%s]})",
				u.Host, u.Host)
		}
	}
	own.RefuseSuspicious = s.RefuseSuspicious
	return own, errors.Join(errs...)
}

// OpenTask asks the servers that a task declares what they have, in its sandbox. They are those of OfTask.
func OpenTask(ctx context.Context, own Settings, opts Options, box func(context.Context) (sandbox.Sandbox, error)) (*Set, error) {
	opts.Recorded = nil // calls are recorded as others are; the servers are there, with the task
	s := newSet(own, opts)
	for _, name := range own.Enabled() {
		server := &server{set: s, name: name, cfg: own.Servers[name], ofTask: true}
		if err := server.load(); err != nil {
			return nil, fmt.Errorf("mcp server %s: %w", name, err)
		}
		s.servers = append(s.servers, server)
	}
	err := s.askAll(ctx, box)
	if err == nil {
		err = s.define()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
