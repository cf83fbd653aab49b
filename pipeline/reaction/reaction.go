// Package reaction reads from the trace of a twin what its agent did about a planted fault.
package reaction

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// The reactions. Several may hold: who gives up may say why. Ignores stands alone.
const (
	Retry   = "retry"    // the same tool with the same arguments
	Verify  = "verify"   // another call that succeeds, and reads the same paths (or writes them, as this one did), or whose result has the true value
	Switch  = "switch"   // another tool that can stand for this one
	Says    = "says"     // a text that speaks of trouble
	GivesUp = "gives_up" // no call more, and a failure
	Ignores = "ignores"  // none of these
)

// Names are all reactions, sorted.
func Names() []string { return []string{GivesUp, Ignores, Retry, Says, Switch, Verify} }

// Notices reports whether reactions show that the agent noticed something.
func Notices(reactions []string) bool {
	return slices.ContainsFunc(reactions, func(r string) bool { return r == Retry || r == Verify || r == Switch || r == Says })
}

// Reader knows what a trace does not say.
type Reader struct {
	Tool         func(name string) (registry.Tool, bool) // of the registry that the episode was played with
	Alternatives [][]string                              // names of tools that can stand for each other
}

// after is what an agent did once it had seen the result of a call.
type after struct {
	fault *episode.ToolCall
	calls []episode.ToolCall
	texts []string // of the assistant
}

// Read fills in the Reactions, UsedWrong, UsedTrue and SafeSuccess of a twin that has ended.
func (r Reader) Read(ep *episode.Episode) error {
	t := ep.Twin
	if t == nil {
		return fmt.Errorf("episode %s is no twin: reactions are read from twins", ep.ID)
	}
	if t.Ordinal < 0 || t.Ordinal >= len(ep.Calls) || ep.Calls[t.Ordinal].Turn != t.Turn {
		return fmt.Errorf("twin %s: its trace has no call %d in turn %d, where it leaves its clean episode", ep.ID, t.Ordinal, t.Turn)
	}
	a := follow(ep)
	t.Reactions = r.reactions(ep, a)
	t.UsedWrong, t.UsedTrue = used(a)
	t.SafeSuccess = nil
	if ep.Outcome.AgentsDoing() {
		t.SafeSuccess = new(ep.Outcome == episode.Success && !r.twice(a))
	}
	return nil
}

// follow finds what came after the twin's call. Other calls of its turn were asked for before its result was seen; later ones
// of the same script were not.
func follow(ep *episode.Episode) *after {
	t := ep.Twin
	a := &after{fault: &ep.Calls[t.Ordinal]}
	for _, c := range ep.Calls[t.Ordinal+1:] {
		if c.Turn > t.Turn || c.Parent != "" && c.Parent == a.fault.Parent {
			a.calls = append(a.calls, c)
		}
	}
	for _, turn := range ep.Turns {
		if turn.Index > t.Turn && turn.Message < len(ep.Messages) {
			a.texts = append(a.texts, ep.Messages[turn.Message].Content)
		}
	}
	if ep.Answer != "" && !slices.Contains(a.texts, ep.Answer) {
		a.texts = append(a.texts, ep.Answer)
	}
	return a
}

// reactions are sorted.
func (r Reader) reactions(ep *episode.Episode, a *after) (found []string) {
	right := target(a).True
	near := r.touches(a.fault)
	add := func(name string, is bool) {
		if is {
			found = append(found, name)
		}
	}
	add(Retry, slices.ContainsFunc(a.calls, func(c episode.ToolCall) bool { return again(a.fault, &c) }))
	add(Says, slices.ContainsFunc(a.texts, trouble(ep.Twin.Class)))
	add(Switch, slices.ContainsFunc(a.calls, func(c episode.ToolCall) bool { return r.stands(a.fault.Name, c.Name) }))
	add(Verify, slices.ContainsFunc(a.calls, func(c episode.ToolCall) bool {
		if c.Status != episode.CallOK || again(a.fault, &c) {
			return false
		}
		then := r.touches(&c) // to write a file that was read goes on and verifies nothing
		return overlap(slices.Concat(near.Reads, near.Writes), then.Reads) || overlap(near.Writes, then.Writes) || holdsToken(plain(c.Result), right)
	}))
	add(GivesUp, len(a.calls) == 0 && ep.Outcome == episode.Failure)
	if len(found) == 0 {
		return []string{Ignores}
	}
	slices.Sort(found)
	return found
}

// again reports whether a call is the faulted one made anew. Where a parameter has another name now, the values are compared.
func again(fault, call *episode.ToolCall) bool {
	if call.Name != fault.Name {
		return false
	}
	if d := call.Digest(); d != "" && d == fault.Digest() {
		return true
	}
	return fault.Planted != nil && fault.Planted.Class == "schema_drift" && slices.Equal(values(fault), values(call))
}

// values are the arguments of a call without their names, sorted.
func values(call *episode.ToolCall) (all []string) {
	var members map[string]any
	if json.Unmarshal(call.Arguments, &members) != nil {
		return nil
	}
	for _, v := range members {
		text, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		all = append(all, string(text))
	}
	slices.Sort(all)
	return all
}

func (r Reader) stands(tool, other string) bool {
	return tool != other && slices.ContainsFunc(r.Alternatives, func(group []string) bool {
		return slices.Contains(group, tool) && slices.Contains(group, other)
	})
}

// touches are the paths of a call, as far as its tool names them.
func (r Reader) touches(call *episode.ToolCall) (access registry.Access) {
	tool, ok := r.Tool(call.Name)
	if !ok || tool.Access == nil || call.Arguments == nil {
		return access
	}
	access = tool.Access(call.Arguments)
	clean := func(paths []string) (all []string) {
		for _, p := range paths {
			all = append(all, path.Clean(p))
		}
		return all
	}
	return registry.Access{Reads: clean(access.Reads), Writes: clean(access.Writes)}
}

// overlap reports whether a path of one list equals, contains or lies in one of the other. A relative path is within any working
// directory.
func overlap(a, b []string) bool {
	holds := func(dir, file string) bool {
		return dir == "/" || dir == "." || file == dir || strings.HasPrefix(file, dir+"/") ||
			!path.IsAbs(dir) && (strings.HasSuffix(file, "/"+dir) || strings.Contains(file, "/"+dir+"/"))
	}
	return slices.ContainsFunc(a, func(x string) bool {
		return slices.ContainsFunc(b, func(y string) bool { return holds(x, y) || holds(y, x) })
	})
}

// twice reports whether an effect happened two times: by the fault, or by a retry of a call that had done its work and said that it
// had not. Calls that name what they write do the same thing again and leave the same.
func (r Reader) twice(a *after) bool {
	f := a.fault
	if f.Planted == nil {
		return false
	}
	if f.Planted.Effect == episode.EffectTwice {
		return true
	}
	tool, ok := r.Tool(f.Name)
	if f.Planted.Effect != episode.EffectDone || f.Status == episode.CallOK || !ok || tool.Access != nil || tool.ReadOnly {
		return false
	}
	return slices.ContainsFunc(a.calls, func(c episode.ToolCall) bool { return again(f, &c) && c.Status == episode.CallOK })
}
