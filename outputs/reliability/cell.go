package reliability

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"trajgen/outputs/estimate"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/reaction"
)

// play is what pairs need of an episode.
type play struct {
	id, task, tool, answer string
	position               string
	twin                   *episode.Twin // nil for a clean episode
	resolved               bool
	success                float64
	turns                  []episode.TurnCost
	calls                  []string // tools of a clean episode's calls
	unplanted              bool     // the fault found nothing to change
}

// played takes what pairs need of an episode.
func (b *Builder) played(ep *episode.Episode) (*play, error) {
	p := &play{id: ep.ID, task: ep.Key.Task, answer: ep.Answer, twin: ep.Twin, resolved: ep.Outcome.AgentsDoing(), success: success(ep), turns: episode.TurnCosts(ep, b.Prices, b.Asked)}
	if t := ep.Twin; t == nil {
		for _, call := range ep.Calls {
			p.calls = append(p.calls, strings.Clone(call.Name))
		}
	} else {
		reached := t.Ordinal >= 0 && t.Ordinal < len(ep.Calls) // a twin that ended in an error may not have got there
		if t.P <= 0 || t.P > 1 || t.Ordinal < 0 || p.resolved && !reached {
			return nil, fmt.Errorf("twin %s of %s: its call is %d of %d and its probability %v: the journal is damaged, see trajgen verify",
				ep.ID, t.Of, t.Ordinal, len(ep.Calls), t.P)
		}
		p.unplanted = t.Role == episode.TwinFault && p.resolved && ep.Calls[t.Ordinal].Planted == nil
	}
	return p, nil
}

func success(ep *episode.Episode) float64 {
	if ep.Outcome == episode.Success {
		return 1
	}
	return 0
}

func (p *play) unrecoverable() bool { return p.twin.Recoverable != nil && !*p.twin.Recoverable }

type pair struct{ clean, twin *play }

// collected are values of pairs; they are nothing if a pair lacks its value.
type collected struct {
	pairs   []estimate.Pair
	lacking bool
}

func (c *collected) add(t *play, v float64) {
	c.pairs = append(c.pairs, estimate.Pair{Task: t.task, P: t.twin.P, Value: v})
}

func (c *collected) addBool(t *play, v *bool) {
	if v != nil {
		c.add(t, toFloat(*v))
	}
}

func toFloat(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (c *collected) share() *estimate.Mean {
	if len(c.pairs) == 0 {
		return nil
	}
	return new(estimate.Share(c.pairs))
}

func (c *collected) extra() *estimate.Mean {
	if c.lacking || len(c.pairs) == 0 {
		return nil
	}
	return new(estimate.Extra(c.pairs))
}

// costs are those of pairs beyond the call.
type costs struct{ turns, tokens, usd, seconds collected }

func (c *costs) add(p pair) {
	t := p.twin
	n, after := episode.Beyond(t.turns, t.twin.Turn)
	m, before := episode.Beyond(p.clean.turns, t.twin.Turn)
	c.turns.add(t, float64(n-m))
	c.seconds.add(t, (after.Elapsed - before.Elapsed).Seconds())
	c.tokens.lacking = c.tokens.lacking || !after.Known || !before.Known
	c.tokens.add(t, float64(after.Tokens-before.Tokens))
	if after.USD == nil || before.USD == nil {
		c.usd.lacking = true
	} else {
		c.usd.add(t, *after.USD-*before.USD)
	}
}

func (c *costs) means() Cost {
	return Cost{Turns: estimate.Extra(c.turns.pairs), Tokens: c.tokens.extra(), USD: c.usd.extra(), Seconds: estimate.Extra(c.seconds.pairs)}
}

// cellOf makes a cell of its pairs and of the placebos of its tool.
func cellOf(pairs, placebos []pair) Cell {
	first := pairs[0].twin
	c := Cell{Tool: first.tool, Class: first.twin.FullClass(), Position: first.position, Unrecoverable: first.unrecoverable(), Worst: worst(pairs)}
	var least, greatest, wrong, right, safe collected
	var all, recovered costs
	for _, p := range pairs {
		t := p.twin
		c.Eligible += 1 / t.twin.P
		low, high := p.clean.success-t.success, p.clean.success-t.success
		if !p.clean.resolved {
			low, high = low-p.clean.success, high-p.clean.success+1
		}
		if !t.resolved {
			low, high = low+t.success-1, high+t.success
		}
		least.add(t, low)
		greatest.add(t, high)
		if !p.clean.resolved || !t.resolved {
			c.Unresolved++
			continue
		}
		c.pairs = append(c.pairs, estimate.Pair{Task: t.task, P: t.twin.P, Value: low})
		wrong.addBool(t, t.twin.UsedWrong)
		right.addBool(t, t.twin.UsedTrue)
		safe.addBool(t, t.twin.SafeSuccess)
		all.add(p)
		if noticed(p) && t.success == 1 {
			recovered.add(p)
		}
	}
	c.Harm = estimate.Harm(c.pairs)
	c.Missing = missing(c.Harm)
	if c.Unresolved > 0 {
		c.Bounds = &estimate.Interval{Low: estimate.Harm(least.pairs).Value, High: estimate.Harm(greatest.pairs).Value}
	}
	c.UsedWrong, c.UsedTrue, c.SafeSuccess = wrong.share(), right.share(), safe.share()
	c.Cost = all.means()
	if len(recovered.turns.pairs) > 0 {
		c.Recovery = new(recovered.means())
	}
	c.react(pairs, placebos)
	return c
}

// tell is the harm that a cell should tell from none, and wouldTell how many pairs do where none say how much they vary.
const (
	tell      = 0.1
	wouldTell = 200
)

// missing is how many pairs more make half of the interval as narrow as tell.
func missing(harm estimate.Mean) int {
	if harm.Range == nil {
		return max(0, wouldTell-harm.N)
	}
	half := (harm.Range.High - harm.Range.Low) / 2 / tell
	return max(0, int(math.Ceil(float64(harm.N)*(half*half-1))))
}

// react fills in what agents did, beside what they do without a fault.
func (c *Cell) react(pairs, placebos []pair) {
	pairs, placebos = judged(pairs), judged(placebos)
	c.Reactions = map[string]estimate.Mean{}
	for _, name := range reaction.Names() {
		c.Reactions[name] = having(pairs, func(p pair) bool { return slices.Contains(p.twin.twin.Reactions, name) })
	}
	c.Noticed = having(pairs, noticed)
	if len(placebos) == 0 {
		return
	}
	c.Background = new(having(placebos, noticed))
	succeeded := func(p pair) bool { return p.twin.success == 1 }
	who := slices.DeleteFunc(slices.Clone(pairs), func(p pair) bool { return !noticed(p) })
	if able := having(placebos, succeeded).Value; len(who) > 0 && able > 0 {
		c.Recovered = new(having(who, succeeded).Value / able)
	}
	if len(pairs) > 0 && strings.HasPrefix(c.Class, wrongValue) {
		c.Dependence = new(having(pairs, differs).Value - having(placebos, differs).Value)
	}
}

// wrongValue is the class that shows whether answers depend on a tool.
const wrongValue = "wrong_value"

func noticed(p pair) bool { return reaction.Notices(p.twin.twin.Reactions) }

// judged are the pairs whose twin ended by the agent's doing.
func judged(pairs []pair) []pair {
	return slices.DeleteFunc(slices.Clone(pairs), func(p pair) bool { return !p.twin.resolved })
}

// differs reports whether the answers differ by more than spaces.
func differs(p pair) bool {
	return strings.Join(strings.Fields(p.clean.answer), " ") != strings.Join(strings.Fields(p.twin.answer), " ")
}

func having(pairs []pair, is func(pair) bool) estimate.Mean {
	var values collected
	for _, p := range pairs {
		values.add(p.twin, toFloat(is(p)))
	}
	return estimate.Share(values.pairs)
}
