package scripted

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"trajgen/pipeline/episode"
)

// script is what the server keeps of a task.
type script struct {
	id     string
	first  string // text of the first user message
	system string
	verify []episode.Check
	gold   []episode.Step
	said   []string // texts of the assistant messages in the prompt, which are not ours
	turns  int      // the task's own limit, 0 when it has none

	// What an answer alone is judged by, so that a failing episode can steer clear of it.
	exact      []string
	numbers    []episode.Check
	regexes    []*regexp.Regexp
	opaque     bool // an answer check that cannot be evaluated here
	workspaced bool // some check looks at more than the answer
}

// Learn makes the task known. A task that comes again, as it does for every sample, replaces itself.
func (s *Server) Learn(task *episode.Task) {
	if task == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, known := s.byID[task.ID]; known {
		if old.same(task) {
			return
		}
		s.byPrompt[old.first] = slices.DeleteFunc(s.byPrompt[old.first], func(sc *script) bool { return sc == old })
	}
	sc := newScript(task)
	s.byID[task.ID] = sc
	list := append(s.byPrompt[sc.first], sc)
	slices.SortFunc(list, func(a, b *script) int { return strings.Compare(a.id, b.id) })
	s.byPrompt[sc.first] = list
}

// same tells a task that is learnt once more from another one under its id, without looking deep: the dataset hands
// the same slices out for every sample.
func (sc *script) same(task *episode.Task) bool {
	return len(sc.gold) > 0 && len(sc.gold) == len(task.Gold) && &sc.gold[0] == &task.Gold[0] &&
		len(sc.verify) == len(task.Verify) && (len(sc.verify) == 0 || &sc.verify[0] == &task.Verify[0]) &&
		sc.turns == task.Limits.Turns
}

func newScript(task *episode.Task) *script {
	sc := &script{id: task.ID, system: task.System, gold: task.Gold, verify: task.Verify, turns: task.Limits.Turns}
	asked := false
	for _, m := range task.Prompt {
		switch m.Role {
		case "user":
			if !asked {
				sc.first, asked = m.Content, true
			}
		case "assistant":
			sc.said = append(sc.said, m.Content)
		case "system":
			if sc.system == "" {
				sc.system = m.Content
			}
		}
	}
	for _, check := range task.Verify {
		switch {
		case check.Exact != nil:
			sc.exact = append(sc.exact, strings.TrimSpace(*check.Exact))
		case check.Number != nil:
			sc.numbers = append(sc.numbers, check)
		case check.Regex != "":
			re, err := regexp.Compile(check.Regex)
			if err != nil {
				sc.opaque = true
				continue
			}
			sc.regexes = append(sc.regexes, re)
		default:
			sc.workspaced = true
		}
	}
	return sc
}

// find picks the task that a request is about: by its id, or by what the user said first.
func (s *Server) find(id string, req *request) (*script, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if sc, ok := s.byID[id]; ok {
		return sc, true
	}
	list := s.byPrompt[req.firstUser()]
	if len(list) == 0 {
		return nil, false
	}
	system := req.system()
	for _, sc := range list {
		if sc.system == system {
			return sc, true
		}
	}
	for _, sc := range list { // a harness adds its own text around a task's
		if sc.system != "" && strings.Contains(system, sc.system) {
			return sc, true
		}
	}
	return list[0], true
}

var anyNumber = regexp.MustCompile(`-?[0-9][0-9,_]*(\.[0-9]+)?([eE][-+]?[0-9]+)?`)

// couldScore tells whether an answer might satisfy a check; in doubt it might.
func (sc *script) couldScore(answer string) bool {
	if sc.opaque {
		return true
	}
	text := strings.TrimSpace(answer)
	for _, want := range sc.exact {
		if strings.EqualFold(text, want) || want == "" {
			return true
		}
	}
	for _, check := range sc.numbers {
		for _, found := range anyNumber.FindAllString(text, -1) {
			n, err := strconv.ParseFloat(strings.NewReplacer(",", "", "_", "").Replace(found), 64)
			// Wider than any verifier, and every number counts instead of the last one.
			if err != nil || math.Abs(n-*check.Number) <= check.Tolerance+1e-6*max(1, math.Abs(*check.Number)) {
				return true
			}
		}
	}
	return slices.ContainsFunc(sc.regexes, func(re *regexp.Regexp) bool { return re.MatchString(answer) })
}
