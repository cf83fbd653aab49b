package browser

import (
	"time"

	"github.com/chromedp/cdproto/cdp"
)

// Session is how commands reach the page.
func (t *Tab) Session() cdp.Session { return t.session }

// SetFlags adds flags to those that the browser starts with.
func SetFlags(c *Config, flags ...string) { c.flags = flags }

// SetPatience bounds how long a dialog waits for an answer.
func SetPatience(c *Config, patience time.Duration) { c.patience = patience }

// SetRoom bounds downloads, in bytes.
func SetRoom(c *Config, room int64) { c.room = room }
