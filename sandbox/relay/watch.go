package relay

import (
	"fmt"
	"sync"
	"time"
)

// ticks is in how many parts the patience passes: who was itself stopped for long finds but one of them over.
const ticks = 8

// watch ends a connection whose other end gives no sign of life.
type watch struct {
	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
	seen    int64
	quiet   int // ticks since the last sign
}

// start begins to watch. The one that asks for signs of life is the client.
func (w *watch) start(c *conn, patience time.Duration, ask bool) {
	tick := patience / ticks
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(tick, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.stopped {
			return
		}
		seen := c.progress.Load()
		if w.quiet++; seen != w.seen {
			w.quiet, w.seen = 0, seen
		}
		if w.quiet >= ticks {
			w.stopped = true
			go c.lose(fmt.Errorf("the other end said nothing for %v", time.Duration(w.quiet)*tick))
			return
		}
		if ask && w.quiet%2 == 1 {
			c.send(framePing, address{}, nil)
		}
		w.timer.Reset(tick)
	})
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
