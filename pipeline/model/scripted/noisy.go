package scripted

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// noisyTurns is the length up to which an episode may grow by slips; a task's own limit may lower it.
	noisyTurns = 25
	maxSlips   = 2   // extra turns of one episode
	slipShare  = 0.3 // of the turns with calls that are preceded by a slip
	thinkShare = 0.35
)

// noisy plans an episode as an unreliable model would play it: skill decides whether it ends as the reference
// solution does. The way there has slips in both cases, all of which change nothing in the sandbox.
func noisy(sc *script, gold []turn, tools map[string]bool, skill float64, r *rand.Rand) []turn {
	if r.Float64() < skill {
		return ending(think(stumble(gold, sc.turns, tools, r), r))
	}
	turns, after := fail(sc, gold, tools, r)
	return append(think(turns, r), after)
}

// stumble puts slips before some of the turns. A slip garbles the next call if that only looks; of any other call it
// gets the name wrong, because a garbled command that is mended on its way could do half a thing.
func stumble(gold []turn, limit int, tools map[string]bool, r *rand.Rand) []turn {
	if limit <= 0 || limit > noisyTurns {
		limit = noisyTurns
	}
	room := min(maxSlips, limit-len(gold))
	turns := make([]turn, 0, len(gold)+maxSlips)
	for _, t := range gold {
		if len(t.calls) > 0 && room > 0 && r.Float64() < slipShare {
			next := t.calls[0]
			look, can := harmless(tools)
			switch {
			case next.looks:
				turns = append(turns, turn{calls: []call{slip(next, tools, r)}})
				room--
			case can && room >= 2 && r.IntN(2) == 0:
				turns = append(turns, turn{calls: []call{slip(look, tools, r)}}, turn{calls: []call{look}})
				room -= 2
			default:
				turns = append(turns, turn{calls: []call{misnamed(next, tools)}})
				room--
			}
		}
		turns = append(turns, t)
	}
	return turns
}

// fail plans an episode that must not score: its turns, and the one that comes whenever there is none left. It only
// looks, and its answer satisfies no check that is known.
func fail(sc *script, gold []turn, tools map[string]bool, r *rand.Rand) (turns []turn, after turn) {
	for _, t := range gold { // as far as the reference solution only looks
		if len(t.calls) == 0 || len(turns) == 3 || slices.ContainsFunc(t.calls, func(c call) bool { return !c.looks }) {
			break
		}
		turns = append(turns, t)
	}
	look, can := harmless(tools)
	if len(turns) == 0 && can {
		turns = append(turns, turn{calls: []call{look}})
	}
	after = turn{content: sc.wrong("I give up: I do not see what is wrong here.", "I give up.")}
	switch draw := r.Float64(); {
	case draw < 0.5 || !can:
		after.content = sc.wrong(sc.distort(gold), "I have done what you asked for.",
			"Everything is in order as it is, there is nothing to do.")
	case draw < 0.7:
		turns = turns[:1:1]
	case draw < 0.9: // never mended
		turns = turns[:1:1]
		for range 3 {
			turns = append(turns, turn{calls: []call{slip(look, tools, r)}})
		}
	default: // until the turn limit
		return nil, turn{calls: []call{look}}
	}
	return append(turns, after), after
}

// wrong is the first of the answers that satisfies no check.
func (sc *script) wrong(answers ...string) string {
	for _, answer := range append(answers, "I do not know.", "-", "?") {
		if answer != "" && !sc.couldScore(answer) {
			return answer
		}
	}
	return "" // a check that takes anything would take this as well
}

// distort is the reference answer with other digits: a plausible wrong one. Where more than the answer is judged it
// is none, as the text could be looked for in ways that are not known here.
func (sc *script) distort(gold []turn) string {
	if sc.workspaced || len(gold) == 0 {
		return ""
	}
	right := gold[len(gold)-1].content
	wrong := strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return '0' + (c-'0'+7)%10
		}
		return c
	}, right)
	if wrong == right {
		return ""
	}
	return wrong
}

// looks are calls that change nothing and that every sandbox answers.
var looks = []call{
	{name: "terminal", args: `{"command":"ls"}`, looks: true},
	{name: "search_files", args: `{"pattern":"*","target":"files"}`, looks: true},
	{name: "read_file", args: `{"path":"README.md"}`, looks: true},
	{name: "execute_code", args: `{"code":"import os\nprint(sorted(os.listdir()))"}`, looks: true},
}

// harmless is the first of looks that the tools allow; false when they allow none.
func harmless(tools map[string]bool) (call, bool) {
	at := slices.IndexFunc(looks, func(c call) bool { return tools[c.name] })
	if at < 0 {
		return call{}, false
	}
	return looks[at], true
}

// slip is a call as models get it wrong; which way is drawn.
func slip(c call, tools map[string]bool, r *rand.Rand) call {
	switch r.IntN(6) {
	case 0: // cut off
		cut := max(1, len(c.args)*2/3)
		for cut > 1 && !utf8.RuneStart(c.args[cut]) {
			cut--
		}
		c.args = c.args[:cut]
	case 1: // trailing comma
		c.args = strings.TrimSuffix(c.args, "}") + ",}"
	case 2: // single quotes
		c.args = strings.NewReplacer(`'`, `\'`, `\"`, `"`, `"`, `'`).Replace(c.args)
	case 3:
		c.args = mistyped(c.args)
	case 4:
		return misnamed(c, tools)
	default: // CamelCase
		var name strings.Builder
		for part := range strings.SplitSeq(c.name, "_") {
			name.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
		c.name = name.String()
	}
	return c
}

// mistyped makes a text of the first number, or else a list of the first text.
func mistyped(args string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(args), &fields) != nil {
		return args
	}
	names := slices.Sorted(maps.Keys(fields))
	for _, name := range names {
		if n, ok := fields[name].(float64); ok {
			fields[name] = literal(n)
			return literal(fields)
		}
	}
	for _, name := range names {
		if s, ok := fields[name].(string); ok {
			fields[name] = []string{s}
			return literal(fields)
		}
	}
	return args
}

// invented are names that models use for a tool that is called otherwise. None is so close to a real one that a
// lenient dispatch takes it for that.
var invented = map[string][]string{
	"terminal":     {"bash", "shell"},
	"read_file":    {"cat", "view"},
	"search_files": {"grep", "rg"},
	"write_file":   {"create", "save"},
	"patch":        {"str_replace", "apply_diff"},
	"execute_code": {"python", "ipython"},
	"process":      {"jobs", "ps"},
}

// misnamed is the call under a name that was not offered.
func misnamed(c call, tools map[string]bool) call {
	for _, name := range slices.Concat(invented[c.name], []string{"call_function", "invoke"}) {
		if !tools[name] {
			c.name = name
			break
		}
	}
	return c
}

// think adds reasoning to some of the turns that have none.
func think(turns []turn, r *rand.Rand) []turn {
	turns = slices.Clone(turns)
	for i := range turns {
		t := &turns[i]
		if r.Float64() >= thinkShare || t.reasoning != "" {
			continue
		}
		switch {
		case len(t.calls) == 0:
			t.reasoning = "That should be all. Now the answer."
		case len(t.calls) > 1:
			t.reasoning = "These do not depend on each other, so I can ask for all of them at once."
		case t.calls[0].looks:
			t.reasoning = "I need to see what is there before I change anything."
		default:
			t.reasoning = "I know enough to go on; the next step is " + t.calls[0].name + "."
		}
	}
	return turns
}
