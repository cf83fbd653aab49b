package registry

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"

	"trajgen/pipeline/episode"
)

// Guardrails watch an episode for repeated calls without progress, and say so in the Notice of the call. They never change a
// result. The hook is for one session.
type Guardrails struct {
	mu      sync.Mutex // guards what follows
	reading map[place]bool
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
	return &Guardrails{
		reading: map[place]bool{}, failed: map[callSum]int{}, broken: map[string]int{}, results: map[callSum]repeated{},
	}
}

// Hook returns the hook for the session.
func (g *Guardrails) Hook() Hook {
	return Hook{Name: "guardrails", Before: g.before, Turn: g.turn}
}

// Stopped says why the episode should end, or "".
func (g *Guardrails) Stopped() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stop
}

// before records the calls that only read: repeating them gives the same result.
func (g *Guardrails) before(_ context.Context, _ *Env, call *Pending) error {
	if call.Trace.Parent != "" || call.Tool.Access == nil {
		return nil
	}
	if access, ok := ask(call.Tool.Access, call.Arguments); ok && len(access.Writes) == 0 {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.reading[place{call.Trace.Turn, call.Trace.Index}] = true
	}
	return nil
}

// place is a call of the model's own.
type place struct{ turn, index int }

func (g *Guardrails) turn(_ context.Context, calls []episode.ToolCall) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range calls {
		call := &calls[i]
		if call.ErrorClass == "cancelled" || call.ErrorClass == "skipped" {
			continue
		}
		var notices []string
		if call.Notice != "" {
			notices = append(notices, call.Notice)
		}
		say := func(times, warn, stop int, text string) {
			if times >= warn {
				notices = append(notices, text)
			}
			if times >= stop && g.stop == "" {
				g.stop = call.Name + ": " + text
			}
		}
		sum := sumOf(call)
		if call.Status != episode.CallOK {
			g.failed[sum]++
			g.broken[call.Name]++
			say(g.failed[sum], warnFailed, stopFailed, fmt.Sprintf("this call has failed %d times with the same arguments; "+
				"change something before you try it again", g.failed[sum]))
			say(g.broken[call.Name], warnBroken, stopBroken, fmt.Sprintf("%s has failed %d times in a row; read the errors, or "+
				"take another way", shorten(call.Name, 64), g.broken[call.Name]))
		} else {
			delete(g.failed, sum)
			delete(g.broken, call.Name)
			if where := (place{call.Turn, call.Index}); g.reading[where] || call.SameAs != "" {
				delete(g.reading, where)
				times := g.again(sum, call.Result)
				say(times, warnRepeated, stopRepeated, fmt.Sprintf("this call has given the same result %d times; use what it "+
					"gave, or do something else", times))
			}
		}
		call.Notice = strings.Join(notices, "; ")
	}
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
