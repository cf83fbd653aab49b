package sites

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	mostEntries = 300 // requests that a state lists
	mostFields  = 30  // of a request
	mostText    = 200 // bytes of a value
)

// log are the first requests that a site got.
type log struct {
	entries []entry
	all     int
}

// entry is a request in a state.
type entry struct {
	Method string            `json:"method"`
	Host   string            `json:"host"`
	Path   string            `json:"path"`
	Query  map[string]string `json:"query"`
	Form   map[string]string `json:"form"` // of the body; the name of a file in place of its content
	Status int               `json:"status"`
}

func (l *log) add(r *http.Request, status int) {
	if l.all++; len(l.entries) >= mostEntries {
		return
	}
	e := entry{r.Method, r.Host, short(r.URL.Path), fields(r.URL.Query()), fields(r.PostForm), status}
	if r.MultipartForm != nil {
		e.Form = fields(r.MultipartForm.Value)
		for name, files := range r.MultipartForm.File {
			if len(files) > 0 && len(e.Form) < mostFields {
				e.Form[short(name)] = short(files[0].Filename)
			}
		}
	}
	l.entries = append(l.entries, e)
}

// fields are the values of a form, several of one name with commas.
func fields(values url.Values) map[string]string {
	kept := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(kept) == mostFields {
			break
		}
		kept[short(name)] = short(strings.Join(values[name], ","))
	}
	return kept
}

// short cuts what a stranger sent to what a state keeps.
func short(text string) string {
	if len(text) > mostText {
		text = text[:mostText] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
