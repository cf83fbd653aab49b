// Package faults plants faults into calls of tools: which there are, where they fall, and what the model sees of them.
package faults

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// None is the class of placebo twins: their calls have no fault.
const None = "none"

// Single is one fault at one call, as a twin has it.
type Single struct {
	Place          episode.Place
	Class, Variant string
	P              float64 // the probability with which it was planned
}

// Planter plants the faults of one attempt at an episode. It is a registry.Planter.
type Planter struct {
	settings Settings
	key      episode.Key
	known    []string // texts that the agent has from the beginning
	single   *Single  // nil at a level

	mu      sync.Mutex // guards what follows
	lasting []*fault
	begun   int
	logP    float64
	from    map[episode.Place]episode.Place // where the fault of a call began
}

var _ registry.Planter = (*Planter)(nil)

// New plants at a level. Known are the texts that the agent has from the beginning: a wrong value is none of them.
func New(s Settings, key episode.Key, known ...string) *Planter {
	if s.Seed == 0 {
		s.Seed = key.Seed
	}
	return &Planter{settings: s, key: key, known: known, from: map[episode.Place]episode.Place{}}
}

// NewSingle plants one fault; with the class None none.
func NewSingle(s Settings, key episode.Key, one Single, known ...string) *Planter {
	p := New(s, key, known...)
	p.single = &one
	return p
}

// fault is a fault that has begun.
type fault struct {
	class   *class
	variant string
	place   episode.Place
	p       float64
	seed    [32]byte

	tool, toolset, digest string // of the call where it began
	left                  int    // how many more calls it strikes; below 0 without end
	renamed               string // by schema_drift: the parameter
}

// Plant is of registry.Planter.
func (p *Planter) Plant(call registry.PlantCall) *registry.Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	digest := call.Trace.Digest()
	for _, f := range p.lasting {
		if f.left != 0 && f.strikes(call.Tool, digest) && (!call.Refused || f.renamed != "") {
			f.left--
			return p.strike(f, call)
		}
	}
	if call.Refused || call.Again {
		return nil
	}
	f := p.draw(call, digest)
	if f == nil {
		return nil
	}
	f.tool, f.toolset, f.digest, f.place = call.Tool.Name, call.Tool.Toolset, digest, call.Place
	f.seed = sum(p.settings.Seed, p.key, f.place, f.tool, f.digest, "fault/"+f.class.name)
	f.left = p.times(f.class) - 1
	p.begun++
	p.lasting = append(p.lasting, f)
	return p.strike(f, call)
}

// times is how many calls a fault of the class strikes; 0 is without end.
func (p *Planter) times(c *class) int {
	switch s := p.settings.Settings[c.name]; {
	case s.Times > 0:
		return s.Times
	case s.Lasting == lastingOnce:
		return 1
	case s.Lasting == lastingSticky:
		return 0
	}
	return c.times
}

// strikes reports whether a lasting fault strikes a call.
func (f *fault) strikes(tool *registry.Tool, digest string) bool {
	switch f.class.scope {
	case sameArguments:
		return f.tool == tool.Name && f.digest == digest
	case sameTool:
		return f.tool == tool.Name
	}
	return f.toolset == tool.Toolset
}

// draw begins a fault at the call, or not.
func (p *Planter) draw(call registry.PlantCall, digest string) *fault {
	if one := p.single; one != nil {
		if one.Place != call.Place || one.Class == None || p.begun > 0 {
			return nil
		}
		c := classOf(one.Class)
		if !p.can(c, call) {
			return nil
		}
		return &fault{class: c, variant: one.Variant, p: one.P}
	}
	if len(p.settings.Tools) > 0 && !slices.Contains(p.settings.Tools, call.Tool.Name) || p.settings.MaxPerEpisode > 0 && p.begun >= p.settings.MaxPerEpisode {
		return nil
	}
	total, can := 0.0, []choice{}
	for _, each := range p.settings.choices() {
		if p.can(each.class, call) {
			can = append(can, each)
			total += each.weight
		}
	}
	if total == 0 {
		return nil
	}
	level := p.settings.Level
	if U(p.settings.Seed, p.key, call.Place, call.Tool.Name, digest, "level") >= level {
		p.logP += math.Log1p(-level)
		return nil
	}
	at := U(p.settings.Seed, p.key, call.Place, call.Tool.Name, digest, "which") * total
	for i, each := range can {
		if at -= each.weight; at < 0 || i == len(can)-1 {
			chance := level * each.weight / total
			p.logP += math.Log(chance)
			return &fault{class: each.class, variant: each.variant, p: chance}
		}
	}
	return nil
}

// can reports whether the call can have a fault of the class.
func (p *Planter) can(c *class, call registry.PlantCall) bool {
	return c.applies(call.Tool, call.Trace) && len(call.Session.Toolset().Names()) >= c.needs && (!c.pair || call.Beside != nil)
}

// strike makes what the fault does to a call.
func (p *Planter) strike(f *fault, call registry.PlantCall) *registry.Fault {
	p.from[call.Place] = f.place
	if f.class.pair {
		p.from[*call.Beside] = f.place
	}
	made := &registry.Fault{Planted: episode.Planted{Class: f.class.name, Variant: f.variant, P: f.p}}
	if call.Tool.Access != nil && !outside(call.Tool) && len(call.Tool.Access(call.Trace.Arguments).Writes) == 0 { // it only reads
		made.Retry = p.settings.Mitigate.Retry
	}
	f.class.plant(&strike{
		Fault: made, fault: f, call: call, planter: p, settings: p.settings.Settings[f.class.name], rand: rand.New(rand.NewChaCha8(f.seed)),
		trace: call.Session.Trace,
	})
	return made
}

// Planted says in the episode what was drawn, when all of its calls have ended.
func (p *Planter) Planted(ep *episode.Episode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.single == nil {
		ep.Planted = &episode.PlantedLevel{Level: p.settings.Level, LogP: p.logP}
	}
	places := ep.Places()
	for i, place := range places {
		if from, ok := p.from[place]; ok && ep.Calls[i].Planted != nil {
			ep.Calls[i].Planted.From = slices.Index(places, from)
		}
	}
}

// U is the coin of a call for a purpose: the first 53 bits of a SHA-256 of all that it is told, from 0 to below 1.
func U(seed uint64, key episode.Key, place episode.Place, tool, digest, purpose string) float64 {
	s := sum(seed, key, place, tool, digest, purpose)
	return float64(binary.BigEndian.Uint64(s[:8])>>11) / (1 << 53)
}

// sum hashes with the length in front of every text, so that no two have one preimage.
func sum(seed uint64, key episode.Key, place episode.Place, tool, digest, purpose string) [32]byte {
	b := binary.LittleEndian.AppendUint64([]byte("fault"), seed)
	text := func(s string) {
		b = append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
	}
	text(key.Task)
	b = binary.LittleEndian.AppendUint64(b, uint64(key.Sample))
	text(key.Path)
	for _, n := range []int{place.Turn, place.Index, place.Nested} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	text(tool)
	raw, _ := hex.DecodeString(digest) // "" where the arguments were never an object
	b = append(b, raw...)
	text(purpose)
	return sha256.Sum256(b)
}
