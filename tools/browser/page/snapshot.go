package page

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"
)

// SnapshotOptions say how much of a page a snapshot shows.
type SnapshotOptions struct {
	// Full shows all of the text, in pages; else long text is shortened, and what is in view comes first.
	Full bool
	// Part is the page of a full snapshot, from 1; 0 is 1.
	Part int
}

// Snapshot is what is on a page.
type Snapshot struct {
	Title    string
	Text     string
	Elements int // that have a ref, on the whole page
	Parts    int // pages of a full snapshot
}

// Snapshot lists what is on the page. What is new or changed since the last snapshot of the same document is marked.
func (p *Page) Snapshot(ctx context.Context, o SnapshotOptions) (Snapshot, error) {
	ctx, end := p.begin(ctx)
	defer end()
	seen, err := p.doc.walk(ctx)
	if err != nil {
		return Snapshot{}, failed(ctx, err)
	}
	s := Snapshot{Title: seen.Title}
	for _, it := range seen.items {
		if it.Ref != 0 {
			s.Elements++
		}
	}
	s.Text, s.Parts = p.last.show(seen, o)
	return s, nil
}

// item is a line of a snapshot.
type item struct {
	Depth  int      `json:"d"`
	Role   string   `json:"r"`
	Name   string   `json:"n"`
	Text   string   `json:"t"`
	Value  string   `json:"v"`
	States []string `json:"s"`
	Ref    int      `json:"e"`
	Frame  int      `json:"f"` // the frame that the element holds
	Where  int      `json:"w"` // 0 in view, -1 above, 1 below
	Extra  bool     `json:"x"` // only in a full snapshot

	in *frame // has the element
}

// seen is what a walk over the page found.
type seen struct {
	Title   string `json:"title"`
	Loading bool   `json:"loading"`
	Items   []item `json:"items"`
	Next    int    `json:"next"`
	Left    int    `json:"left"`
	Hollow  int    `json:"hollow"`
	Modal   bool   `json:"modal"`
	Visited int    `json:"visited"`

	items  []item // of all frames
	loader cdp.LoaderID
	left   int // elements that were not looked at, in all frames
}

// walk lists what is in all frames.
func (d *document) walk(ctx context.Context) (*seen, error) {
	main, err := d.look(ctx)
	if err != nil {
		return nil, err
	}
	budget := maxElements
	found, err := d.walkFrame(ctx, main, &budget)
	if err != nil {
		return nil, err
	}
	found.loader = main.loader
	return found, nil
}

func (d *document) walkFrame(ctx context.Context, f *frame, budget *int) (*seen, error) {
	found, err := d.list(ctx, f, *budget)
	if err == nil && found.Hollow > 0 && d.reveal(ctx, f) {
		found, err = d.list(ctx, f, *budget)
	}
	if err != nil {
		return nil, err
	}
	*budget -= found.Visited
	found.left = found.Left
	for _, it := range found.Items {
		it.in = f
		found.items = append(found.items, it)
		if it.Frame == 0 {
			continue
		}
		for _, kid := range f.kids {
			if kid.number != it.Frame {
				continue
			}
			inner, err := d.walkFrame(ctx, kid, budget)
			if err != nil {
				if ctx.Err() != nil {
					return nil, err
				}
				break // the frame went away
			}
			found.left += inner.left
			for _, sub := range inner.items {
				sub.Depth += it.Depth + 1
				if it.Where != 0 {
					sub.Where = it.Where
				}
				found.items = append(found.items, sub)
			}
		}
	}
	found.Items = nil
	return found, nil
}

func (d *document) list(ctx context.Context, f *frame, budget int) (*seen, error) {
	var found seen
	err := d.call(ctx, f, &found, "o => seer.walk(o)", map[string]int{"next": f.next, "budget": budget})
	f.next = max(f.next, found.Next)
	return &found, err
}

// reveal finds the closed shadow roots of a frame's empty custom elements for its script.
func (d *document) reveal(ctx context.Context, f *frame) (found bool) {
	var hosts object
	if err := d.call(ctx, f, &hosts, "() => seer.hollow()"); err != nil {
		return false
	}
	list, err := cdp.Call(ctx, d.session, runtime.GetProperties,
		runtime.GetPropertiesParams{ObjectID: runtime.RemoteObjectID(hosts), OwnProperties: new(true)})
	if err != nil {
		return false
	}
	for _, property := range list.Result {
		if property.Value == nil || property.Value.Subtype != runtime.RemoteObjectSubtypeNode {
			continue
		}
		host, err := cdp.Call(ctx, d.session, dom.DescribeNode,
			dom.DescribeNodeParams{ObjectID: property.Value.ObjectID, Pierce: new(true)})
		if err != nil {
			continue
		}
		for _, root := range host.Node.ShadowRoots {
			if root.ShadowRootType != cdp.ShadowRootTypeClosed {
				continue
			}
			if el, err := d.element(ctx, f, root.BackendNodeID); err == nil {
				found = d.call(ctx, f, nil, "root => seer.reveal(root)", el) == nil || found
			}
		}
	}
	return found
}
