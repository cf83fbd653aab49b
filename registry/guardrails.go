package registry

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"

	"trajgen/pipeline/episode"
)

// Guardrails watch an episode for repeated calls without progress, and say so in the Notice of the call. They never change a
// result. They are for one session.
type Guardrails struct {
	mu      sync.Mutex      // guards what follows
	failed  map[callSum]int // identical calls that failed, in a row
	broken  map[string]int  // failures of a tool in a row
	results map[callSum]repeated
	stop    string
}

// The numbers of calls that lead to a notice, and to the end of the episode.
const (
	warnFailed, stopFailed     = 2, 5 // the same call, failing
	warnBroken, stopBroken     = 3, 8 // the same tool, failing
	warnRepeated, stopRepeated = 2, 5 // the same call with the same result
)

// callSum is a hash of a tool and its arguments.
type callSum [sha256.Size]byte

type repeated struct {
	result [sha256.Size]byte
	times  int
}

// NewGuardrails makes guardrails for a new session.
func NewGuardrails() *Guardrails {
	return &Guardrails{failed: map[callSum]int{}, broken: map[string]int{}, results: map[callSum]repeated{}}
}

// Stopped says why the episode should end, or "".
func (g *Guardrails) Stopped() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stop
}

// turn sees the calls of a turn, without nested ones, in call order. All have ended, as a notice must not depend on which of several
// calls ended first.
func (g *Guardrails) turn(calls []*prepared) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range calls {
		if p.call.ErrorClass != "cancelled" && p.call.ErrorClass != "skipped" {
			notice := g.notice(p)
			p.session.change(p, func(call *episode.ToolCall) { call.Notice = notice })
		}
	}
}

func (g *Guardrails) notice(p *prepared) string {
	var notices []string
	say := func(times, warn, stop int, text string) {
		if times >= warn {
			notices = append(notices, text)
		}
		if times >= stop && g.stop == "" {
			g.stop = p.call.Name + ": " + text
		}
	}
	sum := sumOf(&p.call)
	switch {
	case p.call.Status != episode.CallOK:
		g.failed[sum]++
		g.broken[p.call.Name]++
		say(g.failed[sum], warnFailed, stopFailed, fmt.Sprintf("this call has failed %d times with the same arguments; "+
			"change something before you try it again", g.failed[sum]))
		say(g.broken[p.call.Name], warnBroken, stopBroken, fmt.Sprintf("%s has failed %d times in a row; read the errors, or "+
			"take another way", shorten(p.call.Name, 64), g.broken[p.call.Name]))
		return strings.Join(notices, "; ")
	case p.reads(): // repeating it gives the same result
		times := g.again(sum, p.call.Result)
		say(times, warnRepeated, stopRepeated, fmt.Sprintf("this call has given the same result %d times; use what it "+
			"gave, or do something else", times))
	}
	delete(g.failed, sum)
	delete(g.broken, p.call.Name)
	return strings.Join(notices, "; ")
}

// reads reports whether a call that has ended only read.
func (p *prepared) reads() bool {
	if p.tool.Access == nil {
		return false
	}
	access, ok := ask(p.tool.Access, p.call.Arguments)
	return ok && len(access.Writes) == 0
}

// again counts how often in a row a call had this result.
func (g *Guardrails) again(sum callSum, result string) int {
	r := g.results[sum]
	if now := sha256.Sum256([]byte(result)); now != r.result {
		r = repeated{result: now}
	}
	r.times++
	g.results[sum] = r
	return r.times
}

// sumOf hashes the arguments that the tool got, or the raw text if it got none.
func sumOf(call *episode.ToolCall) callSum {
	arguments := string(call.Arguments)
	if call.Arguments == nil {
		arguments = call.RawArguments
	}
	return sha256.Sum256([]byte(call.Name + "\x00" + arguments))
}
