package box

import (
	"fmt"
	"time"
)

// defaultPatience is how long a guest may leave all requests unanswered. A healthy guest answers within microseconds, but on
// some machines thousands of processes wait for each core.
const defaultPatience = time.Minute

const (
	// ticks is into how many ticks the patience is divided: a runner that was stopped for long itself counts one tick then, not
	// all.
	ticks = 8
	// copySpeed is a lower bound of how fast a guest copies, in bytes a second.
	copySpeed = 1 << 20
)

// watch notices when a guest stops answering. The box's lock guards it.
type watch struct {
	tick  time.Duration
	look  func()      // is called after each tick while requests wait
	timer *time.Timer // nil before the first request
	quiet int         // ticks since the last answer, or since the first request after it
	extra int         // more ticks to wait, for what the guest has to copy
}

// asked records a request that makes the guest copy bytes. waiting requests have no answer yet, with this one.
func (w *watch) asked(waiting, bytes int) {
	if bytes > 0 {
		w.extra += int(time.Duration(bytes) * (time.Second / copySpeed) / w.tick)
	}
	switch {
	case w.timer == nil:
		w.timer = time.AfterFunc(w.tick, w.look)
	case waiting == 1:
		w.quiet = 0
		w.timer.Reset(w.tick)
	}
}

// answered records an answer. The end of a command does not count: it does not show that the guest answers requests, and commands
// could make the guest report ends all the time.
func (w *watch) answered(waiting int) {
	w.quiet = 0
	if waiting == 0 {
		w.extra = 0
		w.stop()
	}
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// tick is called after each tick while requests wait.
func (b *Box) tick() {
	b.mu.Lock()
	w := &b.watch
	if b.isGone || len(b.waiting) == 0 {
		w.extra = 0
		b.mu.Unlock()
		return
	}
	w.quiet++
	silent := w.quiet >= ticks+w.extra
	if !silent {
		w.timer.Reset(w.tick)
	}
	quiet := time.Duration(w.quiet) * w.tick
	b.mu.Unlock()
	if silent {
		b.silent(fmt.Sprintf("its guest answered nothing for %v", quiet))
	}
}

// silent gives up a sandbox whose guest does not answer: callers that wait get an error at once, then the guest is killed.
func (b *Box) silent(reason string) {
	b.reason.CompareAndSwap(nil, &reason)
	b.opts.Logger.Error("a sandbox does not answer and is killed", "sandbox", b.spec.ID, "reason", reason)
	b.lost()
	if err := b.Close(); err != nil {
		b.opts.Logger.Error("kill a sandbox that does not answer", "sandbox", b.spec.ID, "err", err)
	}
}
