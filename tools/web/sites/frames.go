package sites

import (
	"net/http"
	"strings"
)

// frames shows a word in each kind of frame, root and window, and takes what is written there.
type frames struct {
	base
	Words map[string]string `json:"words"` // by kind: what is shown there
	Notes map[string]string `json:"notes"` // by kind: what was sent from there
}

var frameKinds = []struct{ Name, Title, Text string }{
	{"same", "A frame of this site", "The frame below belongs to this site."},
	{"cross", "A frame of another site", "The frame below comes from another site."},
	{"sandboxed", "A sandboxed frame", "The frame below may run scripts and send forms, and has no origin."},
	{"nested", "A frame in a frame", "The frame below has another one in it."},
	{"open", "An open shadow root", "The card below is a component with an open root."},
	{"closed", "A closed shadow root", "The card below is a component with a closed root."},
	{"popup", "A window", "The button opens a window."},
}

var frameWords = []string{"amber", "basalt", "copper", "damson", "ember", "fennel", "garnet", "hazel", "indigo", "juniper",
	"kelp", "larch"}

func openFrames(seed uint64) world {
	f := &frames{base: newBase("frames", seed), Words: map[string]string{}, Notes: map[string]string{}}
	order := f.rand.Perm(len(frameWords))
	for i, kind := range frameKinds {
		f.Words[kind.Name] = frameWords[order[i]]
	}
	f.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { f.show(w, r, 200, "home", "Frames", frameKinds) })
	for _, kind := range frameKinds {
		f.HandleFunc("GET /"+kind.Name, func(w http.ResponseWriter, r *http.Request) {
			other := "http://" + strings.Replace(r.Host, "frames.", "frames-other.", 1)
			f.show(w, r, 200, "kind", kind.Title, map[string]string{"Kind": kind.Name, "Text": kind.Text,
				"Word": f.Words[kind.Name], "Other": other})
		})
	}
	f.HandleFunc("GET /inner/{kind}", f.inner)
	f.HandleFunc("POST /inner/{kind}", func(w http.ResponseWriter, r *http.Request) {
		if f.Words[r.PathValue("kind")] != "" {
			f.Notes[r.PathValue("kind")] = clip(r.FormValue("note"), 200)
		}
		f.inner(w, r)
	})
	f.serve()
	return f
}

func (f *frames) state() any { return f }

// inner is what a frame or a window shows. The frame between has only the next one.
func (f *frames) inner(w http.ResponseWriter, r *http.Request) {
	kind := r.PathValue("kind")
	if kind == "between" {
		f.show(w, r, 200, "between", "Between", nil)
		return
	}
	if f.Words[kind] == "" {
		f.show(w, r, http.StatusNotFound, "missing", "Page not found", r.URL.Path)
		return
	}
	f.show(w, r, 200, "inner", "Note", map[string]string{"Kind": kind, "Word": f.Words[kind], "Note": f.Notes[kind]})
}
