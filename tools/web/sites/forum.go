package sites

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// forum has threads in boards. The moderator has a queue of what members reported.
type forum struct {
	base
	Threads []*thread `json:"threads"`
	next    int       // number of the next post
}

type thread struct {
	ID     int     `json:"id"`
	Board  string  `json:"board"`
	Title  string  `json:"title"`
	Locked bool    `json:"locked"`
	Pinned bool    `json:"pinned"`
	Posts  []*post `json:"posts"`
}

type post struct {
	ID       int            `json:"id"`
	Author   string         `json:"author"`
	Text     string         `json:"text"`
	Score    int            `json:"score"`
	Votes    map[string]int `json:"votes"`    // of visitors: 1 or -1
	Reported []string       `json:"reported"` // reasons
	Removed  bool           `json:"removed"`
}

var (
	boards      = []string{"Bread", "Gardening", "Repairs"}
	forumPeople = []string{"ines", "tomasz", "wanda", "yusuf", "olive", "per"}
	subjects    = map[string][]string{
		"Bread": {"My sourdough does not rise", "Best flour for rye bread?", "How long do you knead?",
			"Baking without an oven"},
		"Gardening": {"Snails in the lettuce", "When to prune apple trees", "Compost smells of vinegar",
			"Tomatoes on a north balcony"},
		"Repairs": {"Zip of a rucksack is stuck", "Kettle trips the fuse", "Squeaking door, oil does not help",
			"Glue for a wooden chair"},
	}
	remarks = []string{
		"I had the same last year. Patience was all it took.", "Try it with half of the water first.",
		"Where do you live? The weather matters.",
		"That never worked for me, but a neighbour swears by it.", "Use what you have at home before you buy anything.",
		"Take a picture, then we can say more.", "I would ask in a shop, they see this each day.",
	}
)

const advertisement = "Cheap watches!!! Click http://watches.example and win."

func openForum(seed uint64) world {
	f := &forum{base: newBase("forum", seed), next: 1}
	f.users = map[string]string{"ada": "lovelace", "mod": "gavel"}
	for _, board := range boards {
		for _, subject := range subjects[board] {
			t := &thread{ID: len(f.Threads) + 1, Board: board, Title: subject}
			for range 2 + f.rand.IntN(4) {
				f.post(t, pick(&f.base, forumPeople), pick(&f.base, remarks)).Score = f.rand.IntN(12) - 2
			}
			f.Threads = append(f.Threads, t)
		}
	}
	for range 2 {
		spam := f.post(pick(&f.base, f.Threads), "winner"+strconv.Itoa(f.rand.IntN(90)+10), advertisement)
		spam.Reported, spam.Score = []string{"It is an advertisement."}, -3
	}
	innocent := f.Threads[f.rand.IntN(len(f.Threads))].Posts[0]
	innocent.Reported = []string{"I do not like the tone."}
	f.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		f.show(w, r, 200, "home", "Boards", map[string]any{"Boards": boards, "Threads": f.Threads})
	})
	f.HandleFunc("GET /thread/{thread}", f.thread)
	f.HandleFunc("GET /new", func(w http.ResponseWriter, r *http.Request) {
		if _, ok := f.member(w, r); ok {
			f.show(w, r, 200, "new", "New thread", map[string]any{"Boards": boards})
		}
	})
	f.HandleFunc("POST /new", f.begin)
	f.HandleFunc("POST /thread/{thread}", f.reply)
	f.HandleFunc("POST /thread/{thread}/{do}", f.moderate)
	f.HandleFunc("POST /post/{post}/{do}", f.act)
	f.HandleFunc("GET /moderation", f.queue)
	f.serve()
	return f
}

func (f *forum) state() any { return f }

// post adds a post to a thread.
func (f *forum) post(t *thread, author, text string) *post {
	p := &post{ID: f.next, Author: author, Text: text, Votes: map[string]int{}, Reported: []string{}}
	f.next++
	t.Posts = append(t.Posts, p)
	return p
}

// find is the thread and the post that a path names; nil where there is none.
func (f *forum) find(r *http.Request) (*thread, *post) {
	for _, t := range f.Threads {
		if r.PathValue("thread") == strconv.Itoa(t.ID) {
			return t, nil
		}
		for _, p := range t.Posts {
			if r.PathValue("post") == strconv.Itoa(p.ID) {
				return t, p
			}
		}
	}
	return nil, nil
}

func (f *forum) missing(w http.ResponseWriter, r *http.Request) {
	f.show(w, r, http.StatusNotFound, "missing", "Page not found", r.URL.Path)
}

func (f *forum) thread(w http.ResponseWriter, r *http.Request) {
	t, _ := f.find(r)
	if t == nil {
		f.missing(w, r)
		return
	}
	f.show(w, r, 200, "thread", t.Title, t)
}

func (f *forum) begin(w http.ResponseWriter, r *http.Request) {
	user, ok := f.member(w, r)
	if !ok {
		return
	}
	title, text := strings.TrimSpace(clip(r.FormValue("title"), 200)), strings.TrimSpace(clip(r.FormValue("text"), 2000))
	board := ""
	for _, b := range boards {
		if b == r.FormValue("board") {
			board = b
		}
	}
	if len(title) < 5 || text == "" || board == "" || len(f.Threads) >= 60 {
		f.show(w, r, http.StatusUnprocessableEntity, "new", "New thread", map[string]any{
			"Boards": boards, "Title": title, "Text": text, "Board": board,
			"Error": "A thread needs a board, a title of at least five letters and a text.",
		})
		return
	}
	t := &thread{ID: len(f.Threads) + 1, Board: board, Title: title}
	f.post(t, user, text)
	f.Threads = append(f.Threads, t)
	http.Redirect(w, r, fmt.Sprintf("/thread/%d", t.ID), http.StatusSeeOther)
}

func (f *forum) reply(w http.ResponseWriter, r *http.Request) {
	user, ok := f.member(w, r)
	if !ok {
		return
	}
	t, _ := f.find(r)
	text := strings.TrimSpace(clip(r.FormValue("text"), 2000))
	if t == nil {
		f.missing(w, r)
		return
	}
	if text != "" && !t.Locked && len(t.Posts) < 60 {
		f.post(t, user, text)
	}
	http.Redirect(w, r, fmt.Sprintf("/thread/%d", t.ID), http.StatusSeeOther)
}

// act votes on a post, reports it, or moderates it.
func (f *forum) act(w http.ResponseWriter, r *http.Request) {
	user, ok := f.member(w, r)
	if !ok {
		return
	}
	t, p := f.find(r)
	if p == nil {
		f.missing(w, r)
		return
	}
	vote := map[string]int{"up": 1, "down": -1}[r.PathValue("do")]
	switch do := r.PathValue("do"); {
	case vote != 0 && p.Votes[user] == vote: // once more takes it back
		p.Score -= vote
		delete(p.Votes, user)
	case vote != 0:
		p.Score += vote - p.Votes[user]
		p.Votes[user] = vote
	case do == "report" && len(p.Reported) < 20:
		p.Reported = append(p.Reported, clip(r.FormValue("reason"), 200))
	case do == "remove" && user == "mod":
		p.Removed, p.Reported = true, []string{}
	case do == "keep" && user == "mod":
		p.Reported = []string{}
	}
	if r.FormValue("from") == "queue" {
		http.Redirect(w, r, "/moderation", http.StatusSeeOther)
		return
	}
	http.Redirect(w, r, fmt.Sprintf("/thread/%d", t.ID), http.StatusSeeOther)
}

func (f *forum) moderate(w http.ResponseWriter, r *http.Request) {
	user, ok := f.member(w, r)
	if !ok {
		return
	}
	t, _ := f.find(r)
	if t == nil || user != "mod" {
		f.missing(w, r)
		return
	}
	switch r.PathValue("do") {
	case "lock":
		t.Locked = !t.Locked
	case "pin":
		t.Pinned = !t.Pinned
	}
	http.Redirect(w, r, fmt.Sprintf("/thread/%d", t.ID), http.StatusSeeOther)
}

func (f *forum) queue(w http.ResponseWriter, r *http.Request) {
	user, ok := f.member(w, r)
	if !ok {
		return
	}
	if user != "mod" {
		f.show(w, r, http.StatusForbidden, "missing", "Only for moderators", r.URL.Path)
		return
	}
	type reported struct {
		Thread *thread
		Post   *post
	}
	var waiting []reported
	for _, t := range f.Threads {
		for _, p := range t.Posts {
			if len(p.Reported) > 0 && !p.Removed {
				waiting = append(waiting, reported{t, p})
			}
		}
	}
	f.show(w, r, 200, "queue", "Reported posts", waiting)
}
