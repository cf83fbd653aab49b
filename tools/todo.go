package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"trajgen/registry"
)

// Bounds of the list.
const (
	maxTodos       = 256
	maxTodoContent = 4000
	maxTodoID      = 100
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "todo", Toolset: todoToolset, NoSandbox: true,
		Description: "Your task list for this conversation. Use it for work of three steps or more. Without todos it returns " +
			"the list. With todos it replaces the list, or with merge=true updates items by id and appends new ones (then " +
			"content and status may be left out for known ids). Keep one item in_progress at a time and mark items " +
			"completed at once. Returns the whole list and a summary.",
	}, todo))
}

type todoArgs struct {
	Todos *[]todoArg `json:"todos,omitempty" alias:"items,todo_list,tasks" doc:"The items to write; leave out to read the list." maxitems:"256"`
	Merge bool       `json:"merge,omitempty" doc:"Update by id instead of replacing the whole list." default:"false"`
}

type todoArg struct {
	_ struct{} `idle:"activeForm,priority"`

	ID      string `json:"id" alias:"todo_id" doc:"Short unique name of the item."`
	Content string `json:"content,omitempty" alias:"text,task,title,description" doc:"What is to be done, at most 4000 characters."`
	Status  string `json:"status,omitempty" alias:"state" doc:"State; pending for a new item without one." enum:"pending,in_progress,completed,cancelled"`
}

type todoItem struct {
	ID      string `json:"id"`
	Content string `json:"content"`
	Status  string `json:"status"`
}

type todoList struct {
	mu    sync.Mutex // guards items
	items []todoItem
}

type todoResult struct {
	Todos   []todoItem  `json:"todos"`
	Summary todoSummary `json:"summary"`
}

type todoSummary struct {
	Total      int `json:"total"`
	Pending    int `json:"pending"`
	InProgress int `json:"in_progress"`
	Completed  int `json:"completed"`
	Cancelled  int `json:"cancelled"`
}

func todo(_ context.Context, env *registry.Env, args todoArgs) (any, error) {
	list := registry.State(env.Session, "tools.todo", func() *todoList { return &todoList{} })
	list.mu.Lock()
	defer list.mu.Unlock()
	if args.Todos != nil {
		var before []todoItem
		if args.Merge {
			before = list.items
		}
		items, err := mergeTodos(before, *args.Todos)
		if err != nil {
			return nil, err
		}
		list.items = items
	}
	count := map[string]int{}
	for _, item := range list.items {
		count[item.Status]++
	}
	return todoResult{append([]todoItem{}, list.items...), todoSummary{
		len(list.items), count["pending"], count["in_progress"], count["completed"], count["cancelled"],
	}}, nil
}

// mergeTodos applies all changes or none.
func mergeTodos(before []todoItem, changes []todoArg) ([]todoItem, error) {
	items := slices.Clone(before)
	var wrong []string
	for i, change := range changes {
		id := strings.TrimSpace(change.ID)
		content := strings.TrimSpace(change.Content)
		at := slices.IndexFunc(items, func(item todoItem) bool { return item.ID == id })
		switch {
		case id == "":
			wrong = append(wrong, fmt.Sprintf("todos[%d] has no id", i))
			continue
		case utf8.RuneCountInString(id) > maxTodoID:
			wrong = append(wrong, fmt.Sprintf("todos[%d].id has over %d characters", i, maxTodoID))
			continue
		case utf8.RuneCountInString(content) > maxTodoContent:
			wrong = append(wrong, fmt.Sprintf("todos[%d].content has over %d characters", i, maxTodoContent))
			continue
		case at < 0 && content == "":
			wrong = append(wrong, fmt.Sprintf("todos[%d] (%s) is new and has no content", i, id))
			continue
		case at < 0:
			items = append(items, todoItem{ID: id, Status: "pending"})
			at = len(items) - 1
		}
		if content != "" {
			items[at].Content = content
		}
		if change.Status != "" {
			items[at].Status = change.Status
		}
	}
	if len(items) > maxTodos {
		wrong = append(wrong, fmt.Sprintf("the list would have %d items, over the limit of %d", len(items), maxTodos))
	}
	if len(wrong) > 0 {
		return nil, registry.Failf("invalid_todos", "nothing was changed: %s", strings.Join(wrong, "; "))
	}
	return items, nil
}
