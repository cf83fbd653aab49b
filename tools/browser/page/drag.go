package page

import (
	"context"
	"errors"

	"github.com/chromedp/chromedp"
)

// Hover moves the mouse over an element, and returns how the snapshot names it.
func (p *Page) Hover(ctx context.Context, ref string) (hovered string, err error) {
	ctx, end := p.begin(ctx)
	defer end()
	el, err := p.find(ctx, ref)
	if err != nil {
		return "", failed(ctx, err)
	}
	at, err := p.spot(ctx, el)
	if err == nil {
		err = p.move(ctx, at, 0)
	}
	return el.String(), failed(ctx, err)
}

// Drag drags one element to another, and returns how the snapshot names them.
func (p *Page) Drag(ctx context.Context, from, to string) (dragged, target string, err error) {
	ctx, end := p.begin(ctx)
	defer end()
	dragged, target, err = p.drag(ctx, from, to)
	return dragged, target, failed(ctx, err)
}

func (p *Page) drag(ctx context.Context, from, to string) (dragged, target string, err error) {
	source, err := p.find(ctx, from)
	if err != nil {
		return "", "", err
	}
	dragged = source.String()
	// To look for the other one lets this one go.
	goal, err := p.find(ctx, to)
	if err != nil {
		return dragged, "", err
	}
	target = goal.String()
	if err := p.call(ctx, source.frame, &source.object, "n => seer.get(n)", source.number); err != nil {
		return dragged, target, err
	}
	if _, err := p.spot(ctx, source); err != nil {
		return dragged, target, err
	}
	end, err := p.spot(ctx, goal)
	if err != nil {
		return dragged, target, err
	}
	start, err := p.hit(ctx, source) // as it is scrolled now
	if _, ok := errors.AsType[*Error](err); ok {
		return dragged, target, failf("too_far", "%s and %s do not fit into the view together. Drag to something that is nearer, "+
			"or use keys.", source, goal)
	}
	if err != nil {
		return dragged, target, err
	}
	tab, ok := p.session.(*chromedp.Target)
	if !ok {
		return dragged, target, failf("unavailable", "This browser cannot drag.")
	}
	p.pointer = &end
	_, err = chromedp.DragAndDropXY(start.x, start.y, end.x, end.y)(ctx, tab)
	return dragged, target, err
}
