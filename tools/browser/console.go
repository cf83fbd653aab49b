package browser

import (
	"encoding/json"
	"strings"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"

	"trajgen/tools/internal/chars"
)

// Message is what a page wrote to its console, or an error of it.
type Message struct {
	Type string `json:"type"` // log, warning, error, exception, …
	Text string `json:"text"`
}

const (
	maxMessages = 200
	maxText     = 2000 // characters of a message
)

// console keeps the last messages of a tab.
type console struct {
	all     []Message
	dropped int
}

func (c *console) add(kind, text string) {
	if len(c.all) == maxMessages {
		c.all = c.all[1:]
		c.dropped++
	}
	c.all = append(c.all, Message{kind, chars.First(text, maxText, "…")})
}

func (c *console) called(e *runtime.EventConsoleAPICalled) {
	var parts []string
	for _, arg := range e.Args {
		parts = append(parts, shown(arg))
	}
	c.add(string(e.Type), strings.Join(parts, " "))
}

// shown is a value as a console shows it.
func shown(o *runtime.RemoteObject) string {
	switch {
	case o.Type == "string":
		var text string
		if json.Unmarshal(o.Value, &text) == nil {
			return text
		}
		return string(o.Value)
	case o.UnserializableValue != "":
		return string(o.UnserializableValue)
	case o.Description != "":
		return o.Description
	case len(o.Value) > 0:
		return string(o.Value)
	}
	return string(o.Type)
}

func (c *console) thrown(e *runtime.EventExceptionThrown) {
	c.add("exception", exception(e.ExceptionDetails))
}

func exception(e *runtime.ExceptionDetails) string {
	if e.Exception != nil {
		return e.Text + " " + shown(e.Exception)
	}
	return e.Text
}

func (c *console) logged(e *log.EventEntryAdded) {
	text := e.Entry.Text
	if e.Entry.URL != "" {
		text += " (" + e.Entry.URL + ")"
	}
	c.add(string(e.Entry.Level), text)
}

// Console is the last messages of the tab, and how many there were before them.
func (t *Tab) Console(clear bool) (messages []Message, dropped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	messages, dropped = append([]Message{}, t.console.all...), t.console.dropped
	if clear {
		t.console = console{}
	}
	return messages, dropped
}
