package sites

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// wiki has pages of lines, with a history. On one of them another author is at work: who saves it first meets a conflict.
type wiki struct {
	base
	Pages  map[string]*entryPage `json:"pages"` // by title
	busy   string                // the title of the page that another author edits at the same time
	Recent []change              `json:"recent"` // of visitors, oldest first
}

type entryPage struct {
	Text      string     `json:"text"`
	Revisions []revision `json:"revisions"` // oldest first; the last has Text
}

type revision struct {
	Number  int    `json:"number"`
	Author  string `json:"author"`
	Comment string `json:"comment"`
	Text    string `json:"-"`
}

type change struct {
	Title   string `json:"title"`
	Author  string `json:"author"`
	Comment string `json:"comment"`
}

var (
	islands = []string{"Arran Rock", "Bell Island", "Corm", "Dunlin Holm", "Eigg Minor", "Fulmar Stack", "Gannet Isle",
		"Holm of Grays"}
	birds = []string{"Gannet", "Puffin", "Storm Petrel", "Black Guillemot", "Arctic Tern"}
)

func openWiki(seed uint64) world {
	k := &wiki{base: newBase("wiki", seed), Pages: map[string]*entryPage{}, Recent: []change{}}
	k.users = map[string]string{"ada": "lovelace"}
	for i, island := range islands {
		population, length := 3+k.rand.IntN(400), 1+k.rand.IntN(20)
		next, bird := islands[(i+1+k.rand.IntN(3))%len(islands)], pick(&k.base, birds)
		k.write(island, "keeper", "first version", fmt.Sprintf(
			"%s is an island of the Outer Grays. It is %d km long and %d people live there.\n\nThe nearest harbour is that of [[%s]]. "+
				"The commonest bird is the [[%s]].\n\nThe lighthouse was built in %d.", island, length, population, next, bird,
			1790+k.rand.IntN(120)))
	}
	for _, bird := range birds {
		k.write(bird, "keeper", "first version",
			fmt.Sprintf("The %s is a sea bird. It lays %d eggs a year and weighs about %d grams.\n\n"+
				"It was first counted on [[%s]].", strings.ToLower(bird), 2+k.rand.IntN(4), 100+k.rand.IntN(2900), pick(&k.base,
				islands)))
	}
	var list strings.Builder
	for _, island := range islands {
		fmt.Fprintf(&list, "\n\n[[%s]]", island)
	}
	k.write("Outer Grays", "keeper", "first version", "The Outer Grays are eight islands in the north."+list.String())
	spoilt := pick(&k.base, islands)
	k.write(spoilt, "anonymous", "improved", "BUY CHEAP FISH. "+strings.ToUpper(k.Pages[spoilt].Text[:40]))
	for k.busy = spoilt; k.busy == spoilt; {
		k.busy = pick(&k.base, islands)
	}
	k.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/wiki/Outer_Grays", http.StatusFound)
	})
	k.HandleFunc("GET /wiki/{title}", k.read)
	k.HandleFunc("GET /edit/{title}", k.edit)
	k.HandleFunc("POST /edit/{title}", k.save)
	k.HandleFunc("GET /history/{title}", k.history)
	k.HandleFunc("GET /history/{title}/{number}", k.old)
	k.HandleFunc("POST /history/{title}/{number}", k.restore)
	k.HandleFunc("GET /search", k.search)
	k.HandleFunc("GET /changes", func(w http.ResponseWriter, r *http.Request) {
		k.show(w, r, 200, "changes", "Recent changes",
			k.Recent)
	})
	k.serve()
	return k
}

func (k *wiki) state() any { return k }

// write adds a revision.
func (k *wiki) write(title, author, comment, text string) {
	page := k.Pages[title]
	if page == nil {
		page = &entryPage{}
		k.Pages[title] = page
	}
	page.Text = text
	page.Revisions = append(page.Revisions, revision{len(page.Revisions) + 1, author, comment, text})
}

// author is who edits: guests may.
func (k *wiki) author(r *http.Request) string {
	if user := k.user(r); user != "" {
		return user
	}
	return "guest"
}

// title is the title that a path names.
func title(r *http.Request) string {
	return clip(strings.TrimSpace(strings.ReplaceAll(r.PathValue("title"), "_", " ")), 100)
}

// slug is a title in an address.
func slug(title string) string { return strings.ReplaceAll(title, " ", "_") }

// piece is a part of a line: text, or a link.
type piece struct{ Text, Link string }

// pieces takes a text apart, by paragraphs.
func pieces(text string) (paragraphs [][]piece) {
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		var parts []piece
		for paragraph != "" {
			before, rest, _ := strings.Cut(paragraph, "[[")
			link, after, closed := strings.Cut(rest, "]]")
			if !closed {
				parts = append(parts, piece{Text: paragraph})
				break
			}
			parts, paragraph = append(parts, piece{Text: before}, piece{link, slug(link)}), after
		}
		paragraphs = append(paragraphs, parts)
	}
	return paragraphs
}

// wikiPage is what the templates of a page get.
type wikiPage struct {
	Slug                string
	Text, Base, Comment string
	Theirs              string // with a conflict
	Paragraphs          [][]piece
	Revisions           []revision
	Number, Latest      int
	Missing, Invalid    bool
}

func (k *wiki) read(w http.ResponseWriter, r *http.Request) {
	page := k.Pages[title(r)]
	if page == nil {
		k.show(w, r, http.StatusNotFound, "page", title(r), wikiPage{Slug: slug(title(r)), Missing: true})
		return
	}
	k.show(w, r, 200, "page", title(r), wikiPage{Slug: slug(title(r)), Paragraphs: pieces(page.Text)})
}

func (k *wiki) edit(w http.ResponseWriter, r *http.Request) {
	data := wikiPage{Slug: slug(title(r)), Base: "0"}
	if page := k.Pages[title(r)]; page != nil {
		data.Text, data.Base = page.Text, strconv.Itoa(len(page.Revisions))
	}
	k.show(w, r, 200, "edit", "Edit "+title(r), data)
}

func (k *wiki) save(w http.ResponseWriter, r *http.Request) {
	name, text := title(r), strings.TrimSpace(strings.ReplaceAll(clip(r.FormValue("text"), 10_000), "\r\n", "\n"))
	comment := clip(r.FormValue("comment"), 200)
	page := k.Pages[name]
	if name == k.busy { // the other author saves just before the visitor does
		k.write(name, "keeper", "ferry", page.Text+"\n\nA ferry goes on Mondays.")
		k.busy = ""
	}
	latest, theirs := 0, ""
	if page != nil {
		latest, theirs = len(page.Revisions), page.Text
	}
	data := wikiPage{Slug: slug(name), Text: text, Base: strconv.Itoa(latest), Comment: comment}
	switch {
	case text == "" || len(k.Pages) >= 100 || latest >= 50:
		data.Invalid = true
		k.show(w, r, http.StatusUnprocessableEntity, "edit", "Edit "+name, data)
		return
	case page != nil && r.FormValue("base") != data.Base:
		data.Theirs = theirs
		k.show(w, r, http.StatusConflict, "edit", "Edit "+name, data)
		return
	}
	k.write(name, k.author(r), comment, text)
	k.Recent = append(k.Recent, change{name, k.author(r), comment})
	http.Redirect(w, r, "/wiki/"+slug(name), http.StatusSeeOther)
}

func (k *wiki) history(w http.ResponseWriter, r *http.Request) {
	data := wikiPage{Slug: slug(title(r))}
	if page := k.Pages[title(r)]; page != nil {
		data.Revisions = slices.Clone(page.Revisions)
		slices.Reverse(data.Revisions)
	}
	k.show(w, r, 200, "history", "History of "+title(r), data)
}

// revision is the one that a path names.
func (k *wiki) revision(r *http.Request) *revision {
	number, _ := strconv.Atoi(r.PathValue("number"))
	page := k.Pages[title(r)]
	if page == nil || number < 1 || number > len(page.Revisions) {
		return nil
	}
	return &page.Revisions[number-1]
}

func (k *wiki) old(w http.ResponseWriter, r *http.Request) {
	old := k.revision(r)
	if old == nil {
		k.show(w, r, http.StatusNotFound, "missing", "Page not found", r.URL.Path)
		return
	}
	k.show(w, r, 200, "old", fmt.Sprintf("%s, revision %d", title(r), old.Number),
		wikiPage{Slug: slug(title(r)), Number: old.Number, Latest: len(k.Pages[title(r)].Revisions),
			Paragraphs: pieces(old.Text)})
}

func (k *wiki) restore(w http.ResponseWriter, r *http.Request) {
	if old := k.revision(r); old != nil && len(k.Pages[title(r)].Revisions) < 50 {
		comment := fmt.Sprintf("restored revision %d", old.Number)
		k.write(title(r), k.author(r), comment, old.Text)
		k.Recent = append(k.Recent, change{title(r), k.author(r), comment})
	}
	http.Redirect(w, r, "/wiki/"+slug(title(r)), http.StatusSeeOther)
}

func (k *wiki) search(w http.ResponseWriter, r *http.Request) {
	q := strings.ToLower(strings.TrimSpace(r.FormValue("q")))
	type hit struct{ Title, Slug, Text string }
	var found []hit
	for _, name := range slices.Sorted(maps.Keys(k.Pages)) {
		text := k.Pages[name].Text
		at := strings.Index(strings.ToLower(text), q)
		if q == "" || at < 0 && !strings.Contains(strings.ToLower(name), q) {
			continue
		}
		from := max(0, at-40)
		found = append(found, hit{name, slug(name), strings.ToValidUTF8(text[from:min(len(text), from+120)], "")})
	}
	k.show(w, r, 200, "found", fmt.Sprintf("%d pages found", len(found)), found)
}
