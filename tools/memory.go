package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools/threats"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "memory", Toolset: memoryToolset, NoSandbox: true,
		Description: "Notes that outlast this conversation. Target user holds who the user is and what they prefer (1375 " +
			"characters), target memory everything else worth knowing next time: the environment, conventions, lessons (2200 " +
			"characters). add writes a new entry; replace and remove find the one entry that contains old_text. Save what " +
			"will still be true later, in a sentence or two; not the progress of the task at hand. What was remembered when " +
			"the conversation began stands in the system prompt and does not change there.",
	}, memory))
}

type memoryArgs struct {
	Action  string `json:"action" alias:"operation" doc:"What to do." enum:"add,replace,remove"`
	Target  string `json:"target" doc:"Which notes." enum:"memory,user"`
	Content string `json:"content,omitempty" alias:"text,entry" doc:"The entry to write; for add and replace."`
	OldText string `json:"old_text,omitempty" alias:"old_string,old_str,old" doc:"A part of the entry to replace or remove that no other entry has."`
}

// memoryLock guards the memory of an episode, which concurrent calls of execute_code may change.
type memoryLock struct {
	mu     sync.Mutex
	memory *episode.Memory
}

// notes is one of the two lists.
type notes struct {
	target  string
	limit   int
	entries *[]string
}

type memoryResult struct {
	Success    bool     `json:"success"`
	Target     string   `json:"target"`
	Entries    []string `json:"entries"`
	Usage      string   `json:"usage"`
	EntryCount int      `json:"entry_count"`
	Message    string   `json:"message"`
}

func memory(_ context.Context, env *registry.Env, args memoryArgs) (any, error) {
	state := registry.State(env.Session, "tools.memory", func() *memoryLock {
		if given, ok := registry.Service[*episode.Memory](env.Session); ok {
			return &memoryLock{memory: given}
		}
		return &memoryLock{memory: &episode.Memory{}}
	})
	state.mu.Lock()
	defer state.mu.Unlock()
	list := notes{"memory", episode.MaxMemory, &state.memory.Memory}
	if args.Target == "user" {
		list = notes{"user", episode.MaxUserMemory, &state.memory.User}
	}
	message, err := list.apply(args)
	if err != nil {
		return nil, err
	}
	return memoryResult{
		Success: true, Target: list.target, Entries: append([]string{}, *list.entries...), Usage: list.usage(),
		EntryCount: len(*list.entries), Message: message,
	}, nil
}

// apply changes the list or leaves it unchanged. It never changes entries in place, because they may belong to the task.
func (n notes) apply(args memoryArgs) (message string, err error) {
	content := strings.TrimSpace(args.Content)
	if args.Action != "remove" {
		if err := checkNote(content, args.Action); err != nil {
			return "", err
		}
	}
	if args.Action == "add" {
		if slices.Contains(*n.entries, content) {
			return "The entry is there already; nothing was added.", nil
		}
		return "Entry added.", n.keep(append(slices.Clone(*n.entries), content))
	}
	at, err := n.find(args.OldText)
	if err != nil {
		return "", err
	}
	rest := slices.Delete(slices.Clone(*n.entries), at, at+1)
	switch {
	case args.Action == "remove":
		*n.entries = rest
		return "Entry removed.", nil
	case slices.Contains(rest, content):
		*n.entries = rest
		return "Another entry says the same; the old one was removed.", nil
	}
	return "Entry replaced.", n.keep(slices.Insert(rest, at, content))
}

func checkNote(content, action string) error {
	switch {
	case content == "" && action == "replace":
		return registry.Failf("no_content", "content is empty: write the new entry, or use action remove")
	case content == "":
		return registry.Failf("no_content", "content is empty: write the entry to add")
	case slices.Contains(strings.Split(content, "\n"), "§"):
		return registry.Failf("separator", "content has a line with nothing but §, which separates entries: add them one by one")
	}
	if found := threats.Scan(content); len(found) > 0 {
		return &registry.Failure{
			Class: "unsafe_content", Message: fmt.Sprintf("not saved: the text looks like %s (%q), and whatever is remembered goes "+
				"into a later system prompt; write down the fact alone", strings.ReplaceAll(found[0].ID, "_", " "), found[0].Text),
			Extra: map[string]any{"findings": found},
		}
	}
	return nil
}

// keep replaces the entries if the new ones fit.
func (n notes) keep(entries []string) error {
	if size := noteSize(entries); size > n.limit {
		return n.failure("memory_full", *n.entries, "%s would hold %d characters, over its limit of %d: replace or remove entries first, or "+
			"say it shorter", n.target, size, n.limit)
	}
	*n.entries = entries
	return nil
}

// find returns the one entry that contains a text.
func (n notes) find(text string) (int, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, n.failure("no_old_text", *n.entries, "old_text is empty: give a part of the entry that is meant")
	}
	var matches []int
	for i, entry := range *n.entries {
		if strings.Contains(entry, text) {
			matches = append(matches, i)
		}
	}
	switch len(matches) {
	case 1:
		return matches[0], nil
	case 0:
		return 0, n.failure("not_found", *n.entries, "no entry of %s contains old_text", n.target)
	}
	// An entry that equals the text wins over entries that contain it.
	if whole := slices.Index(*n.entries, text); whole >= 0 {
		return whole, nil
	}
	found := make([]string, len(matches))
	for i, at := range matches {
		found[i] = (*n.entries)[at]
	}
	return 0, n.failure("ambiguous", found, "old_text is in %d entries of %s: give more of the one that is meant", len(matches), n.target)
}

// failure shows the entries, so that the model can correct its call.
func (n notes) failure(class string, entries []string, format string, args ...any) error {
	f := registry.Failf(class, format, args...)
	f.Extra = map[string]any{"target": n.target, "entries": append([]string{}, entries...), "usage": n.usage()}
	return f
}

func (n notes) usage() string {
	return fmt.Sprintf("%d/%d characters", noteSize(*n.entries), n.limit)
}

// noteSize counts the characters of the entries and their separators.
func noteSize(entries []string) int {
	return utf8.RuneCountInString(strings.Join(entries, episode.MemorySeparator))
}
