package relay

import (
	"fmt"
	"time"
)

// ticks is into how many ticks the patience is divided. A process that was stopped for long itself counts one tick then, not
// all.
const ticks = 8

// watch returns when the connection has ended, and ends it when the peer shows no sign of life. It calls ask, if any, to get
// one.
func (l *link) watch(patience time.Duration, ask func()) {
	tick := time.NewTicker(patience / ticks)
	defer tick.Stop()
	seen := l.progress.Load()
	for quiet := 0; ; {
		select {
		case <-tick.C:
		case <-l.gone:
			return
		}
		if now := l.progress.Load(); now != seen {
			quiet, seen = 0, now
			continue
		}
		if quiet++; quiet == ticks {
			l.lose(fmt.Errorf("the other end said nothing for %v", patience))
		} else if ask != nil && quiet%2 == 1 {
			go ask()
		}
	}
}
