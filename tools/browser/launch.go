package browser

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"trajgen/sandbox"
	"trajgen/tools/internal/feed"
	"trajgen/tools/web/source"
)

// Package is what Debian and Ubuntu call the browser that is smallest, and Fonts a set of fonts for it.
const (
	Package = "chromium-headless-shell"
	Fonts   = "fonts-liberation"
)

// Missing says how to get a browser.
const Missing = "Chromium is missing in sandboxes: apt-get install " + Package + " " + Fonts +
	" (or chromium), or name a program with browser.program"

// programs are tried in this order. Debian's /usr/bin/chromium is a script that needs /etc/chromium.d.
var programs = []string{
	"/usr/lib/chromium/chromium-headless-shell", "chromium-headless-shell", "chrome-headless-shell", "headless-shell",
	"headless_shell", "/headless-shell/headless-shell", "/usr/lib/chromium/chromium", "/usr/lib/chromium-browser/chromium-browser", "chromium",
	"chromium-browser", "google-chrome-stable", "google-chrome", "chrome",
}

// start looks for a program and becomes it, with the pipes of the protocol as its standard input and output. It begins in an empty
// directory of its own.
const start = `dir=$1 names=$2; shift 2; rm -rf -- "$dir"; mkdir -p -- "$dir/tmp" && export TMPDIR="$dir/tmp"
for name in $names; do if program=$(command -v "$name") && [ -x "$program" ]; then
exec "$program" "$@" 3<&0 4>&1 1>&2; fi; done; exit 127`

// flags decide how pages are laid out and run. The sandbox is the wall around the browser, whose own would need more rights there.
var flags = []string{
	"--no-sandbox", "--headless", "--remote-debugging-pipe", "--no-startup-window", "--disable-gpu", "--in-process-gpu", "--no-zygote",
	"--no-first-run", "--disable-popup-blocking", "--disable-background-networking", "--disable-component-update",
	"--disable-dev-shm-usage", "--mute-audio", "--hide-scrollbars",
	"--force-color-profile=srgb", "--disable-site-isolation-trials", "--lang=en-US", "--window-size=1280,720",
	"--disable-features=Translate,MediaRouter,OptimizationHints,LocalNetworkAccessChecks", "--disable-quic",
	"--js-flags=--max-old-space-size=512", "--webrtc-ip-handling-policy=disable_non_proxied_udp",
}

// offline resolves no name but those of the sandbox itself: what the gate does not see, such as a WebSocket, reaches nothing.
const offline = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1, EXCLUDE [::1]"

// Flags identifies how the browser is started, for an experiment's fingerprint.
func Flags() string {
	sum := sha256.Sum256([]byte(strings.Join(append(slices.Clone(flags), offline), " ")))
	return "sha256:" + hex.EncodeToString(sum[:])[:16]
}

// Find is the path of the browser in a sandbox. The error says how to get one.
func Find(ctx context.Context, box sandbox.Sandbox) (string, error) {
	const find = `for name; do if program=$(command -v "$name") && [ -x "$program" ]; then echo "$program"; exit; fi; done; exit 127`
	args := append([]string{"sh", "-c", find, "sh"}, programs...)
	ran, err := sandbox.Run(ctx, box, sandbox.Command{Args: args}, sandbox.RunOptions{})
	if err == nil && ran.Exit.Code != 0 {
		err = errors.New(Missing)
	}
	return strings.TrimSpace(string(ran.Stdout.Bytes())), err
}

// process is a browser's process.
type process struct {
	proc   sandbox.Process
	out    *io.PipeReader
	in     *feed.Feed
	stderr *sandbox.Capture
	ended  chan struct{} // closed when exit and err are set
	exit   sandbox.Exit
	err    error
}

// home is where a browser keeps what it keeps.
func home(box sandbox.Sandbox) string { return path.Join(box.Layout().Tmp, ".chromium") }

const (
	maxInput = 256 << 20 // of what waits to be read by the browser
	killTime = 3 * time.Minute
)

func launch(ctx context.Context, box sandbox.Sandbox, program string, more ...string) (*process, error) {
	names := strings.Join(programs, " ")
	if program != "" {
		names = program
	}
	dir := home(box)
	args := append([]string{"sh", "-c", start, "sh", dir, names, "--user-data-dir=" + dir}, flags...)
	out, written := io.Pipe()
	p := &process{out: out, in: feed.New(maxInput), stderr: sandbox.NewCapture(8<<10, 8<<10), ended: make(chan struct{})}
	var err error
	p.proc, err = box.Start(ctx, sandbox.Command{
		Args: append(args, more...), Env: []string{"TZ=UTC", "LANG=en_US.UTF-8"}, Stdin: p.in, Stdout: written, Stderr: p.stderr,
	})
	if err != nil {
		return nil, fmt.Errorf("start the browser: %w", err)
	}
	go func() {
		defer close(p.ended)
		p.exit, p.err = p.proc.Wait(context.WithoutCancel(ctx))
		written.Close()
		p.in.Close()
	}()
	return p, nil
}

func (p *process) pipes() (io.Reader, io.Writer, func() error) { return p.out, p.in, p.out.Close }

func (p *process) over() <-chan struct{} { return p.ended }

// kill ends the browser and waits until it is gone.
func (p *process) kill() error {
	p.out.Close()
	p.in.Close()
	select {
	case <-p.ended:
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	err := p.proc.Kill(ctx, 0)
	<-p.ended
	return err
}

// What a browser needs beside the task, in bytes: Memory is what its sandbox may have, and PageMemory what it has with a page of a
// megabyte.
const (
	Memory     = 512 << 20
	PageMemory = 215 << 20
)

// why says why the browser has ended.
func (p *process) why() error {
	switch {
	case errors.Is(p.err, sandbox.ErrGone):
		return p.err
	case p.exit.Code == 127:
		return source.Errorf(source.Operator, source.Unavailable, "%s", Missing)
	case p.exit.OOM:
		return source.Errorf(source.Outage, source.Unavailable, "the browser was ended because the sandbox's memory was used up; "+
			"a browser needs %d MB beside the task (sandbox.memory in the run file)", Memory>>20)
	}
	lines := strings.Split(strings.TrimSpace(string(p.stderr.Tail())), "\n")
	last := lines[len(lines)-1]
	return source.Errorf(source.Outage, source.Unavailable, "the browser has ended with exit code %d: %s", p.exit.Code, last)
}
