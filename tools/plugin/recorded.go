package plugin

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Outside names a plugin as who answers, in Definition.Outside.
func Outside(name string) string { return "plugin " + name }

// known is what a recording of a plugin's calls has of the plugin.
type known struct {
	Digest string      `json:"digest"`
	Says   description `json:"says"`
}

// Descriptions are what a recording of the plugins' calls must have of them, by Definition.Outside.
func (s *Set) Descriptions() (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	for _, p := range s.plugins {
		text, err := encode(known{Digest: p.digest, Says: p.says})
		if err != nil {
			return nil, err
		}
		all[Outside(p.cfg.Name)] = text
	}
	return all, nil
}

// recalled is a plugin that need not run, as a recording has its description and answers all of its calls; nil for another one.
func recalled(cfg Config, from Recorded) (*plugin, error) {
	if from == nil {
		return nil, nil
	}
	text, found, err := from.Description(Outside(cfg.Name))
	if err != nil || !found {
		return nil, err
	}
	var k known
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("its recorded description: %w", err)
	}
	p := &plugin{cfg: cfg, says: k.Says, digest: k.Digest, recorded: true}
	tools, err := p.define(p.says)
	if err != nil {
		return nil, fmt.Errorf("its recorded description: %w", err)
	}
	for _, tool := range tools {
		if tool.Outside == "" || !from.Replays(tool.Name) {
			return nil, nil
		}
	}
	return p, nil
}

// Runs reports whether a plugin runs, and is not only known from a recording.
func (s *Set) Runs(name string) bool {
	return slices.ContainsFunc(s.plugins, func(p *plugin) bool { return p.cfg.Name == name && !p.recorded })
}
