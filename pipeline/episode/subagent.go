package episode

import (
	"fmt"
	"iter"
	"strings"
)

// The roles of subagents.
const (
	RoleLeaf         = "leaf"
	RoleOrchestrator = "orchestrator" // which may have subagents of its own
)

// Origin is where a subagent comes from: the call of delegate_task that began it.
type Origin struct {
	Parent string `json:"parent"` // id of the episode that made the call
	Call   string `json:"call"`   // id of the call
	Turn   int    `json:"turn"`   // the parent's, in which the call was made
	Depth  int    `json:"depth"`  // from 1
	Role   string `json:"role"`
	// RootReward is the verdict on the whole tree, whose root alone is judged.
	RootReward *float64 `json:"root_reward"`
}

// Child is the key of a subagent, which has draws and seeds of its own: it was the task-th of a call, which was the call-th
// of its turn.
func (k Key) Child(turn, call, task int) Key {
	at := fmt.Sprintf("%d-%d-%d", turn, call, task)
	if k.Path != "" {
		at = k.Path + "-" + at
	}
	k.Path = at
	return k
}

// PathOf is the Path of the key with that id.
func PathOf(id string) string {
	_, path, _ := strings.Cut(id, "-")
	return path
}

// RootOf is the id of the root of an episode's tree: of the episode itself, unless it is a subagent.
func RootOf(id string) string {
	root, _, _ := strings.Cut(id, "-")
	return root
}

// Tree yields the episode and behind it the trees of its subagents, in the order in which their calls were made.
func (ep *Episode) Tree() iter.Seq[*Episode] {
	return func(yield func(*Episode) bool) { ep.walk(yield) }
}

func (ep *Episode) walk(yield func(*Episode) bool) bool {
	if !yield(ep) {
		return false
	}
	for _, child := range ep.Children {
		if !child.walk(yield) {
			return false
		}
	}
	return true
}
