package page

import (
	"context"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
)

// scrollStep is how far a page is scrolled, in CSS pixels.
const scrollStep = 500

// Scrolled is what scrolling did.
type Scrolled struct {
	Of     string // what was scrolled: page, or an element
	Moved  int    // by how many pixels down; 0 if nothing moved
	Top    int    // pixels above what is in view
	Height int    // of all, in pixels
	Note   string // what to know of it
}

// Scroll scrolls what holds an element; with no ref what is below the mouse, or else the page.
func (p *Page) Scroll(ctx context.Context, down bool, ref string) (Scrolled, error) {
	ctx, end := p.begin(ctx)
	defer end()
	s, err := p.mouse.scroll(ctx, down, ref)
	return s, failed(ctx, err)
}

type moved struct {
	Frame  int     `json:"frame"` // the point is in this frame
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Moved  int     `json:"moved"`
	Top    int     `json:"top"`
	Height int     `json:"height"`
	View   int     `json:"view"`
	Of     string  `json:"of"`
}

func (m *mouse) scroll(ctx context.Context, down bool, ref string) (Scrolled, error) {
	by := scrollStep
	if !down {
		by = -by
	}
	var did moved
	var at point
	if ref != "" {
		el, err := m.find(ctx, ref)
		if err != nil {
			return Scrolled{}, err
		}
		if err := m.call(ctx, el.frame, &did, "(el, by) => seer.act.scroll(el, 0, 0, by)", el.object, by); err != nil {
			return Scrolled{}, err
		}
	} else {
		main, err := m.look(ctx)
		if err != nil {
			return Scrolled{}, err
		}
		if at, err = m.aim(ctx, main); err != nil {
			return Scrolled{}, err
		}
		if did, err = m.scrollAt(ctx, main, at, by); err != nil {
			return Scrolled{}, err
		}
	}
	s := Scrolled{Of: did.Of, Moved: did.Moved, Top: did.Top, Height: did.Height}
	end := "start"
	if down {
		end = "end"
	}
	switch {
	case did.Moved != 0 && down && did.Top+did.View >= did.Height-1:
		s.Note = "This is the end, unless more is loaded now."
	case did.Moved != 0:
	case did.Height > did.View+1:
		s.Note = fmt.Sprintf("Nothing moved: the %s is at its %s.", did.Of, end)
	case ref != "":
		s.Note = "Nothing moved: this element is in nothing that scrolls."
	default:
		s.Note = "Nothing moved: the page has nothing to scroll here. A turn of the mouse wheel was sent to it."
		// The library's type leaves a deltaX of zero out, which the browser does not accept.
		return s, m.session.Call(ctx, input.CommandDispatchMouseEvent, map[string]any{
			"type": input.DispatchMouseEventTypeMouseWheel, "x": at.x, "y": at.y, "deltaX": 0, "deltaY": by}, &cdp.Empty{})
	}
	return s, nil
}

// aim is where the mouse is, or else the middle of the view.
func (m *mouse) aim(ctx context.Context, main *frame) (point, error) {
	if m.at != nil && m.over == main.loader {
		return *m.at, nil
	}
	var view [4]float64
	err := m.call(ctx, main, &view, "() => seer.act.view()")
	return point{view[0] / 2, view[1] / 2}, err
}

// scrollAt scrolls what is at a place of a frame: the innermost that can still move.
func (m *mouse) scrollAt(ctx context.Context, f *frame, at point, by int) (moved, error) {
	var did moved
	if err := m.call(ctx, f, &did, "(x, y, by) => seer.act.scroll(null, x, y, by)", at.x, at.y, by); err != nil || did.Frame == 0 {
		return did, err
	}
	for _, kid := range f.kids {
		if kid.number != did.Frame {
			continue
		}
		inner, err := m.scrollAt(ctx, kid, point{did.X, did.Y}, by)
		if err != nil || inner.Moved != 0 {
			if inner.Of == "page" {
				inner.Of = fmt.Sprintf("frame f%d", kid.number)
			}
			return inner, err
		}
	}
	err := m.call(ctx, f, &did, "by => seer.act.scroll(document.scrollingElement ?? document.documentElement, 0, 0, by)", by)
	return did, err
}
