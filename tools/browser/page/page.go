// Package page says what is on a web page, and acts on it.
//
// A Page looks through a script in a world of its own in each frame, which the page cannot see. Elements that can be acted on
// have refs (e12; f2e7 in a frame), and an element keeps its ref for as long as its document lives.
package page

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Version changes when the snapshot of a page would be another text than before.
const Version = "page 1"

// Limits of what is looked at.
const (
	limit       = 30 * time.Second // of a command
	maxElements = 20_000
	maxFrames   = 50
)

//go:embed page.js
var looking string

//go:embed act.js
var acting string

// Error is why something could not be done, for the model.
type Error struct {
	Class   string // short and stable, e.g. stale_ref, covered, not_editable
	Message string
}

func (e *Error) Error() string { return e.Message }

func failf(class, format string, args ...any) *Error {
	return &Error{Class: class, Message: fmt.Sprintf(format, args...)}
}

// Page is what a tab shows. Its methods may be called from many goroutines and run one after the other. The session has the Page
// domain enabled, and reaches all frames: the browser runs without site isolation.
type Page struct {
	mu    sync.Mutex // held by a command
	doc   *document
	mouse *mouse
	hand  hand
	last  last
}

// New is the page of a tab.
func New(session *chromedp.Target) *Page {
	doc := &document{session: session, frames: map[cdp.FrameID]*frame{}}
	m := &mouse{document: doc}
	return &Page{doc: doc, mouse: m, hand: hand{m}}
}

// Document names the document that the tab shows: another one after each load.
func (p *Page) Document(ctx context.Context) (string, error) {
	tree, err := cdp.Call(ctx, p.doc.session, cdppage.GetFrameTree, cdp.Empty{})
	if err != nil {
		return "", failed(ctx, err)
	}
	return string(tree.FrameTree.Frame.LoaderID), nil
}

// frame is a frame of the page.
type frame struct {
	id     cdp.FrameID
	number int // 0 is the page itself
	next   int // the next ref; a frame that shows another document goes on counting
	world  runtime.ExecutionContextID
	loader cdp.LoaderID
	kids   []*frame
}

// all are the frame and the frames in it.
func (f *frame) all() iter.Seq[*frame] {
	return func(yield func(*frame) bool) { f.each(yield) }
}

func (f *frame) each(yield func(*frame) bool) bool {
	if !yield(f) {
		return false
	}
	for _, kid := range f.kids {
		if !kid.each(yield) {
			return false
		}
	}
	return true
}

// begin starts a command: it waits for the one before, and bounds its time.
func (p *Page) begin(ctx context.Context) (context.Context, func()) {
	p.mu.Lock()
	ctx, cancel := context.WithTimeoutCause(ctx, limit,
		failf("timeout", "The page did not answer within %s; its scripts may be busy. Take a snapshot, or navigate again.", limit))
	return ctx, func() { cancel(); p.mu.Unlock() }
}

// on does something to the element that a ref means, and returns how the snapshot names it.
func (p *Page) on(ctx context.Context, ref string, do func(ctx context.Context, el *element) error) (named string, err error) {
	ctx, end := p.begin(ctx)
	defer end()
	el, err := p.doc.find(ctx, ref)
	if err == nil {
		named, err = el.String(), do(ctx, el)
	}
	return named, failed(ctx, err)
}

// failed is the error of a command, with the page's own reason where it has one. What the connection fails with stays as it is.
func failed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if refused(err) {
		return failf("page_changed", "The page changed while this was done (%v). Take a new snapshot.", err)
	}
	return err
}

// thrown is an exception of a script.
type thrown string

func (t thrown) Error() string { return string(t) }

// refused says that the browser was reached and answered with an error.
func refused(err error) bool {
	_, protocol := errors.AsType[*cdproto.Error](err)
	_, exception := errors.AsType[thrown](err)
	return protocol || exception
}

// document is what the page's frames show, seen through the script in each.
type document struct {
	session *chromedp.Target
	frames  map[cdp.FrameID]*frame
	count   int // frames that got a number
}

// look finds the frames of the page and has the script in each.
func (d *document) look(ctx context.Context) (*frame, error) {
	_, _ = cdp.Call(ctx, d.session, runtime.ReleaseObjectGroup, runtime.ReleaseObjectGroupParams{ObjectGroup: group})
	tree, err := cdp.Call(ctx, d.session, cdppage.GetFrameTree, cdp.Empty{})
	if err != nil {
		return nil, err
	}
	seen := map[cdp.FrameID]*frame{}
	main, err := d.enter(ctx, tree.FrameTree, seen)
	if err != nil {
		return nil, err
	}
	d.frames = seen
	return main, nil
}

func (d *document) enter(ctx context.Context, tree *cdppage.FrameTree, seen map[cdp.FrameID]*frame) (*frame, error) {
	f := d.frames[tree.Frame.ID]
	if f == nil {
		f = &frame{id: tree.Frame.ID, next: 1}
		if tree.Frame.ParentID != "" {
			d.count++
			f.number = d.count
		}
	}
	seen[f.id], f.loader, f.kids = f, tree.Frame.LoaderID, nil
	world, err := cdp.Call(ctx, d.session, cdppage.CreateIsolatedWorld,
		cdppage.CreateIsolatedWorldParams{FrameID: f.id, WorldName: "seer"})
	if err != nil {
		return nil, err
	}
	if f.world != world.ExecutionContextID {
		f.world = world.ExecutionContextID
		script := runtime.EvaluateParams{Expression: looking + acting + "\n0", ContextID: f.world, Silent: new(true)}
		got, err := cdp.Call(ctx, d.session, runtime.Evaluate, script)
		if err == nil && got.ExceptionDetails != nil {
			err = exception(got.ExceptionDetails)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, kid := range tree.ChildFrames {
		if len(seen) >= maxFrames {
			break
		}
		child, err := d.enter(ctx, kid, seen)
		if err == nil {
			err = d.mark(ctx, f, child)
		}
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err == nil { // else the frame went away
			f.kids = append(f.kids, child)
		}
	}
	return f, nil
}

// mark tells the script of a frame which of its elements a child is.
func (d *document) mark(ctx context.Context, parent, child *frame) error {
	owner, err := cdp.Call(ctx, d.session, dom.GetFrameOwner, dom.GetFrameOwnerParams{FrameID: child.id})
	if err != nil {
		return err
	}
	el, err := d.element(ctx, parent, owner.BackendNodeID)
	if err != nil {
		return err
	}
	return d.call(ctx, parent, nil, "(el, n) => seer.frame(el, n)", el, child.number)
}

// object is a value that stays in the browser.
type object runtime.RemoteObjectID

// element is a node of a frame, as the frame's script sees it.
func (d *document) element(ctx context.Context, f *frame, id cdp.BackendNodeID) (object, error) {
	node, err := cdp.Call(ctx, d.session, dom.ResolveNode,
		dom.ResolveNodeParams{BackendNodeID: id, ExecutionContextID: f.world, ObjectGroup: group})
	if err != nil {
		return "", err
	}
	return object(node.Object.ObjectID), nil
}

// group holds the objects of a command. The next one lets them go: after a click, a dialog may stop the page.
const group = "seer"

// call calls a function in a frame's world. The result is decoded from JSON, or stays in the browser as an object: "" is null.
func (d *document) call(ctx context.Context, f *frame, result any, function string, args ...any) error {
	stays, isObject := result.(*object)
	params := runtime.CallFunctionOnParams{FunctionDeclaration: function, ExecutionContextID: f.world, Silent: new(true),
		AwaitPromise: new(true), ReturnByValue: new(!isObject), ObjectGroup: group}
	for _, arg := range args {
		if o, ok := arg.(object); ok {
			params.Arguments = append(params.Arguments, &runtime.CallArgument{ObjectID: runtime.RemoteObjectID(o)})
			continue
		}
		value, err := json.Marshal(arg)
		if err != nil {
			return err
		}
		params.Arguments = append(params.Arguments, &runtime.CallArgument{Value: jsonv2.Value(value)})
	}
	got, err := cdp.Call(ctx, d.session, runtime.CallFunctionOn, params)
	if err == nil && got.ExceptionDetails != nil {
		err = exception(got.ExceptionDetails)
	}
	switch {
	case err != nil:
		return err
	case isObject:
		*stays = object(got.Result.ObjectID)
		return nil
	case result == nil:
		return nil
	}
	return json.Unmarshal(got.Result.Value, result)
}

func exception(d *runtime.ExceptionDetails) error {
	if d.Exception != nil && d.Exception.Description != "" {
		return thrown(d.Exception.Description)
	}
	return thrown(d.Text)
}

// point is a place in the viewport, in CSS pixels.
type point struct{ x, y float64 }
