package sites

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
)

// feed has items that come as the page is scrolled, and a table whose page holds only the rows that are seen.
type feed struct {
	base
	Liked   []int    `json:"liked"`  // items
	Picked  []int    `json:"picked"` // rows
	Hidden  []string `json:"hidden"` // authors
	Deepest int      `json:"deepest"`
	items   []feedItem
}

type feedItem struct {
	ID     int    `json:"id"`
	Author string `json:"author"`
	Text   string `json:"text"`
	Liked  bool   `json:"liked"`
}

type tableRow struct {
	Row     int    `json:"row"` // from 1
	Station string `json:"station"`
	Level   int    `json:"level"`
	Picked  bool   `json:"picked"`
}

const (
	feedItems = 240
	feedRows  = 10_000
)

var (
	feedPeople = []string{"Ardal", "Brigh", "Conn", "Deira", "Etain", "Fergus", "Grania"}
	feedTexts  = []string{
		"Saw %d herons at the weir this morning.", "The bus was %d minutes late again.", "Baked %d rolls, none is left.",
		"Found %d old coins behind the skirting.", "Walked %d km along the canal.", "Read %d pages in the rain.",
	}
	feedStations = []string{"Alder Bridge", "Black Weir", "Cold Ford", "Deep Lock", "East Sluice"}
)

func openFeed(seed uint64) world {
	f := &feed{base: newBase("feed", seed), Liked: []int{}, Picked: []int{}, Hidden: []string{}}
	for i := range feedItems {
		f.items = append(f.items, feedItem{ID: i + 1, Author: pick(&f.base, feedPeople), Text: fmt.Sprintf(pick(&f.base,
			feedTexts), 2+f.rand.IntN(97))})
	}
	f.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { f.show(w, r, 200, "home", "Latest", feedItems) })
	f.HandleFunc("GET /items", func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.Atoi(r.FormValue("from"))
		from = max(0, min(from, len(f.items)))
		part := slices.Clone(f.items[from:min(from+20, len(f.items))])
		for i := range part {
			part[i].Liked = slices.Contains(f.Liked, part[i].ID)
		}
		f.Deepest = max(f.Deepest, from+len(part))
		reply(w, 200, map[string]any{"items": part, "hidden": f.Hidden})
	})
	f.HandleFunc("POST /like/{id}", func(w http.ResponseWriter, r *http.Request) { toggle(w, r, &f.Liked, feedItems) })
	f.HandleFunc("POST /hide/{author}", func(w http.ResponseWriter, r *http.Request) {
		if author := r.PathValue("author"); slices.Contains(feedPeople, author) && !slices.Contains(f.Hidden, author) {
			f.Hidden = append(f.Hidden, author)
		}
		reply(w, 200, map[string]any{"hidden": f.Hidden})
	})
	f.HandleFunc("GET /table", func(w http.ResponseWriter, r *http.Request) { f.show(w, r, 200, "table", "Levels", feedRows) })
	f.HandleFunc("GET /rows", func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.Atoi(r.FormValue("from"))
		part := []tableRow{}
		for n := max(0, from) + 1; n <= min(from+50, feedRows); n++ {
			part = append(part, f.row(n))
		}
		reply(w, 200, map[string]any{"rows": part})
	})
	f.HandleFunc("POST /pick/{id}", func(w http.ResponseWriter, r *http.Request) { toggle(w, r, &f.Picked, feedRows) })
	f.serve()
	return f
}

func (f *feed) state() any { return f }

// row is a row of the table, from 1.
func (f *feed) row(n int) tableRow {
	draw := rand.New(rand.NewPCG(f.seed, uint64(n)))
	return tableRow{n, feedStations[draw.IntN(len(feedStations))], draw.IntN(900), slices.Contains(f.Picked, n)}
}

// toggle puts the number of a path into a list, or takes it out.
func toggle(w http.ResponseWriter, r *http.Request, list *[]int, most int) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || id < 1 || id > most || len(*list) >= 500 {
		reply(w, http.StatusNotFound, map[string]string{"error": "There is no such number."})
		return
	}
	at := slices.Index(*list, id)
	if at >= 0 {
		*list = slices.Delete(*list, at, at+1)
	} else {
		*list = append(*list, id)
	}
	reply(w, 200, map[string]bool{"on": at < 0})
}
