package browser

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"

	"trajgen/sandbox"
	"trajgen/tools/internal/chars"
)

// Download is a file that a page gave.
type Download struct {
	Path  string `json:"path,omitempty"` // in the sandbox; "" for one that did not come
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	State string `json:"state"` // completed, canceled, too_large or in_progress
}

const (
	maxDownloads = 50 << 20 // bytes of all
	maxFiles     = 100
	beginTime    = 2 * time.Second  // that a call waits for what seems to be one
	downloadTime = 20 * time.Second // that a call waits for what it began
)

// downloads are the files of a browser that come or came.
type downloads struct {
	running *running

	mu    sync.Mutex // guards the rest
	all   map[string]*Download
	order []string // of those that no report has told of
	bytes int64    // of those that came
}

// keep has the browser save files in the workspace, under names that no page chose. A browser elsewhere saves none.
func (d *downloads) keep(ctx context.Context) error {
	r := d.running
	params := browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorDeny, EventsEnabled: new(true), BrowserContextID: r.context,
	}
	if r.box != nil {
		params.Behavior, params.DownloadPath = browser.SetDownloadBehaviorBehaviorAllowAndName, d.dir()
	}
	_, err := cdp.Call(ctx, r.session, browser.SetDownloadBehavior, params)
	return err
}

func (d *downloads) dir() string { return path.Join(home(d.running.box), "downloads") }

func (d *downloads) begin(e *browser.EventDownloadWillBegin) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[string]*Download{}
	}
	if len(d.all) >= maxFiles || d.bytes >= d.room() {
		d.cancel(e.GUID)
	}
	if len(d.all) < maxFiles {
		d.all[e.GUID] = &Download{Name: fileName(e.SuggestedFilename), State: "in_progress"}
		d.order = append(d.order, e.GUID)
	}
}

// until waits until something is so. d.mu is held.
func (d *downloads) until(ctx context.Context, so func() bool) {
	for !so() && ctx.Err() == nil {
		d.mu.Unlock()
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
		}
		d.mu.Lock()
	}
}

// awaitFirst waits until the browser tells of a download.
func (d *downloads) awaitFirst(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, beginTime)
	defer cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until(ctx, func() bool { return len(d.order) > 0 })
}

func (d *downloads) progress(e *browser.EventDownloadProgress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	file := d.all[e.GUID]
	if file == nil || file.State != "in_progress" {
		return
	}
	file.Bytes = int64(e.ReceivedBytes)
	switch {
	case d.bytes+max(file.Bytes, int64(e.TotalBytes)) > d.room():
		file.State = "too_large"
		d.cancel(e.GUID)
	case e.State != browser.DownloadProgressStateInProgress:
		file.State = string(e.State)
		if file.State == "completed" {
			d.bytes += file.Bytes
		}
	}
}

func (d *downloads) room() int64 { return cmp.Or(d.running.browser.cfg.room, maxDownloads) }

func (d *downloads) cancel(guid string) {
	r := d.running
	r.goes(func() {
		ctx, cancel := context.WithTimeout(r.life, tabTime)
		defer cancel()
		_, _ = cdp.Call(ctx, r.session, browser.CancelDownload, browser.CancelDownloadParams{GUID: guid})
	})
}

// take returns what came, moved into the workspace. It waits for what is still coming.
func (d *downloads) take(ctx context.Context) []Download {
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	defer cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until(ctx, func() bool {
		return !slices.ContainsFunc(d.order, func(guid string) bool { return d.all[guid].State == "in_progress" })
	})
	var taken []Download
	var left []string
	for _, guid := range d.order {
		file := d.all[guid]
		if file.State == "in_progress" {
			left = append(left, guid)
		}
		if file.State == "completed" {
			if err := d.move(ctx, guid, file); err != nil {
				file.State = "lost"
			}
		}
		taken = append(taken, *file)
	}
	d.order = left
	return taken
}

// move moves a file into the workspace, beside what is there.
func (d *downloads) move(ctx context.Context, guid string, file *Download) error {
	r := d.running
	dir := path.Join(r.box.Layout().Workdir, "downloads")
	have, _ := r.box.Files().List(ctx, dir) // it may not be there yet
	name, ext := file.Name, path.Ext(file.Name)
	for n := 2; slices.ContainsFunc(have, func(i sandbox.Info) bool { return i.Name == name }); n++ {
		name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(file.Name, ext), n, ext)
	}
	const move = `mkdir -p -- "$1" && mv -- "$2" "$1/$3" && chmod 644 -- "$1/$3"`
	args := []string{"sh", "-c", move, "sh", dir, path.Join(d.dir(), guid), name}
	ran, err := sandbox.Run(ctx, r.box, sandbox.Command{Args: args}, sandbox.RunOptions{})
	if err == nil && ran.Exit.Code != 0 {
		err = fmt.Errorf("move a download: %s", ran.Stderr.Bytes())
	}
	if err == nil {
		file.Path = path.Join(dir, name)
	}
	return err
}

// fileName is a name for a file that a page named.
func fileName(name string) string {
	name = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || !unicode.IsPrint(c) || c == '/' || c == '\\' {
			return '_'
		}
		return c
	}, name)
	if name = strings.TrimLeft(strings.TrimSpace(name), ".-~"); name == "" {
		name = "download"
	}
	return chars.First(name, 100, "")
}
