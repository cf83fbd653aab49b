package scripted

import (
	"bytes"
	"crypto/sha256"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"trajgen/pipeline/episode"
)

// script is what the server knows of a task. It never changes.
type script struct {
	id, system string
	first      string // text of the first user message
	gold       []episode.Step
	said       []string // texts of the assistant messages in the prompt, which are not ours
	turns      int      // the task's own limit, 0 when it has none

	// What an answer alone is judged by, so that a failing episode can steer clear of it.
	exact      []string
	numbers    []number
	regexes    []string
	workspaced bool // some check looks at more than the answer
}

// number is a check for one.
type number struct{ want, tolerance float64 }

// library has the tasks that a server knows.
type library struct {
	mu       sync.RWMutex // guards the two below
	byID     map[string]*script
	byPrompt map[[16]byte][]*script // by the text of the first user message; sorted by id
}

// Learn makes the task known. A task that comes again, as it does for every sample, replaces itself. Of its files and
// tests nothing is kept.
func (l *library) Learn(task *episode.Task) {
	if task == nil {
		return
	}
	sc := newScript(task)
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.byID[sc.id]; old != nil {
		if reflect.DeepEqual(old, sc) {
			return
		}
		key := promptKey(old.first)
		l.byPrompt[key] = slices.DeleteFunc(l.byPrompt[key], func(other *script) bool { return other == old })
	}
	l.byID[sc.id] = sc
	key := promptKey(sc.first)
	list := append(l.byPrompt[key], sc)
	slices.SortFunc(list, func(a, b *script) int { return strings.Compare(a.id, b.id) })
	l.byPrompt[key] = list
}

// promptKey stands for the text of a first user message.
func promptKey(text string) [16]byte {
	sum := sha256.Sum256([]byte(text))
	return [16]byte(sum[:])
}

// newScript copies all texts: those of a task may hold on to the whole row that it was read from.
func newScript(task *episode.Task) *script {
	sc := &script{id: strings.Clone(task.ID), system: strings.Clone(task.System), turns: task.Limits.Turns}
	for _, step := range task.Gold {
		kept := episode.Step{Content: strings.Clone(step.Content), Reasoning: strings.Clone(step.Reasoning)}
		for _, c := range step.Calls {
			kept.Calls = append(kept.Calls, episode.GoldCall{Name: strings.Clone(c.Name), Arguments: bytes.Clone(c.Arguments)})
		}
		sc.gold = append(sc.gold, kept)
	}
	asked := false
	for _, m := range task.Prompt {
		switch m.Role {
		case "user":
			if !asked {
				sc.first, asked = strings.Clone(m.Content), true
			}
		case "assistant":
			sc.said = append(sc.said, strings.Clone(m.Content))
		case "system":
			if sc.system == "" {
				sc.system = strings.Clone(m.Content)
			}
		}
	}
	for _, check := range task.Verify {
		switch {
		case check.Exact != nil:
			sc.exact = append(sc.exact, strings.Clone(strings.TrimSpace(*check.Exact)))
		case check.Number != nil:
			sc.numbers = append(sc.numbers, number{*check.Number, check.Tolerance})
		case check.Regex != "":
			sc.regexes = append(sc.regexes, strings.Clone(check.Regex))
		default:
			sc.workspaced = true
		}
	}
	return sc
}

// find picks the task that a request is about: by its id, or by what the user said first.
func (l *library) find(id string, req *request) (*script, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if known, ok := l.byID[id]; ok {
		return known, true
	}
	var list []*script
	for i := range req.Messages { // a harness may put examples before the task's own first message
		if m := &req.Messages[i]; m.Role == "user" {
			if list = l.byPrompt[promptKey(m.Content.text)]; len(list) > 0 {
				break
			}
		}
	}
	if len(list) == 0 {
		return nil, false
	}
	system := req.system()
	for _, known := range list {
		if known.system == system {
			return known, true
		}
	}
	for _, known := range list { // a harness adds its own text around a task's
		if known.system != "" && strings.Contains(system, known.system) {
			return known, true
		}
	}
	return list[0], true
}

var anyNumber = regexp.MustCompile(`-?[0-9][0-9,_]*(\.[0-9]+)?([eE][-+]?[0-9]+)?`)

// couldScore reports whether an answer might satisfy a check; in doubt it might.
func (sc *script) couldScore(answer string) bool {
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
			if err != nil || math.Abs(n-check.want) <= check.tolerance+1e-6*max(1, math.Abs(check.want)) {
				return true
			}
		}
	}
	return slices.ContainsFunc(sc.regexes, func(pattern string) bool {
		re, err := regexp.Compile(pattern)
		return err != nil || re.MatchString(answer)
	})
}
