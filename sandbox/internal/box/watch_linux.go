package box

import (
	"fmt"
	"time"
)

// defaultPatience is how long a guest may leave all requests unanswered. A healthy one answers within microseconds,
// but machines have been seen with thousands of processes waiting for each core.
const defaultPatience = time.Minute

const (
	// ticks is in how many parts the time passes: a runner that was itself stopped for long finds but one of them over.
	ticks = 8
	// copySpeed is what a guest copies at the very least, in bytes a second.
	copySpeed = 1 << 20
)

// watch notices when a guest answers nothing any more. The box's lock guards it.
type watch struct {
	timer *time.Timer // nil before the first request
	quiet int         // ticks since the last answer, or since the first request after it
	extra int         // more ticks to wait, for what the guest has to copy
}

// asked is called with the lock held, when a request that makes the guest copy bytes has been registered.
func (b *Box) asked(bytes int) {
	w, tick := &b.watch, b.opts.Patience/ticks
	if bytes > 0 {
		w.extra += int(time.Duration(bytes) * (time.Second / copySpeed) / tick)
	}
	switch {
	case w.timer == nil:
		w.timer = time.AfterFunc(tick, b.tick)
	case len(b.waiting) == 1:
		w.quiet = 0
		w.timer.Reset(tick)
	}
}

// heard is called with the lock held, when an answer came. That a command ended is none: it says nothing about those
// who wait, and a guest could be made to say it all the time.
func (b *Box) heard() {
	b.watch.quiet = 0
	if len(b.waiting) == 0 {
		b.watch.extra = 0
		b.watch.stop()
	}
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// tick runs on a timer while requests wait.
func (b *Box) tick() {
	b.mu.Lock()
	w, tick := &b.watch, b.opts.Patience/ticks
	if b.isGone || len(b.waiting) == 0 {
		w.extra = 0
		b.mu.Unlock()
		return
	}
	w.quiet++
	silent := w.quiet >= ticks+w.extra
	if !silent {
		w.timer.Reset(tick)
	}
	quiet := time.Duration(w.quiet) * tick
	b.mu.Unlock()
	if silent {
		b.silent(fmt.Sprintf("its guest answered nothing for %v", quiet))
	}
}

// silent gives up a sandbox whose guest does not do its duty: who waits for it is told at once, then it is killed.
func (b *Box) silent(reason string) {
	b.reason.CompareAndSwap(nil, &reason)
	b.opts.Logger.Error("a sandbox does not answer and is killed", "sandbox", b.spec.ID, "reason", reason)
	b.lost()
	if err := b.Close(); err != nil {
		b.opts.Logger.Error("kill a sandbox that does not answer", "sandbox", b.spec.ID, "err", err)
	}
}
