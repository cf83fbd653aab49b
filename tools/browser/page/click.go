package page

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// mouse is the mouse over the page.
type mouse struct {
	*document
	at   *point       // where it is; nil before it was moved
	over cdp.LoaderID // the document that it is over
}

// Click clicks an element, or selects an option, and returns how the snapshot names it.
func (p *Page) Click(ctx context.Context, ref string) (clicked string, err error) {
	return p.on(ctx, ref, p.mouse.click)
}

func (m *mouse) click(ctx context.Context, el *element) error {
	if el.File {
		return failf("takes_files", "%s takes files: use browser_upload with this ref.", el)
	}
	if err := el.usable(); err != nil {
		return err
	}
	switch {
	case el.Kind == "option":
		var problem string
		if err := m.call(ctx, el.frame, &problem, "el => seer.act.option(el)", el.object); err != nil {
			return err
		}
		if problem != "" {
			return &Error{"disabled", problem}
		}
		return nil
	case el.Kind == "select" && el.Role == "combobox":
		return failf("native_list", "The browser draws the list of %s outside of the page: click one of its options in the snapshot, "+
			"or type an option's text into it.", el)
	case el.Kind == "set" && el.Type == "color":
		return failf("native_picker", "The browser draws the picker of %s outside of the page: type a colour such as #ff8800 "+
			"into it.", el)
	}
	at, err := m.spot(ctx, el)
	if err != nil {
		return err
	}
	return m.press(ctx, at)
}

// press clicks at a place.
func (m *mouse) press(ctx context.Context, at point) error {
	if err := m.move(ctx, at); err != nil {
		return err
	}
	_, err := chromedp.MouseClickXY(at.x, at.y)(ctx, m.session)
	return err
}

// put remembers where the mouse is.
func (m *mouse) put(at point) {
	m.at = &at
	if main, err := m.top(); err == nil {
		m.over = main.loader
	}
}

// move moves the mouse.
func (m *mouse) move(ctx context.Context, at point) error {
	m.put(at)
	_, err := chromedp.MouseEvent(chromedp.MouseMoved, at.x, at.y)(ctx, m.session)
	return err
}

// spot scrolls an element into view and returns where the mouse hits it.
func (m *mouse) spot(ctx context.Context, el *element) (point, error) {
	id := runtime.RemoteObjectID(el.object)
	if _, err := cdp.Call(ctx, m.session, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{ObjectID: id}); refused(err) {
		return point{}, failf("not_visible", "%s has no place on the page where it could be clicked. Take a new snapshot.", el)
	} else if err != nil {
		return point{}, err
	}
	at, err := m.hit(ctx, el)
	if e, ok := err.(*Error); !ok || e.Class != "covered" {
		return at, err
	}
	// A bar that stands still may cover the edge that it was scrolled to.
	if err := m.call(ctx, el.frame, nil, "el => seer.act.centre(el)", el.object); err != nil {
		return point{}, err
	}
	return m.hit(ctx, el)
}

// hit is the first middle of an element's parts that the mouse would hit.
func (m *mouse) hit(ctx context.Context, el *element) (point, error) {
	main, err := m.top()
	if err != nil {
		return point{}, err
	}
	id := runtime.RemoteObjectID(el.object)
	quads, err := cdp.Call(ctx, m.session, dom.GetContentQuads, dom.GetContentQuadsParams{ObjectID: id})
	if refused(err) {
		return point{}, failf("not_visible", "%s has no place on the page where it could be clicked. Take a new snapshot.", el)
	}
	if err != nil {
		return point{}, err
	}
	var view [4]float64 // width, height, scrolled by x and y
	if err := m.call(ctx, main, &view, "() => seer.act.view()"); err != nil {
		return point{}, err
	}
	cover := ""
	for i, quad := range quads.Quads {
		if i == 4 || len(quad) < 8 {
			break
		}
		// What reaches out of the view is hit in the middle of what is in it.
		left, right := max(0, min(quad[0], quad[2], quad[4], quad[6])), min(view[0], max(quad[0], quad[2], quad[4], quad[6]))
		top, bottom := max(0, min(quad[1], quad[3], quad[5], quad[7])), min(view[1], max(quad[1], quad[3], quad[5], quad[7]))
		if right-left < 1 || bottom-top < 1 {
			continue
		}
		at := point{(left + right) / 2, (top + bottom) / 2}
		over, err := m.above(ctx, el, point{at.x + view[2], at.y + view[3]})
		if err != nil {
			return point{}, err
		}
		if over == "" {
			return at, nil
		}
		if cover == "" {
			cover = over
		}
	}
	if cover == "" {
		return point{}, failf("not_visible", "%s has no size, so that it cannot be clicked. Take a new snapshot.", el)
	}
	return point{}, failf("covered", "%s is covered by %s. Close or move that first, or scroll.", el, cover)
}

// top is the frame of the page itself.
func (d *document) top() (*frame, error) {
	for _, f := range d.frames {
		if f.number == 0 {
			return f, nil
		}
	}
	return nil, failf("page_changed", "The page is not there any more. Take a new snapshot.")
}

// above says what lies over an element at a place of the document; "" if nothing does.
func (m *mouse) above(ctx context.Context, el *element, at point) (string, error) {
	found, err := cdp.Call(ctx, m.session, dom.GetNodeForLocation, dom.GetNodeForLocationParams{X: int64(at.x), Y: int64(at.y)})
	if refused(err) {
		return "nothing that can be clicked", nil
	}
	if err != nil {
		return "", err
	}
	f := m.frames[found.FrameID]
	if f == nil {
		return "a frame that cannot be reached", nil
	}
	node, err := m.element(ctx, f, found.BackendNodeID)
	if err != nil {
		return "", err
	}
	var over string
	if f == el.frame {
		err = m.call(ctx, f, &over, "(el, hit) => seer.act.covers(el, hit)", el.object, node)
		return over, err
	}
	if el.Role == "iframe" {
		return "", nil
	}
	err = m.call(ctx, f, &over, "hit => seer.act.describe(hit.nodeType === 1 ? hit : hit.parentElement)", node)
	return over, err
}
