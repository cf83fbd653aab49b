package browser

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"trajgen/tools/browser/page"
	"trajgen/tools/browser/place"
	"trajgen/tools/web/source"
)

// Page is what is on a tab, and what can be done with it. It is a *page.Page, unless the browser does not speak CDP.
type Page interface {
	Document(ctx context.Context) (string, error)
	Snapshot(ctx context.Context, o page.SnapshotOptions) (page.Snapshot, error)
	Click(ctx context.Context, ref string) (clicked string, err error)
	Type(ctx context.Context, ref, text string, submit bool) (page.Typed, error)
	Press(ctx context.Context, key string) error
	Scroll(ctx context.Context, down bool, ref string) (page.Scrolled, error)
	Images(ctx context.Context) (images []page.Image, total int, err error)
	Screenshot(ctx context.Context, annotate bool) ([]byte, error)
	Hover(ctx context.Context, ref string) (hovered string, err error)
	Drag(ctx context.Context, from, to string) (dragged, target string, err error)
	Upload(ctx context.Context, ref string, paths []string) (uploaded string, err error)
	Wait(ctx context.Context, text string, gone bool, most time.Duration) (bool, error)
}

// Page is what is on the tab.
func (t *Tab) Page() Page {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shown == nil {
		switch {
		case t.fox != nil:
			t.shown = &foxPage{tab: t}
		case t.running.browser.elsewhere():
			t.shown = apartPage{page.New(t.session)}
		default:
			t.shown = page.New(t.session)
		}
	}
	return t.shown
}

// apartPage is a page of a browser on another machine, whose files are not the sandbox's.
type apartPage struct{ *page.Page }

func (apartPage) Upload(context.Context, string, []string) (string, error) {
	return "", unable("upload files")
}

// fox is the tab of a browser that does not speak CDP. What is done with the browser as a whole is not for it.
func fox(r *running, tab *place.Tab) {
	ready := make(chan struct{})
	close(ready)
	t := &Tab{running: r, ready: ready, url: "about:blank", fox: tab}
	r.tabs.add(t)
	r.product, r.gate = "Camofox", &gate{cfg: &r.browser.cfg, tally: &r.browser.tally, refusals: map[string]error{}}
}

// at remembers where the tab is now.
func (t *Tab) at(url string, err error) (Arrived, error) {
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.url = url
	}
	return Arrived{Settled: true}, err
}

// unable is what cannot be done here.
func unable(what string) error {
	return source.Errorf(source.Agent, source.Unsupported, "this browser cannot %s", what)
}

// foxPage is the page of a Camofox tab, on which one command runs at a time. It has no frames of its own and no pages of a snapshot:
// the server makes the list.
type foxPage struct {
	tab   *Tab
	lines []string // of the last snapshot
}

const (
	foxPart = 8000 // characters of a snapshot, or of a page of a full one
	scrolls = 500  // pixels
)

var (
	foxLine = regexp.MustCompile(`^(\s*- )(\w+(?: "(?:[^"\\]|\\.)*")?) \[(e\d+)\]`)
	foxItem = regexp.MustCompile(`^\s*- (\w+(?: "(?:[^"\\]|\\.)*")?) \[ref=(e\d+)\]`)
	foxRef  = regexp.MustCompile(`^@?(?:ref=)?(e\d{1,9})$`)
	foxCut  = regexp.MustCompile(`(?m)^\[\.\.\. truncated at char .*\]$`)
)

// Document is when the document came.
func (p *foxPage) Document(ctx context.Context) (string, error) {
	value, err := p.tab.fox.Evaluate(ctx, "performance.timeOrigin")
	return string(value), err
}

// list lists what is on the page, with refs as pages in sandboxes have them.
func (p *foxPage) list(ctx context.Context) (place.Snapshot, error) {
	s, err := p.tab.fox.Snapshot(ctx)
	if err != nil {
		return s, err
	}
	_, _ = p.tab.at(s.URL, nil)
	s.Text = foxCut.ReplaceAllString(s.Text, "… (the middle of the page is left out)")
	p.lines = strings.Split(s.Text, "\n")
	for i, line := range p.lines {
		p.lines[i] = foxLine.ReplaceAllString(line, "$1$2 [ref=$3]")
	}
	return s, nil
}

func (p *foxPage) Snapshot(ctx context.Context, o page.SnapshotOptions) (page.Snapshot, error) {
	s, err := p.list(ctx)
	if err != nil {
		return page.Snapshot{}, err
	}
	parts := [][]string{nil}
	size := 0
	for _, line := range p.lines {
		last := len(parts) - 1
		if size += len(line) + 1; size > foxPart && len(parts[last]) > 0 {
			parts, size = append(parts, nil), len(line)+1
			last++
		}
		parts[last] = append(parts[last], line)
	}
	shown := page.Snapshot{Title: p.tab.fox.Title(ctx), Elements: s.Elements, Parts: len(parts)}
	n := min(max(o.Part, 1), len(parts))
	shown.Text = strings.Join(parts[n-1], "\n")
	if len(parts) > 1 && !o.Full {
		shown.Text += "\n… (more is below: take a full snapshot)"
	}
	return shown, nil
}

// find is the ref that is meant, which may be written as role and name, and how the snapshot names its element.
func (p *foxPage) find(ctx context.Context, ref string) (id, named string, err error) {
	ref = strings.TrimSpace(ref)
	if len(p.lines) == 0 {
		if _, err := p.list(ctx); err != nil {
			return "", "", err
		}
	}
	asRef := foxRef.FindStringSubmatch(ref)
	found := 0
	for _, line := range p.lines {
		part := foxItem.FindStringSubmatch(line)
		if part != nil && (asRef != nil && part[2] == asRef[1] || part[1] == ref) {
			id, named = part[2], part[1]
			found++
		}
	}
	switch {
	case asRef != nil:
		return asRef[1], named, nil // the server knows whether it is there
	case found == 1:
		return id, named, nil
	}
	return "", "", source.Errorf(source.Agent, place.StaleRef, "%d elements of the page are %s: take a new snapshot and use a ref such as e12.",
		found, shorten(ref))
}

func (p *foxPage) Click(ctx context.Context, ref string) (string, error) {
	id, named, err := p.find(ctx, ref)
	if err != nil {
		return "", err
	}
	_, err = p.tab.at(p.tab.fox.Click(ctx, id))
	return named, err
}

func (p *foxPage) Type(ctx context.Context, ref, text string, submit bool) (page.Typed, error) {
	id, named, err := p.find(ctx, ref)
	if err != nil {
		return page.Typed{}, err
	}
	if err := p.tab.fox.Type(ctx, id, text, false); err != nil {
		return page.Typed{}, err
	}
	typed := page.Typed{Element: named, Text: text}
	focus, err := p.tab.fox.Evaluate(ctx, "document.activeElement?.type ?? ''") // filled in, a field has the focus
	if string(focus) == `"password"` {
		typed.Text = strconv.Itoa(utf8.RuneCountInString(text)) + " characters"
	}
	if err == nil && submit {
		err = p.tab.fox.Press(ctx, "Enter")
	}
	return typed, err
}

func (p *foxPage) Press(ctx context.Context, key string) error { return p.tab.fox.Press(ctx, key) }

// Scroll scrolls the page.
func (p *foxPage) Scroll(ctx context.Context, down bool, ref string) (page.Scrolled, error) {
	if ref != "" {
		return page.Scrolled{}, unable("scroll an element; leave out the ref")
	}
	direction := "up"
	if down {
		direction = "down"
	}
	before, err := p.place(ctx)
	if err == nil {
		err = p.tab.fox.Scroll(ctx, direction, scrolls)
	}
	if err != nil {
		return page.Scrolled{}, err
	}
	after, err := p.place(ctx)
	return page.Scrolled{Of: "page", Moved: after.Top - before.Top, Top: after.Top, Height: after.Height}, err
}

// view is what of the page is in view.
type view struct{ Top, Height int }

func (p *foxPage) place(ctx context.Context) (v view, err error) {
	value, err := p.tab.fox.Evaluate(ctx, "({Top: Math.round(scrollY), Height: document.documentElement.scrollHeight})")
	if err == nil {
		err = json.Unmarshal(value, &v)
	}
	return v, err
}

func (p *foxPage) Images(ctx context.Context) ([]page.Image, int, error) {
	found, err := p.tab.fox.Images(ctx)
	var images []page.Image
	for _, i := range found {
		if strings.HasPrefix(i.Src, "data:") {
			i.Src = shorten(i.Src)
		}
		images = append(images, page.Image{Src: i.Src, Alt: i.Alt, Width: i.Width, Height: i.Height})
	}
	return images, len(images), err
}

func (p *foxPage) Screenshot(ctx context.Context, annotate bool) ([]byte, error) {
	if annotate {
		return nil, unable("annotate a picture")
	}
	return p.tab.fox.Screenshot(ctx)
}

func (p *foxPage) Hover(context.Context, string) (string, error) { return "", unable("hover") }

func (p *foxPage) Drag(context.Context, string, string) (string, string, error) {
	return "", "", unable("drag")
}

func (p *foxPage) Upload(context.Context, string, []string) (string, error) {
	return "", unable("upload files")
}

func (p *foxPage) Wait(ctx context.Context, text string, gone bool, most time.Duration) (bool, error) {
	wanted, err := json.Marshal(text)
	if err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		value, err := p.tab.fox.Evaluate(limited, "document.body.innerText.includes("+string(wanted)+")")
		if err == nil && (string(value) == "true") != gone {
			return true, nil
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-limited.Done():
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			if failed, ok := errors.AsType[*source.Error](err); ok {
				return false, failed
			}
			return false, nil
		}
	}
}
