package scripted

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync"

	"trajgen/pipeline/episode"
)

// script is what the server knows of a task. It never changes.
type script struct {
	id, system string
	first      string // text of the first user message
	gold       []episode.Step
	said       []string  // texts of the assistant messages in the prompt, which are not ours
	turns      int       // the task's own limit, 0 when it has none
	subagents  []*script // by their goals, which are first here
	subagent   bool

	// checks are those of the answer alone, so that a failing episode can steer clear of them.
	checks     []episode.Check
	workspaced bool // some check looks at more than the answer
}

// library has the tasks that a server knows.
type library struct {
	mu      sync.RWMutex // guards the two below
	byID    map[string]*script
	byFirst map[string][]*script // by the text of the first user message; sorted by id
}

// Learn makes the task known. A task that comes again replaces itself. Of its files and tests nothing is kept. One under the id of an
// episode is what that episode plays instead of its own task's.
func (l *library) Learn(task *episode.Task) {
	sc := newScript(task)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(sc.id)
	l.byID[sc.id] = sc
	for _, each := range append(sc.subagents, sc) {
		list := append(l.byFirst[each.first], each)
		slices.SortFunc(list, func(a, b *script) int { return strings.Compare(a.id, b.id) })
		l.byFirst[each.first] = list
	}
}

// Forget makes the task unknown again.
func (l *library) Forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(id)
}

// forget is called with the lock held.
func (l *library) forget(id string) {
	old := l.byID[id]
	if old == nil {
		return
	}
	delete(l.byID, id)
	for _, each := range append(old.subagents, old) {
		l.byFirst[each.first] = slices.DeleteFunc(l.byFirst[each.first], func(other *script) bool { return other == each })
		if len(l.byFirst[each.first]) == 0 {
			delete(l.byFirst, each.first)
		}
	}
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
	for goal, gold := range task.Subagents {
		prompt := []episode.Message{{Role: "user", Content: goal}}
		sub := newScript(&episode.Task{ID: task.ID + "\x00" + goal, Prompt: prompt, Gold: gold})
		sub.subagent = true
		sc.subagents = append(sc.subagents, sub)
	}
	// The longest first: a goal may begin with another.
	slices.SortFunc(sc.subagents, func(a, b *script) int {
		return cmp.Or(len(b.first)-len(a.first), strings.Compare(a.first, b.first))
	})
	asked := false
	for _, m := range task.Prompt {
		switch {
		case m.Role == "user" && !asked:
			sc.first, asked = strings.Clone(m.Content), true
		case m.Role == "assistant":
			sc.said = append(sc.said, strings.Clone(m.Content))
		}
	}
	for _, check := range task.Verify {
		if kept, ok := ofAnswer(check); ok {
			sc.checks = append(sc.checks, kept)
		} else {
			sc.workspaced = true
		}
	}
	return sc
}

// find picks the task that a request is about: by its id, where that of the episode comes before that of the task, or by what the
// user said first.
func (l *library) find(episodeID, taskID string, req *request) (*script, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, id := range []string{episodeID, taskID} {
		if known, ok := l.byID[id]; ok {
			return known.asked(req), true
		}
	}
	var list []*script
	for i := range req.Messages { // a harness may put examples before the task's own first message
		if m := &req.Messages[i]; m.Role == "user" && len(list) == 0 {
			list = l.byFirst[m.Content.text]
		}
	}
	told := req.firstUser()
	for at := strings.LastIndex(told, "\n\n"); at >= 0 && len(list) == 0; at = strings.LastIndex(told[:at], "\n\n") {
		list = l.byFirst[told[:at]] // a subagent's goal stands in front of what else it is told
	}
	if len(list) == 0 {
		return nil, false
	}
	system := req.system()
	best := slices.IndexFunc(list, func(known *script) bool { return known.system == system })
	if best < 0 { // a harness adds its own text around a task's
		best = slices.IndexFunc(list, func(known *script) bool { return known.system != "" && strings.Contains(system, known.system) })
	}
	return list[max(0, best)], true
}

// asked is the script of a task, or of the subagent that a request is made for: what that was told begins with its goal.
func (sc *script) asked(req *request) *script {
	told := req.firstUser()
	for _, sub := range sc.subagents {
		if told != sc.first && strings.HasPrefix(told, sub.first) {
			return sub
		}
	}
	return sc
}
