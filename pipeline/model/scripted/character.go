package scripted

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"trajgen/pipeline/episode"
)

// A character plays the reference solution until a call does not get what it got in the episode without faults. What it does then, and
// with what chance, is known beforehand, so that what trajgen reliability finds can be held against it.
type character struct {
	name   string
	chance []float64
}

// The characters. A result is loud that says that something is wrong, and silent that is wrong without saying so. All go on after a silent
// result, with the wrong value for the true one in all that they write; but for the checker.
const (
	retrier  = "retrier"  // loud: makes the call again, up to three times, or gives up
	giverUp  = "giver_up" // loud: gives up
	gullible = "gullible" // loud: goes on as if the call had worked, or makes it again
	checker  = "checker"  // silent: makes the call again, and takes the second result, or keeps the first; loud: as the retrier, by its second chance
	switcher = "switcher" // loud: another tool for the same thing, or gives up
)

// characters are examples of all of them, with as many chances as each takes.
var characters = []string{retrier + ":0.9", giverUp, gullible + ":0.5", checker + ":0.8,0.9", switcher + ":0.9"}

// maxRetries is how often a character makes a call again that goes on to fail.
const maxRetries = 3

// parseCharacter reads NAME or NAME:CHANCE,... It is nil for other policies.
func parseCharacter(policy string) (*character, error) {
	name, list, has := strings.Cut(policy, ":")
	at := slices.IndexFunc(characters, func(example string) bool { known, _, _ := strings.Cut(example, ":"); return known == name })
	if at < 0 {
		return nil, nil
	}
	_, example, takes := strings.Cut(characters[at], ":")
	c := &character{name: name}
	wrong := fmt.Errorf("policy %q (want %s, each number from 0 to 1)", policy, characters[at])
	if has != takes || strings.Count(list, ",") != strings.Count(example, ",") {
		return nil, wrong
	}
	for text := range strings.SplitSeq(list, ",") {
		chance, err := strconv.ParseFloat(text, 64)
		if takes && (err != nil || !(chance >= 0 && chance <= 1)) {
			return nil, wrong
		}
		c.chance = append(c.chance, chance)
	}
	return c, nil
}

// meeting is an episode of a character as far as it has gone. It is worked out anew at each request, from the conversation alone.
type meeting struct {
	*character
	tools     map[string]bool
	coin      func(ordinal int) float64
	want, got map[[2]int]string // results by the places of turn and call: of the episode without faults, and of this one
	known     bool              // what is right, from an episode without faults

	ordinal  int    // calls so far
	believed []swap // wrong values, which the character takes for true
}

// attempt is a call of the reference solution, as it is or in another way.
type attempt struct {
	call
	place    [2]int // of the reference solution's call
	tries    int    // before this one
	switched bool
	first    *string // a result that this call checks
}

// acts reports whether a call writes a file or starts a process: it is not made again to see whether its result was true.
func (a attempt) acts() bool {
	var of struct{ Background bool }
	return a.name == "write_file" || a.name == "patch" || json.Unmarshal([]byte(a.args), &of) == nil && of.Background
}

// turn is the turn of an episode that has so many before it. Who gave up says so again.
func (m *meeting) turn(gold []turn, position int, giveUp turn) turn {
	place := 0
	for g, t := range gold {
		t = m.copied(t)
		var open []attempt
		for i, c := range t.calls {
			open = append(open, attempt{call: c, place: [2]int{g, i}})
		}
		for {
			if place == position || g == len(gold)-1 {
				return t
			}
			next, goesOn := m.see(place, open)
			place++
			switch {
			case !goesOn:
				return giveUp
			case len(next) == 0:
			default:
				open, t = next, turn{}
				for _, a := range next {
					t.calls = append(t.calls, a.call)
				}
				continue
			}
			break
		}
	}
	return giveUp // a reference solution has an end
}

// see looks at the results of a turn, and says which calls come next, before the reference solution goes on, or that it ends here.
func (m *meeting) see(place int, open []attempt) (next []attempt, goesOn bool) {
	for i, a := range open {
		coin := m.coin(m.ordinal)
		m.ordinal++
		got, told := m.got[[2]int{place, i}]
		want, known := m.want[a.place]
		switch {
		case !told: // the harness left it out: it was right
		case a.first != nil:
			if coin >= m.chance[1] {
				got = *a.first
			}
			m.believe(want, got)
		case got == want, a.switched && !loud(got, ""):
		case !a.switched && m.known && !known: // a call that the episode without faults did not make
		case a.switched || loud(got, want):
			again, ok := m.suffer(a, coin)
			if !ok {
				return nil, false
			}
			if again != nil {
				next = append(next, *again)
			}
		case !known: // and nothing to see
		case m.name == checker && !a.acts() && coin < m.chance[0]:
			next = append(next, attempt{call: a.call, place: a.place, first: &got})
		default:
			m.believe(want, got)
		}
	}
	return next, true
}

// suffer is what comes of a loud result: another attempt, none, or the end.
func (m *meeting) suffer(a attempt, coin float64) (again *attempt, goesOn bool) {
	retry := &attempt{call: a.call, place: a.place, tries: a.tries + 1}
	tired := a.tries == maxRetries
	switch m.name {
	case retrier:
		return retry, coin < m.chance[0] && !tired
	case checker:
		return retry, coin < m.chance[1] && !tired
	case gullible:
		if coin < m.chance[0] || tired {
			return nil, true
		}
		return retry, true
	case switcher:
		others := map[string]bool{}
		for name := range m.tools {
			others[name] = name != a.name
		}
		other, ok := translateCall(episode.GoldCall{Name: a.name, Arguments: []byte(a.args)}, others)
		return &attempt{call: other, place: a.place, switched: true}, ok && !a.switched && coin < m.chance[0]
	}
	return nil, false
}

// meet is the turn of a character.
func (s *Server) meet(sc *script, req *request, who string, gold []turn, position int) (turn, *refusal) {
	m := meeting{character: s.character, tools: req.tools, got: results(req.Messages, sc, who)}
	m.coin = func(ordinal int) float64 {
		sum := hash("character", fmt.Sprint(s.cfg.Seed), who, fmt.Sprint(ordinal))
		return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
	}
	clean := s.clean.Load()
	switch {
	case clean != nil && *clean == nil:
		return gold[min(position, len(gold)-1)], nil
	case clean != nil && len(m.got) > 0:
		owner := ownID(req.Messages)
		recorded, ok := (*clean)(owner)
		if !ok {
			return turn{}, invalid("unknown_episode", fmt.Sprintf("policy %s does not know what the calls %s of task %q should get (want the "+
				"episode in the run that it replays: of the same dataset, samples and seed)", s.cfg.Policy, owner, sc.id))
		}
		m.known, m.want = true, results(asSent(recorded), sc, "")
	}
	return m.turn(gold, position, turn{content: sc.wrong("I give up.")}), nil
}

// Remember tells a server what is right: clean gives the messages of an episode without faults by the name that the ids of its calls
// have in common, see Owners. Nil says that all episodes are without faults. A server that was told nothing sees what is loud.
func (s *Server) Remember(clean func(owner string) ([]episode.Message, bool)) { s.clean.Store(&clean) }

// Owners are the names that the ids of an episode's calls can have in common, and those of its twins: as they are, and as a server
// gives them that knows the episode by its header, or by the seed of its first request.
func Owners(ep *episode.Episode) (all []string) {
	if id := ownID(asSent(ep.Messages)); id != "" {
		all = append(all, id)
	}
	return append(all, digest("episode", ep.ID), digest("seed", fmt.Sprint(ep.RequestSeed(0))))
}

// asSent are recorded messages as far as the server looks at them.
func asSent(messages []episode.Message) []message {
	all := make([]message, len(messages))
	for i, m := range messages {
		all[i] = message{Role: m.Role, Content: content{text: m.Content, given: true}, ToolCallID: m.ToolCallID}
		for _, c := range m.Calls {
			all[i].ToolCalls = append(all[i].ToolCalls, toolCall{ID: c.ID})
		}
	}
	return all
}
