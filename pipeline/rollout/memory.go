package rollout

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"trajgen/pipeline/episode"
)

// memoryTool is the tool that an episode's memory is for.
const memoryTool = "memory"

// newMemory is the memory of an episode that has the memory tool. It begins as the task's.
func newMemory(task *episode.Task) *episode.Memory {
	if task.Memory == nil {
		return &episode.Memory{}
	}
	return &episode.Memory{Memory: slices.Clone(task.Memory.Memory), User: slices.Clone(task.Memory.User)}
}

// recall is the part of the system prompt that shows the memory as it is when the episode begins. What the agent
// writes down later changes nothing here, so that the beginning of the conversation stays what a server has cached.
func recall(memory *episode.Memory) string {
	if memory == nil || len(memory.Memory)+len(memory.User) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString("What you remember from earlier sessions, as it was when this one began:")
	for _, part := range []struct {
		heading string
		limit   int
		entries []string
	}{
		{"Your notes (target memory", episode.MaxMemory, memory.Memory},
		{"The user (target user", episode.MaxUserMemory, memory.User},
	} {
		if len(part.entries) == 0 {
			continue
		}
		joined := strings.Join(part.entries, episode.MemorySeparator)
		fmt.Fprintf(&text, "\n\n%s, %d of %d characters):\n%s", part.heading, utf8.RuneCountInString(joined), part.limit, joined)
	}
	return text.String()
}
