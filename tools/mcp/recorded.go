package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// Outside names a server as who answers, in Definition.Outside.
func Outside(name string) string { return "mcp " + name }

// Descriptions are what a recording of the servers' calls must have of them, by Definition.Outside.
func (s *Set) Descriptions() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for _, each := range s.servers {
		all[Outside(each.name)] = encoded(each.described)
	}
	return all
}

// recall takes what a server said of itself from the recording, or else from the lock file, where the recording answers all of its
// calls: then the server need not be there.
func (s *server) recall(lock *Lock) error {
	from := s.set.opts.Recorded
	if from == nil {
		return nil
	}
	text, found, err := from.Description(Outside(s.name))
	if err != nil {
		return err
	}
	described := &Described{}
	switch {
	case found:
		if err := json.Unmarshal(text, described); err != nil {
			return fmt.Errorf("its recorded description: %w", err)
		}
	case lock != nil && lock.Servers[s.name] != nil:
		described = lock.Servers[s.name]
	default:
		return nil
	}
	more, err := s.utilities(described)
	if err != nil {
		return err
	}
	live := func(tool string) bool { return tool != "" && !from.Replays(tool) }
	if slices.ContainsFunc(described.Tools, func(t Tool) bool { return live(t.Shown) }) ||
		slices.ContainsFunc(more, func(t registry.Tool) bool { return live(t.Name) }) {
		return nil
	}
	s.described, s.recorded = described, true
	return nil
}

// Runs reports whether a server runs, and is not only known from a recording.
func (s *Set) Runs(name string) bool {
	return slices.ContainsFunc(s.servers, func(each *server) bool { return each.name == name && !each.recorded })
}

// replayed counts a call that a recording answered, and what the server had asked the user in it.
func (s *server) replayed(ctx context.Context, env *registry.Env, _ json.RawMessage, a registry.Answer) error {
	var about About
	if json.Unmarshal(a.Source, &about) != nil || about.Server == "" { // refused before the server was asked
		return nil
	}
	attempt, _ := registry.Service[*Attempt](env.Session)
	attempt.change(s.name, func(row *episode.MCPServer) { row.Calls++ })
	return again(ctx, env, about.Elicited)
}
