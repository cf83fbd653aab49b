package page

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"
)

// keys are the keys that have a name.
var keys = []struct{ name, key string }{
	{"Enter", kb.Enter}, {"Tab", kb.Tab}, {"Escape", kb.Escape}, {"Backspace", kb.Backspace}, {"Delete", kb.Delete},
	{"Space", " "}, {"ArrowUp", kb.ArrowUp}, {"ArrowDown", kb.ArrowDown}, {"ArrowLeft", kb.ArrowLeft}, {"ArrowRight", kb.ArrowRight},
	{"Home", kb.Home}, {"End", kb.End}, {"PageUp", kb.PageUp}, {"PageDown", kb.PageDown}, {"Insert", kb.Insert},
	{"ContextMenu", kb.ContextMenu}, {"F1", kb.F1}, {"F2", kb.F2}, {"F3", kb.F3}, {"F4", kb.F4}, {"F5", kb.F5}, {"F6", kb.F6},
	{"F7", kb.F7}, {"F8", kb.F8}, {"F9", kb.F9}, {"F10", kb.F10}, {"F11", kb.F11}, {"F12", kb.F12},
}

// otherNames are how else models call keys.
var otherNames = map[string]string{
	"return": "Enter", "esc": "Escape", "del": "Delete", "spacebar": "Space", "up": "ArrowUp", "down": "ArrowDown",
	"left": "ArrowLeft", "right": "ArrowRight", "pgup": "PageUp", "pgdn": "PageDown", "pgdown": "PageDown", "plus": "+",
}

var modifiers = []struct {
	names []string
	bit   kb.Modifier
	key   string
}{
	{[]string{"control", "ctrl"}, kb.ModifierCtrl, kb.Control},
	{[]string{"shift"}, kb.ModifierShift, kb.Shift},
	{[]string{"alt", "option"}, kb.ModifierAlt, kb.Alt},
	{[]string{"meta", "command", "cmd", "super", "win"}, kb.ModifierMeta, kb.Meta},
}

// keyPress is a key with the modifiers that are held.
type keyPress struct {
	key  rune
	held kb.Modifier
}

// Press presses a key where the focus is: Enter, a, Control+a, Shift+Tab.
func (p *Page) Press(ctx context.Context, key string) error {
	press, err := parseKey(key)
	if err != nil {
		return err
	}
	ctx, end := p.begin(ctx)
	defer end()
	return failed(ctx, p.hand.key(ctx, press))
}

func parseKey(text string) (keyPress, error) {
	var press keyPress
	rest := strings.TrimSpace(text)
	if rest == "" && text != "" {
		rest = "Space"
	}
	for {
		first, more, ok := strings.Cut(rest, "+")
		bit := modifier(first)
		if !ok || bit == 0 || more == "" {
			break
		}
		press.held |= bit
		rest = more
	}
	if other, ok := otherNames[strings.ToLower(rest)]; ok {
		rest = other
	}
	if utf8.RuneCountInString(rest) == 1 {
		press.key, _ = utf8.DecodeRuneInString(rest)
		if unicode.IsPrint(press.key) {
			if press.held&kb.ModifierShift != 0 {
				press.key = unicode.ToUpper(press.key)
			}
			return press, nil
		}
	}
	names := []string{}
	for _, k := range keys {
		if strings.EqualFold(k.name, rest) {
			press.key, _ = utf8.DecodeRuneInString(k.key)
			return press, nil
		}
		names = append(names, k.name)
	}
	return press, failf("unknown_key", "There is no key %s. Keys are single characters and %s; Control+, Shift+, Alt+ and Meta+ may "+
		"stand before one, such as Control+a. To write a text, use browser_type.", quote(shorten(text, 50)), strings.Join(names, ", "))
}

func modifier(name string) kb.Modifier {
	for _, m := range modifiers {
		for _, n := range m.names {
			if strings.EqualFold(n, strings.TrimSpace(name)) {
				return m.bit
			}
		}
	}
	return 0
}

// key presses a key and lets it go.
func (h hand) key(ctx context.Context, press keyPress) error {
	var down, up []*input.DispatchKeyEventParams
	held := kb.Modifier(0)
	for _, m := range modifiers {
		if press.held&m.bit == 0 {
			continue
		}
		held |= m.bit
		events := kb.Encode([]rune(m.key)[0])
		events[0].Modifiers = int64(held)
		down, up = append(down, events[0]), append(up, events[len(events)-1])
	}
	writes := press.held&^kb.ModifierShift == 0
	for _, e := range kb.Encode(press.key) {
		e.Modifiers |= int64(held)
		if e.Type == kb.KeyChar && !writes {
			continue
		}
		down = append(down, e)
	}
	for _, e := range append(down, up...) {
		if _, err := cdp.Call(ctx, h.session, input.DispatchKeyEvent, *e); err != nil {
			return err
		}
	}
	return nil
}
