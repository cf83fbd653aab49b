package page

import (
	"context"
	"errors"

	"github.com/chromedp/chromedp"
)

// Hover moves the mouse over an element, and returns how the snapshot names it.
func (p *Page) Hover(ctx context.Context, ref string) (hovered string, err error) {
	return p.on(ctx, ref, func(ctx context.Context, el *element) error {
		at, err := p.mouse.spot(ctx, el)
		if err != nil {
			return err
		}
		return p.mouse.move(ctx, at)
	})
}

// Drag drags one element to another, and returns how the snapshot names them.
func (p *Page) Drag(ctx context.Context, from, to string) (dragged, target string, err error) {
	ctx, end := p.begin(ctx)
	defer end()
	dragged, target, err = p.mouse.drag(ctx, from, to)
	return dragged, target, failed(ctx, err)
}

func (m *mouse) drag(ctx context.Context, from, to string) (dragged, target string, err error) {
	source, err := m.find(ctx, from)
	if err != nil {
		return "", "", err
	}
	dragged = source.String()
	// To look for the other one lets this one go.
	goal, err := m.find(ctx, to)
	if err != nil {
		return dragged, "", err
	}
	target = goal.String()
	if err := m.call(ctx, source.frame, &source.object, "n => seer.get(n)", source.number); err != nil {
		return dragged, target, err
	}
	if _, err := m.spot(ctx, source); err != nil {
		return dragged, target, err
	}
	end, err := m.spot(ctx, goal)
	if err != nil {
		return dragged, target, err
	}
	start, err := m.hit(ctx, source) // as it is scrolled now
	if _, ok := errors.AsType[*Error](err); ok {
		return dragged, target, failf("too_far", "%s and %s do not fit into the view together. Drag to something that is nearer, "+
			"or use keys.", source, goal)
	}
	if err != nil {
		return dragged, target, err
	}
	m.put(end)
	_, err = chromedp.DragAndDropXY(start.x, start.y, end.x, end.y)(ctx, m.session)
	return dragged, target, err
}
