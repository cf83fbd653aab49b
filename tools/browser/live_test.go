package browser_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"trajgen/sandbox"
	"trajgen/tools/browser"
	"trajgen/tools/web"
	"trajgen/tools/web/corpus"
)

// A page of another machine is read through the sandbox's network, and what its allow list lacks is not.
func TestLive(t *testing.T) {
	machine := neighbour(t)
	listener := machine.listen(t)
	server := &http.Server{Handler: html(`<title>Live</title><h1>Live</h1><script>document.title += ' ' + (Date.now() > 1790000000000)</script>`)}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	sb := box(t, sandbox.Spec{Network: sandbox.NetworkAllowlist, Allow: []string{listener.Addr().String()}})
	view := openWeb(t, web.Settings{AllowPrivate: []string{machine.address}}).View("episode", 1)
	b := &client{browser.New(browser.Config{View: view}), func(context.Context) (sandbox.Sandbox, error) { return sb, nil }}
	t.Cleanup(b.Close)
	report, arrived := visit(t, b, "http://"+listener.Addr().String()+"/")
	if arrived.Status != http.StatusOK || report.Title != "Live true" || report.Bytes < 100 {
		t.Errorf("%+v, %+v", report, arrived)
	}
	_, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
		_, err := tab.Navigate(ctx, "http://"+machine.address+":65000/")
		return err
	})
	if classOf(err) != "navigation_failed" {
		t.Errorf("a port that is not allowed: %v", err)
	}
}

// neighbourhood is another machine on a network of its own with this one.
type neighbourhood struct{ name, address string }

func neighbour(t *testing.T) neighbourhood {
	t.Helper()
	n := neighbourhood{fmt.Sprintf("trajgen%d", os.Getpid()), "10.213.77.2"}
	inside, outside := n.name[:min(len(n.name), 13)]+"a", n.name[:min(len(n.name), 13)]+"b"
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", n.name).Run() })
	for _, command := range []string{
		"netns add " + n.name, "link add " + outside + " type veth peer name " + inside + " netns " + n.name,
		"addr add 10.213.77.1/30 dev " + outside, "link set " + outside + " up",
		"-n " + n.name + " addr add " + n.address + "/30 dev " + inside, "-n " + n.name + " link set " + inside + " up",
	} {
		if out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", command, err, out)
		}
	}
	return n
}

// listen listens there.
func (n neighbourhood) listen(t *testing.T) (listener net.Listener) {
	t.Helper()
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, as it is elsewhere
		there, err := unix.Open(filepath.Join("/run/netns", n.name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(there, unix.CLONE_NEWNET)
		}
		if err == nil {
			listener, err = net.Listen("tcp", n.address+":0")
		}
		failed <- err
	}()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	return listener
}

// A document of the corpus is a page, and so is what it links to. What the corpus lacks is said to be lacking.
func TestCorpusPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "harbours.corpus")
	documents := func(yield func(corpus.Document, error) bool) {
		_ = yield(corpus.Document{ID: "one", URL: "http://docs.example/one", Title: "Harbours", Text: "# Harbours\n\nShips <enter> at [high tide](http://docs.example/two).\n\n" +
			"[Elsewhere](http://docs.example/three)"}, nil) &&
			yield(corpus.Document{ID: "two", URL: "http://docs.example/two", Title: "Tides", Text: "The moon."}, nil)
	}
	if _, err := corpus.Build(t.Context(), path, documents, corpus.Options{}); err != nil {
		t.Fatal(err)
	}
	view := openWeb(t, web.Settings{Mode: web.Corpus, Corpus: path}).View("episode", 1)
	b := open(t, nil, func(c *browser.Config) { c.View, c.Site = view, nil })
	if report, _ := visit(t, b, "http://docs.example/one"); report.Title != "Harbours" || report.Mode != web.Corpus {
		t.Errorf("%+v", report)
	}
	if got := eval(t, b, "document.querySelector('h1').innerText + document.querySelector('p').innerText"); got != `"HarboursShips <enter> at high tide."` {
		t.Errorf("the page is %s", got)
	}
	follow := func(link string) (browser.Report, error) {
		return b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
			if _, err := tab.Page().Click(ctx, fmt.Sprintf("link %q", link)); err != nil {
				return err
			}
			_, err := tab.Settle(ctx)
			return err
		})
	}
	if report, err := follow("Elsewhere"); err != nil || report.Blocked != 1 {
		t.Errorf("a link to what is not there: %+v, %v", report, err)
	}
	visit(t, b, "http://docs.example/one")
	if report, err := follow("high tide"); err != nil || report.URL != "http://docs.example/two" || report.Title != "Tides" {
		t.Errorf("a link: %+v, %v", report, err)
	}
	_, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
		_, err := tab.Navigate(ctx, "http://docs.example/three")
		return err
	})
	if classOf(err) != "not_in_corpus" {
		t.Errorf("a page that is not there: %v", err)
	}
}
