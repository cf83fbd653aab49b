package sites

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// board is a task board whose pages a script draws. Tasks that are locked refuse a change, after the script showed it already.
type board struct {
	base
	Tasks    []*boardTask   `json:"tasks"`
	Settings map[string]any `json:"settings"`
	next     int
}

type boardTask struct {
	ID       int    `json:"id"`
	Title    string `json:"title"`
	Assignee string `json:"assignee"`
	Lane     string `json:"lane"` // To do, Doing, Done
	Locked   bool   `json:"locked"`
}

var (
	boardVerbs  = []string{"Order", "Repair", "Paint", "Count", "Label", "Move", "Clean", "Inspect"}
	boardThings = []string{"the shelves", "the north door", "the invoices", "the ladders", "the pump", "the signs", "the boxes",
		"the stairs"}
	boardPeople = []string{"Ines", "Tomasz", "Wanda", "Yusuf"}
	lanes       = []string{"To do", "Doing", "Done"}
)

func openBoard(seed uint64) world {
	b := &board{base: newBase("spa", seed), Settings: map[string]any{"name": "Workshop", "compact": false}, next: 1}
	for i, n := range b.rand.Perm(len(boardVerbs) * len(boardThings))[:57] {
		title := boardVerbs[n/len(boardThings)] + " " + boardThings[n%len(boardThings)]
		b.Tasks = append(b.Tasks, &boardTask{ID: b.next, Title: title, Assignee: pick(&b.base, boardPeople),
			Lane: lanes[b.rand.IntN(2)], Locked: i%9 == 4})
		b.next++
	}
	shell := func(w http.ResponseWriter, r *http.Request) { b.show(w, r, 200, "shell", "Board", b.seed) }
	for _, path := range []string{"/{$}", "/tasks", "/task/{id}", "/settings"} {
		b.HandleFunc("GET "+path, shell)
	}
	b.HandleFunc("GET /api/tasks", b.list)
	b.HandleFunc("POST /api/tasks", b.make)
	b.HandleFunc("GET /api/tasks/{id}", func(w http.ResponseWriter, r *http.Request) {
		if t := b.find(r); t != nil {
			reply(w, 200, t)
			return
		}
		reply(w, 404, map[string]string{"error": "There is no such task."})
	})
	b.HandleFunc("PATCH /api/tasks/{id}", b.change)
	b.HandleFunc("DELETE /api/tasks/{id}", b.remove)
	b.HandleFunc("GET /api/settings", func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, b.Settings) })
	b.HandleFunc("PUT /api/settings", func(w http.ResponseWriter, r *http.Request) {
		var given struct {
			Name    string
			Compact bool
		}
		if err := json.NewDecoder(r.Body).Decode(&given); err != nil || strings.TrimSpace(given.Name) == "" {
			reply(w, 422, map[string]string{"error": "The board needs a name."})
			return
		}
		b.Settings = map[string]any{"name": clip(given.Name, 100), "compact": given.Compact}
		reply(w, 200, b.Settings)
	})
	b.serve()
	return b
}

func (b *board) state() any { return b }

// reply writes JSON.
func reply(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("reply: %v", err)) // of our own types
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

func (b *board) find(r *http.Request) *boardTask {
	for _, t := range b.Tasks {
		if strconv.Itoa(t.ID) == r.PathValue("id") {
			return t
		}
	}
	return nil
}

// list gives some of the tasks that a filter leaves.
func (b *board) list(w http.ResponseWriter, r *http.Request) {
	const some = 15
	from, _ := strconv.Atoi(r.FormValue("from"))
	found := []*boardTask{}
	for _, t := range b.Tasks {
		if strings.Contains(strings.ToLower(t.Title+" "+t.Assignee), strings.ToLower(r.FormValue("q"))) {
			found = append(found, t)
		}
	}
	from = max(0, min(from, len(found)))
	to := min(from+some, len(found))
	reply(w, 200, map[string]any{"tasks": found[from:to], "all": len(found)})
}

func (b *board) make(w http.ResponseWriter, r *http.Request) {
	var given boardTask
	if err := json.NewDecoder(r.Body).Decode(&given); err != nil || strings.TrimSpace(given.Title) == "" || len(b.Tasks) >= 200 {
		reply(w, 422, map[string]string{"error": "A task needs a title."})
		return
	}
	t := &boardTask{ID: b.next, Title: clip(given.Title, 200), Assignee: "", Lane: lanes[0]}
	b.next++
	b.Tasks = append([]*boardTask{t}, b.Tasks...)
	reply(w, 201, t)
}

func (b *board) change(w http.ResponseWriter, r *http.Request) {
	var given struct{ Title, Assignee, Lane *string }
	t := b.find(r)
	switch err := json.NewDecoder(r.Body).Decode(&given); {
	case t == nil || err != nil:
		reply(w, 404, map[string]string{"error": "There is no such task."})
		return
	case t.Locked:
		reply(w, 409, map[string]string{"error": "This task is locked by the foreman. Your change was taken back."})
		return
	}
	for _, field := range []struct{ to, from *string }{{&t.Title, given.Title}, {&t.Assignee, given.Assignee}, {&t.Lane,
		given.Lane}} {
		if field.from != nil {
			*field.to = clip(*field.from, 200)
		}
	}
	reply(w, 200, t)
}

func (b *board) remove(w http.ResponseWriter, r *http.Request) {
	for i, t := range b.Tasks {
		if strconv.Itoa(t.ID) == r.PathValue("id") && !t.Locked {
			b.Tasks = append(b.Tasks[:i:i], b.Tasks[i+1:]...)
			reply(w, 200, t)
			return
		}
	}
	reply(w, 409, map[string]string{"error": "This task cannot be removed."})
}
