package page

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	refForm  = regexp.MustCompile(`^@?(?:ref=)?(?:f(\d{1,9}))?e(\d{1,9})$`)
	lineForm = regexp.MustCompile(`\[ref=((?:f\d{1,9})?e\d{1,9})\]`)
	nameForm = regexp.MustCompile(`^(?:- )?([a-z]+)(?: "((?:[^"\\]|\\.)*)")?(?: \[[a-z0-9=-]+\])*:?$`)
)

// element is an element of the page that a command acts on.
type element struct {
	frame  *frame
	number int // its ref
	object object
	about
}

// about is what an element is.
type about struct {
	Role     string `json:"role"`
	Name     string `json:"name"`
	Kind     string `json:"kind"` // how it is filled in
	Type     string `json:"type"` // of an input
	Visible  bool   `json:"visible"`
	Disabled bool   `json:"disabled"`
	Readonly bool   `json:"readonly"`
	File     bool   `json:"file"` // takes files
}

// String names the element as its line in a snapshot does.
func (a about) String() string {
	if a.Name == "" {
		return a.Role
	}
	return a.Role + " " + quote(a.Name)
}

// find is the element that a ref means: e12, f2e7, a line of a snapshot with its ref, or role and name of one element only.
func (d *document) find(ctx context.Context, ref string) (*element, error) {
	ref = strings.TrimSpace(ref)
	if in := lineForm.FindStringSubmatch(ref); in != nil {
		ref = in[1]
	}
	parts := refForm.FindStringSubmatch(ref)
	if parts == nil {
		return d.named(ctx, ref)
	}
	if _, err := d.look(ctx); err != nil {
		return nil, err
	}
	frame, _ := strconv.Atoi(parts[1])
	number, _ := strconv.Atoi(parts[2])
	return d.take(ctx, ref, frame, number)
}

// take is the element with a number in a frame.
func (d *document) take(ctx context.Context, ref string, inFrame, number int) (*element, error) {
	for _, f := range d.frames {
		if f.number != inFrame {
			continue
		}
		if number >= f.next {
			return nil, failf("unknown_ref", "No snapshot has shown %s. Take a snapshot and use a ref that is in it.", ref)
		}
		el := &element{frame: f, number: number}
		if err := d.call(ctx, f, &el.object, "n => seer.get(n)", number); err != nil {
			return nil, err
		}
		if el.object == "" {
			break
		}
		return el, d.call(ctx, f, &el.about, "el => seer.act.ready(el)", el.object)
	}
	if inFrame > d.count {
		return nil, failf("unknown_ref", "No snapshot has shown %s. Take a snapshot and use a ref that is in it.", ref)
	}
	return nil, failf("stale_ref", "The element %s is not on the page any more. Take a new snapshot and use a ref that is in it.",
		ref)
}

// named is the element that has a role and a name.
func (d *document) named(ctx context.Context, text string) (*element, error) {
	parts := nameForm.FindStringSubmatch(text)
	if parts == nil {
		return nil, failf("bad_ref", `%q is not a ref. A ref is written as the snapshot shows it, such as e12 or f2e7, or as role and `+
			`name, such as button "Send".`, shorten(text, 100))
	}
	role, name := parts[1], regexp.MustCompile(`\\(.)`).ReplaceAllString(parts[2], "$1")
	found, err := d.walk(ctx)
	if err != nil {
		return nil, err
	}
	var refs, others []string
	var one *item
	for i := range found.items {
		switch it := &found.items[i]; {
		case it.Role != role || it.Ref == 0:
		case it.Name == name:
			refs = append(refs, it.id())
			one = it
		default:
			others = append(others, it.Role+" "+quote(it.Name))
		}
	}
	switch {
	case len(refs) == 1:
		return d.take(ctx, one.id(), one.in.number, one.Ref)
	case len(refs) > 1:
		return nil, failf("ambiguous_ref", "%d elements of the page are %s: use one of the refs %s.", len(refs), text, list(refs, 20))
	case len(others) > 0:
		slices.Sort(others)
		return nil, failf("not_found", "No element of the page is %s. It has %s.", text, list(slices.Compact(others), 10))
	}
	return nil, failf("not_found", "No element of the page is %s, and none with the role %s can be used. Take a snapshot to see what "+
		"the page has.", text, role)
}

// list joins some of the words, and says how many more there are.
func list(words []string, most int) string {
	if len(words) <= most {
		return strings.Join(words, ", ")
	}
	return strings.Join(words[:most], ", ") + fmt.Sprintf(" and %d more", len(words)-most)
}

// usable is an error for an element that cannot be acted on as it is.
func (e *element) usable() error {
	switch {
	case e.Disabled:
		return failf("disabled", "%s is disabled. Something else on the page has to be filled in or chosen first.", e)
	case !e.Visible:
		return failf("not_visible", "%s is on the page but hidden. Open what it is in, then take a new snapshot.", e)
	}
	return nil
}
