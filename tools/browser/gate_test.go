package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/tools/browser"
	"trajgen/tools/web/source"
)

// seen notes requests.
type seen struct {
	mu  sync.Mutex
	all []string
}

func (s *seen) note(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, r.Method+" "+r.URL.Path)
}

func (s *seen) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// The gate sees whatever a page asks for, in whichever way.
func TestGate(t *testing.T) {
	var far seen
	const page = `<title>Ways</title>
<link rel=stylesheet href="http://far.test/style.css"><link rel=preload as=image href="http://far.test/preload.png">
<link rel=prefetch href="http://far.test/prefetch.html">
<img src="http://far.test/image.png"><iframe src="http://far.test/frame.html"></iframe><script src="http://far.test/script.js"></script>
<iframe srcdoc="<img src='http://far.test/srcdoc.png'>"></iframe><iframe sandbox src="http://far.test/sandboxed.html"></iframe>
<img src="http://ways.test/to-metadata"><img src="http://ways.test/redirect">
<script>
navigator.sendBeacon('http://far.test/beacon', 'x');
fetch('http://far.test/preflighted', {method: 'PUT', headers: {'X-A': '1'}, body: 'x'});
fetch('http://169.254.169.254/latest').catch(() => 0);
fetch('file:///etc/passwd').catch(() => 0);
new Worker(URL.createObjectURL(new Blob(["fetch('http://far.test/from-worker')"])));
new Worker('http://ways.test/worker.js');
window.open('http://far.test/popup.html');
</script>`
	b := open(t, sites{
		"ways.test": func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/redirect":
				http.Redirect(w, r, "http://far.test/redirected.png", http.StatusFound)
			case "/to-metadata":
				http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
			case "/worker.js":
				w.Header().Set("Content-Type", "text/javascript")
				fmt.Fprint(w, "fetch('http://far.test/from-worker-file')")
			default:
				html(page)(w, r)
			}
		},
		"far.test": func(w http.ResponseWriter, r *http.Request) {
			far.note(r)
			w.Header().Set("Access-Control-Allow-Origin", "*")
			w.Header().Set("Access-Control-Allow-Methods", "*")
			w.Header().Set("Access-Control-Allow-Headers", "*")
		},
	})
	report, _ := visit(t, b, "http://ways.test/")
	got := far.list()
	for _, want := range []string{
		"GET /style.css", "GET /preload.png", "GET /prefetch.html", "GET /image.png", "GET /frame.html", "GET /script.js", "GET /srcdoc.png",
		"GET /sandboxed.html", "POST /beacon", "OPTIONS /preflighted", "PUT /preflighted", "GET /from-worker", "GET /from-worker-file",
		"GET /popup.html", "GET /redirected.png",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("the gate did not see %s (saw %v)", want, got)
		}
	}
	if report.Blocked != 2 {
		t.Errorf("%d requests were blocked, want the two to the metadata service: %+v", report.Blocked, report)
	}
	if diff := cmp.Diff([]string{"t2"}, report.NewTabs); diff != "" {
		t.Errorf("new tabs (-want +got):\n%s", diff)
	}
}

// What an agent may not open is refused, and said.
func TestAddresses(t *testing.T) {
	b := open(t, sites{"site.test": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
	}})
	for url, want := range map[string]string{
		"file:///etc/passwd": source.BlockedURL, "data:text/html,x": source.BlockedURL, "javascript:alert(1)": source.BlockedURL,
		"view-source:http://site.test/": source.BlockedURL, "blob:http://site.test/x": source.BlockedURL, "chrome://crash": source.BlockedURL,
		"chrome://kill": source.BlockedURL, "about:version": source.BlockedURL, "": source.BlockedURL, "//x": source.BlockedURL,
		"http://169.254.169.254/": source.BlockedURL, "http://10.0.0.1/": source.BlockedURL, "http://2130706433/": source.BlockedURL,
		"http://site.test/away": source.BlockedURL,
		"http://evil.example/?k=" + "sk-" + "aB3dE5gH7jK9mN1pQ3sT5vX7z": source.SecretInURL,
		"http://nowhere.example/": "no_network", "http://127.0.0.1:9/": "navigation_failed",
	} {
		_, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
			_, err := tab.Navigate(ctx, url)
			return err
		})
		if got := classOf(err); got != want {
			t.Errorf("%s: %s (%v), want %s", url, got, err, want)
		}
	}
	if _, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
		_, err := tab.Navigate(ctx, "about:blank")
		return err
	}); err != nil {
		t.Error(err)
	}
}

func classOf(err error) string {
	if e, ok := err.(*source.Error); ok {
		return e.Class
	}
	return fmt.Sprint(err)
}

// Cookies, logins and forms work as with a server.
func TestCookies(t *testing.T) {
	b := open(t, sites{"login.test": func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/in":
			http.SetCookie(w, &http.Cookie{Name: "who", Value: r.PostFormValue("name"), Path: "/", HttpOnly: true})
			http.SetCookie(w, &http.Cookie{Name: "more", Value: "1", Path: "/"})
			http.Redirect(w, r, "/", http.StatusSeeOther)
		default:
			who, err := r.Cookie("who")
			if err != nil {
				html(`<form method=post action=/in enctype=multipart/form-data><input name=name value="b&c"></form>`)(w, r)
				return
			}
			html("<h1>Hello "+who.Value+"</h1>")(w, r)
		}
	}})
	visit(t, b, "https://login.test/")
	_, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
		if _, err := tab.Evaluate(ctx, "document.forms[0].submit()"); err != nil {
			return err
		}
		_, err := tab.Settle(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := eval(t, b, "document.body.textContent + ' ' + document.cookie + ' ' + isSecureContext"); !strings.Contains(got, "Hello b&c") || !strings.Contains(got, "more=1 true") {
		t.Errorf("after the login: %s", got)
	}
}

// What the gate does not see is counted: it is in no recording.
func TestUnrecordable(t *testing.T) {
	b := open(t, sites{"site.test": html(`<h1>x</h1>`)})
	report, _ := visit(t, b, "https://site.test/")
	if report.Unrecordable != 0 || report.Bytes != len("<!doctype html><h1>x</h1>") {
		t.Errorf("a plain page: %+v", report)
	}
	for name, expression := range map[string]string{
		"a web socket":     "new Promise(done => new WebSocket('ws://127.0.0.1:9/').onerror = () => done(1))",
		"a web transport":  "(() => { const t = new WebTransport('https://127.0.0.1:9/'); t.closed.catch(() => 0); return t.ready.catch(() => 1) })()",
		"a service worker": "navigator.serviceWorker.register('/worker.js').catch(() => 1)",
	} {
		if report, err := run(t, b, expression); err != nil || report.Unrecordable != 1 {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
	}
}
