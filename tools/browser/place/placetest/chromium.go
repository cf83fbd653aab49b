package placetest

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Program is the Chromium that is started.
const Program = "/usr/lib/chromium/chromium-headless-shell"

// Chromium is a browser with a debugging port.
type Chromium struct {
	Socket string // address of its web socket
	URL    string // of its server, which tells that address
	kill   func()
}

// StartChromium starts a browser, which ends with the test at the latest.
func StartChromium(t testing.TB) *Chromium {
	t.Helper()
	dir, err := os.MkdirTemp("", "placetest-*")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(Program, "--no-sandbox", "--disable-gpu", "--in-process-gpu", "--no-zygote", "--no-first-run",
		"--remote-debugging-port=0", "--user-data-dir="+dir, "about:blank")
	errors, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	browser := &Chromium{kill: sync.OnceFunc(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = os.RemoveAll(dir)
	})}
	t.Cleanup(browser.Kill)
	lines := bufio.NewScanner(errors)
	for lines.Scan() {
		if socket, ok := strings.CutPrefix(lines.Text(), "DevTools listening on "); ok {
			browser.Socket = strings.TrimSpace(socket)
			host, _, _ := strings.Cut(strings.TrimPrefix(browser.Socket, "ws://"), "/")
			browser.URL = "http://" + host
			return browser
		}
	}
	t.Fatalf("%s did not listen", Program)
	return nil
}

// Kill ends the browser.
func (c *Chromium) Kill() { c.kill() }
