package scripted

import (
	"crypto/sha256"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"trajgen/pipeline/episode"
)

// script is what the server knows of a task. There may be hundreds of thousands, so that each is kept packed.
type script struct {
	id, system string // kept beside the packed rest
	First      string // text of the first user message
	Gold       []episode.Step
	Said       []string // texts of the assistant messages in the prompt, which are not ours
	Turns      int      // the task's own limit, 0 when it has none

	// What an answer alone is judged by, so that a failing episode can steer clear of it.
	Exact      []string
	Numbers    []number
	Regexes    []string
	Workspaced bool // some check looks at more than the answer
}

// number is a check for one.
type number struct{ Want, Tolerance float64 }

// pack makes one text of it, which takes less than the structure and holds on to nothing of the row that the task was
// read from.
func (sc *script) pack() string {
	packed, err := cbor.Marshal(sc)
	if err != nil {
		panic(err) // our own struct
	}
	return string(packed)
}

// unpack allows texts that are not UTF-8: a dataset may have them.
func unpack(packed string) *script {
	sc := &script{}
	if err := anyText.Unmarshal([]byte(packed), sc); err != nil {
		panic(err) // pack wrote it
	}
	return sc
}

var anyText = func() cbor.DecMode {
	mode, err := cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// Learn makes the task known. A task that comes again, as it does for every sample, replaces itself. Of its files and
// tests nothing is kept.
func (s *Server) Learn(task *episode.Task) {
	if task == nil {
		return
	}
	sc := newScript(task)
	known := &learnt{id: strings.Clone(sc.id), system: strings.Clone(sc.system), prompt: promptKey(sc.First), packed: sc.pack()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.byID[known.id]; old != nil {
		if *old == *known {
			return
		}
		s.byPrompt[old.prompt] = slices.DeleteFunc(s.byPrompt[old.prompt], func(l *learnt) bool { return l == old })
	}
	s.byID[known.id] = known
	list := append(s.byPrompt[known.prompt], known)
	slices.SortFunc(list, func(a, b *learnt) int { return strings.Compare(a.id, b.id) })
	s.byPrompt[known.prompt] = list
}

// learnt is a task as it is kept.
type learnt struct {
	id, system string
	prompt     [16]byte
	packed     string
}

func (l *learnt) script() *script {
	sc := unpack(l.packed)
	sc.id, sc.system = l.id, l.system
	return sc
}

// promptKey stands for the text of a first user message.
func promptKey(text string) [16]byte {
	sum := sha256.Sum256([]byte(text))
	return [16]byte(sum[:])
}

func newScript(task *episode.Task) *script {
	sc := &script{id: task.ID, system: task.System, Gold: task.Gold, Turns: task.Limits.Turns}
	asked := false
	for _, m := range task.Prompt {
		switch m.Role {
		case "user":
			if !asked {
				sc.First, asked = m.Content, true
			}
		case "assistant":
			sc.Said = append(sc.Said, m.Content)
		case "system":
			if sc.system == "" {
				sc.system = m.Content
			}
		}
	}
	for _, check := range task.Verify {
		switch {
		case check.Exact != nil:
			sc.Exact = append(sc.Exact, strings.TrimSpace(*check.Exact))
		case check.Number != nil:
			sc.Numbers = append(sc.Numbers, number{*check.Number, check.Tolerance})
		case check.Regex != "":
			sc.Regexes = append(sc.Regexes, check.Regex)
		default:
			sc.Workspaced = true
		}
	}
	return sc
}

// find picks the task that a request is about: by its id, or by what the user said first.
func (s *Server) find(id string, req *request) (*script, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if known, ok := s.byID[id]; ok {
		return known.script(), true
	}
	var list []*learnt
	for i := range req.Messages { // a harness may put examples before the task's own first message
		if m := &req.Messages[i]; m.Role == "user" {
			if list = s.byPrompt[promptKey(m.Content.text)]; len(list) > 0 {
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
			return known.script(), true
		}
	}
	for _, known := range list { // a harness adds its own text around a task's
		if known.system != "" && strings.Contains(system, known.system) {
			return known.script(), true
		}
	}
	return list[0].script(), true
}

var anyNumber = regexp.MustCompile(`-?[0-9][0-9,_]*(\.[0-9]+)?([eE][-+]?[0-9]+)?`)

// couldScore tells whether an answer might satisfy a check; in doubt it might.
func (sc *script) couldScore(answer string) bool {
	text := strings.TrimSpace(answer)
	for _, want := range sc.Exact {
		if strings.EqualFold(text, want) || want == "" {
			return true
		}
	}
	for _, check := range sc.Numbers {
		for _, found := range anyNumber.FindAllString(text, -1) {
			n, err := strconv.ParseFloat(strings.NewReplacer(",", "", "_", "").Replace(found), 64)
			// Wider than any verifier, and every number counts instead of the last one.
			if err != nil || math.Abs(n-check.Want) <= check.Tolerance+1e-6*max(1, math.Abs(check.Want)) {
				return true
			}
		}
	}
	return slices.ContainsFunc(sc.Regexes, func(pattern string) bool {
		re, err := regexp.Compile(pattern)
		return err != nil || re.MatchString(answer)
	})
}
