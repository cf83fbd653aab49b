package faults

import (
	"math/rand/v2"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// Eligible reports whether a class, with its variant, applies to a recorded call of a clean episode: the tool can have it, the call
// ran, and its result has something that the fault changes. Known are the texts that the agent had from the beginning.
func Eligible(s Settings, t *registry.Tool, ep *episode.Episode, call int, class string, known ...string) bool {
	c := &ep.Calls[call]
	if c.SameAs != "" || c.Planted != nil || len(s.Tools) > 0 && !slices.Contains(s.Tools, c.Name) {
		return false
	}
	switch c.Status {
	case episode.CallDenied, episode.CallInvalidArguments, episode.CallUnknownTool:
		return false
	}
	base, variant, _ := strings.Cut(class, ":")
	if base == None {
		return true
	}
	of := classOf(base)
	if of == nil || len(ep.Tools) < of.needs || !of.applies(t, c) {
		return false
	}
	if of.changes == nil || of.answers && variant == "" {
		return true
	}
	if c.Status != episode.CallOK {
		return false
	}
	p := New(s, ep.Key, known...)
	trial := &strike{
		Fault: &registry.Fault{Planted: episode.Planted{Class: base, Variant: variant}},
		call:  registry.PlantCall{Tool: t, Trace: c}, planter: p, settings: s.Settings[base],
		rand:  rand.New(rand.NewChaCha8(sum(p.settings.Seed, ep.Key, ep.Places()[call], c.Name, c.Digest(), "fault/"+base))),
		trace: func() []episode.ToolCall { return ep.Calls[:call] },
	}
	changed, ok := of.changes(trial, c.Result)
	return ok && changed != c.Result
}
