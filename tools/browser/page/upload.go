package page

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// chooserWait is how long a click may take to open a file picker.
const chooserWait = 2 * time.Second

// Upload gives files to a file field, or to the picker that a click on an element opens, and returns how the snapshot names it.
// The paths are of the machine that the browser runs on.
func (p *Page) Upload(ctx context.Context, ref string, paths []string) (uploaded string, err error) {
	return p.on(ctx, ref, func(ctx context.Context, el *element) error { return p.hand.upload(ctx, el, paths) })
}

func (h hand) upload(ctx context.Context, el *element, paths []string) error {
	params := dom.SetFileInputFilesParams{Files: paths}
	multiple := false
	if el.File {
		var field object
		if err := h.call(ctx, el.frame, &field, "el => seer.act.file(el)", el.object); err != nil {
			return err
		}
		if err := h.call(ctx, el.frame, &multiple, "el => el.multiple", field); err != nil {
			return err
		}
		if el.Disabled {
			return el.usable()
		}
		params.ObjectID = runtime.RemoteObjectID(field)
	} else {
		opened, err := h.choose(ctx, el)
		if err != nil {
			return err
		}
		params.BackendNodeID, multiple = opened.BackendNodeID, opened.Mode == cdppage.FileChooserOpenedModeSelectMultiple
	}
	if len(paths) > 1 && !multiple {
		return failf("one_file", "%s takes one file, not %d.", el, len(paths))
	}
	_, err := cdp.Call(ctx, h.session, dom.SetFileInputFiles, params)
	return err
}

// choose clicks an element and returns the picker that opens.
func (h hand) choose(ctx context.Context, el *element) (opened cdppage.EventFileChooserOpened, err error) {
	intercept := func(yes bool) error {
		_, err := cdp.Call(ctx, h.session, cdppage.SetInterceptFileChooserDialog,
			cdppage.SetInterceptFileChooserDialogParams{Enabled: yes})
		return err
	}
	if err := intercept(true); err != nil {
		return opened, err
	}
	defer func() { _ = intercept(false) }()
	events, cancel := h.session.Subscribe(cdppage.FileChooserOpened.Method)
	defer cancel()
	if err := h.click(ctx, el); err != nil {
		return opened, err
	}
	select {
	case event := <-events:
		if err := jsonv2.Unmarshal(event, &opened, chromedp.DefaultUnmarshalOptions); err != nil {
			return opened, err
		}
		if opened.BackendNodeID != 0 {
			return opened, nil
		}
	case <-time.After(chooserWait):
	case <-ctx.Done():
		return opened, ctx.Err()
	}
	return opened, failf("no_picker", "%s takes no files, and a click on it opened no file picker.", el)
}
