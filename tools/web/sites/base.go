package sites

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
)

//go:embed pages
var files embed.FS

// base is what the sites have in common: routes, pages from templates, draws from the seed, and who is logged in.
type base struct {
	*http.ServeMux
	name     string
	seed     uint64
	rand     *rand.Rand
	users    map[string]string // with passwords
	sessions map[string]string // id → user
	issued   int
}

// newBase begins a site.
func newBase(name string, seed uint64) base {
	sum := sha256.Sum256([]byte(name))
	b := base{ServeMux: http.NewServeMux(), name: name, seed: seed, sessions: map[string]string{}}
	b.rand = rand.New(rand.NewPCG(seed, uint64(sum[0])<<8|uint64(sum[1])))
	return b
}

// serve adds what all sites answer to.
func (b *base) serve() {
	for path, kind := range map[string]string{"/style.css": "text/css; charset=utf-8",
		"/" + b.name + ".js": "text/javascript; charset=utf-8"} {
		if data, err := files.ReadFile("pages" + path); err == nil {
			b.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				_, _ = w.Write(data)
			})
		}
	}
	b.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		b.show(w, r, http.StatusNotFound, "missing", "Page not found", r.URL.Path)
	})
	if len(b.users) == 0 {
		return
	}
	b.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		b.show(w, r, http.StatusOK, "login", "Log in", map[string]string{"Next": r.FormValue("next")})
	})
	b.HandleFunc("POST /login", b.login)
	b.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		if cookie, err := r.Cookie("session"); err == nil {
			delete(b.sessions, cookie.Value)
		}
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
}

func (b *base) login(w http.ResponseWriter, r *http.Request) {
	user, next := r.PostFormValue("user"), r.PostFormValue("next")
	if password, known := b.users[user]; !known || password != r.PostFormValue("password") {
		b.show(w, r, http.StatusForbidden, "login", "Log in",
			map[string]string{"Next": next, "User": user, "Error": "The user name or the password is wrong."})
		return
	}
	b.issued++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", b.name, b.seed, b.issued))
	id := hex.EncodeToString(sum[:8])
	b.sessions[id] = user
	if len(b.sessions) > 50 {
		b.sessions = map[string]string{id: user}
	}
	http.SetCookie(w, &http.Cookie{Name: "session", Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	if len(next) < 2 || next[0] != '/' || next[1] == '/' { // only to pages of this site
		next = "/"
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// loggedIn are who is logged in, sorted.
func (b *base) loggedIn() []string {
	users := slices.Sorted(maps.Values(b.sessions))
	return append([]string{}, slices.Compact(users)...)
}

// user is who is logged in; "" for a guest.
func (b *base) user(r *http.Request) string {
	cookie, err := r.Cookie("session")
	if err != nil {
		return ""
	}
	return b.sessions[cookie.Value]
}

// member leads guests to the login, and says whether it is a member who asks.
func (b *base) member(w http.ResponseWriter, r *http.Request) (user string, ok bool) {
	if user = b.user(r); user != "" {
		return user, true
	}
	http.Redirect(w, r, "/login?next="+r.URL.Path, http.StatusSeeOther)
	return "", false
}

// view is what a template gets.
type view struct {
	Site, Title, User, Path string
	Host                    string
	Query                   map[string]string
	Login                   bool
	Data                    any
}

// templates are the pages of a site, with those of all.
var templates = func() func(string) *template.Template {
	var all sync.Map
	functions := template.FuncMap{
		"price": price, "add": func(a, b int) int { return a + b },
		"list": func(items ...string) []string { return items },
	}
	return func(site string) *template.Template {
		made, ok := all.Load(site)
		if !ok {
			made, _ = all.LoadOrStore(site, template.Must(template.New(site).Funcs(functions).ParseFS(files, "pages/all.html",
				"pages/"+site+".html")))
		}
		return made.(*template.Template)
	}
}()

// show writes a page.
func (b *base) show(w http.ResponseWriter, r *http.Request, status int, name, title string, data any) {
	var page bytes.Buffer
	v := view{b.name, title, b.user(r), r.URL.Path, r.Host, fields(r.URL.Query()), len(b.users) > 0, data}
	if err := templates(b.name).ExecuteTemplate(&page, name, v); err != nil {
		panic(fmt.Sprintf("page %s of %s: %v", name, b.name, err)) // the templates are embedded
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes())
}

// price writes cents.
func price(cents int) string { return fmt.Sprintf("€%d.%02d", cents/100, cents%100) }

// clip bounds a text that a visitor wrote.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most]
}

// pick draws one of several.
func pick[T any](b *base, from []T) T { return from[b.rand.IntN(len(from))] }
