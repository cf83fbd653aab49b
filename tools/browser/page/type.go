package page

import (
	"context"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"
)

// hand fills in forms, with mouse and keys.
type hand struct{ *mouse }

// Typed is what was typed.
type Typed struct {
	Element string // as a snapshot names it
	Text    string // what was typed; of a password only its length
	Value   string // what the field holds now, where that is something else
}

// Type replaces what a field holds, and presses Enter if submit says so.
func (p *Page) Type(ctx context.Context, ref, text string, submit bool) (typed Typed, err error) {
	_, err = p.on(ctx, ref, func(ctx context.Context, el *element) (err error) {
		typed, err = p.hand.fill(ctx, el, text)
		if err == nil && submit {
			err = p.hand.key(ctx, keyPress{key: '\r'})
		}
		return err
	})
	return typed, err
}

func (h hand) fill(ctx context.Context, el *element, text string) (Typed, error) {
	typed := Typed{Element: el.String(), Text: text}
	if el.Kind == "" && !el.File {
		if err := h.inner(ctx, el); err != nil {
			return typed, err
		}
	}
	switch {
	case el.File:
		return typed, failf("takes_files", "%s takes files and no text: use browser_upload with this ref.", el)
	case el.Kind == "checkbox", el.Kind == "radio", el.Kind == "option":
		return typed, failf("not_editable", "%s takes no text: use browser_click to choose it.", el)
	case el.Kind != "text" && el.Kind != "set" && el.Kind != "select":
		return typed, failf("not_editable", "%s takes no text. Use a textbox, searchbox, combobox or spinbutton of the snapshot; to press "+
			"keys where the focus is, click it and use browser_press.", el)
	case el.Readonly:
		return typed, failf("not_editable", "%s can only be read.", el)
	}
	if err := el.usable(); err != nil {
		return typed, err
	}
	switch el.Kind {
	case "set":
		var problem string
		if err := h.call(ctx, el.frame, &problem, "(el, text) => seer.act.set(el, text)", el.object, text); err != nil {
			return typed, err
		}
		if problem != "" {
			return typed, failf("bad_value", "%s does not take %s. %s", el, quote(shorten(text, 100)), problem)
		}
		return typed, nil
	case "select":
		return typed, h.pick(ctx, el, text)
	}
	return h.write(ctx, el, typed)
}

// inner turns to the field in an element that is none itself.
func (h hand) inner(ctx context.Context, el *element) error {
	var field object
	if err := h.call(ctx, el.frame, &field, "el => seer.act.field(el)", el.object); err != nil || field == "" {
		return err
	}
	el.object = field
	return h.call(ctx, el.frame, &el.about, "el => seer.act.ready(el)", field)
}

func (h hand) pick(ctx context.Context, el *element, text string) error {
	var picked struct {
		OK    bool     `json:"ok"`
		Have  []string `json:"have"`
		Count int      `json:"count"`
	}
	if err := h.call(ctx, el.frame, &picked, "(el, text) => seer.act.pick(el, text)", el.object, text); err != nil || picked.OK {
		return err
	}
	for i, option := range picked.Have {
		picked.Have[i] = quote(option)
	}
	have := list(picked.Have, len(picked.Have))
	if picked.Count > len(picked.Have) {
		have += fmt.Sprintf(" and %d more", picked.Count-len(picked.Have))
	}
	return failf("bad_value", "%s has not exactly one option %s. Options: %s.", el, quote(shorten(text, 100)), have)
}

// write types into a field as a person does: click, mark all, delete, type.
func (h hand) write(ctx context.Context, el *element, typed Typed) (Typed, error) {
	at, err := h.spot(ctx, el)
	if err != nil {
		return typed, err
	}
	if err := h.press(ctx, at); err != nil {
		return typed, err
	}
	var full *bool
	if err := h.call(ctx, el.frame, &full, "el => seer.act.select(el)", el.object); err != nil {
		return typed, err
	}
	if full == nil {
		return typed, failf("not_editable", "%s did not take the focus, so that nothing was typed.", el)
	}
	if *full {
		if err := h.key(ctx, keyPress{key: []rune(kb.Backspace)[0]}); err != nil {
			return typed, err
		}
	}
	if typed.Text != "" {
		if _, err := cdp.Call(ctx, h.session, input.InsertText, input.InsertTextParams{Text: typed.Text}); err != nil {
			return typed, err
		}
	}
	var value string
	if err := h.call(ctx, el.frame, &value, "el => seer.act.value(el)", el.object); err != nil {
		return typed, ctx.Err() // the page took the field away: it was typed all the same
	}
	want := typed.Text
	if el.Type == "password" {
		typed.Text = characters(want)
		want = typed.Text
		if value == "" {
			value = characters("")
		}
	}
	if value = squeeze(value); value != shorten(squeeze(want), 200) {
		typed.Value = value
	}
	return typed, nil
}

func characters(s string) string { return strconv.Itoa(utf8.RuneCountInString(s)) + " characters" }
