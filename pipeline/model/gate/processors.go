package gate

import (
	"sync"
	"time"
)

// Machine describes the machine to Processors.
type Machine struct {
	Processors int        // that goroutines run on
	Backlog    func() int // goroutines that could run and wait for a processor
	Now        func() time.Time
}

const (
	// beat is how often permissions are given out, and stored is how many beats' worth of unused permissions are kept.
	beat, stored = 5 * time.Millisecond, 4
	// crowd is the backlog of a processor that halves the rate: less than a millisecond's worth of work.
	crowd = 8
	// guess is the first estimate of how many requests each second a processor has time for, and slow is the least estimate.
	guess, slow = 1500, 50
	// always is how many requests in flight for each processor never wait for it: so few cannot make a long queue.
	always = 32
	// eager is the allowed rate without a backlog, as a multiple of the measured rate: only a higher rate shows whether there is
	// time for more. No request goes out during a garbage collection; with less than 1.5, a process that collects for a third of
	// its time would lower its rate again and again.
	eager = 1.5
	// memory is the time over which the rate is averaged. It is longer than a garbage collection, which slows all goroutines
	// for a while.
	memory = 4 * time.Second
	// rising is how many times faster the average rises than it falls: only spare time makes the rate look higher. With 4, the
	// scheduler's delay (p99, 50,000 in flight) is two to three times as long.
	rising = 2
	// glance is how often the average is updated.
	glance = 100 * time.Millisecond
)

// Processors hold back requests that this process has no processor time for. Endpoints would take them, and the replies would
// then wait for a processor: no request would end sooner, each would seem slow and fill memory meanwhile, and its timeouts
// would run.
//
// Requests go out evenly, at a rate that falls with the backlog of goroutines: replies come back spaced as their requests were
// sent, so a burst would return as a burst again and again. Where other processes use the machine, the backlog grows as soon
// as this one sends more than the rest of the machine handles.
//
// All gates of a process share one Processors, and take turns. It is safe for concurrent use. Nil holds nothing back.
type Processors struct {
	machine Machine

	mu       sync.Mutex // guards the fields below; taken under a gate's lock, never the other way round
	inFlight int
	tokens   float64 // permissions to send
	starts   float64 // permissions to begin an episode
	filled   time.Time
	waiting  []*Gate       // gates with a request held back, in the order of their turns
	turn     *Gate         // the gate that may take a permission before those in waiting
	poking   bool          // a goroutine is giving turns
	room     chan struct{} // closed when an episode may begin; nil until Room or Pace needs it
	evenly   bool          // episodes begin even while requests wait
	timer    *time.Timer
	timed    bool // timer runs

	rate   float64 // requests per second that there was time for lately
	sent   int     // since the last glance
	ended  int
	glance time.Time
	held   time.Duration // total time in which requests were held back
}

// NewProcessors makes the Processors of a machine.
func NewProcessors(m Machine) *Processors {
	now := m.Now()
	p := &Processors{machine: m, filled: now, glance: now, rate: guess * float64(m.Processors)}
	p.tokens = p.most(p.allowed(0))
	p.starts = p.tokens
	return p
}

// Load is how busy the process's processors are.
type Load struct {
	Rate     float64       // requests per second that there was time for lately
	InFlight int           // at all endpoints
	Held     time.Duration // total time in which requests were held back
}

// Load returns the figures, for logs and reports.
func (p *Processors) Load() Load {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Load{Rate: p.rate, InFlight: p.inFlight, Held: p.held}
}

// Room returns a channel that is closed when another episode may begin. The caller begins one before it calls Room again.
// Episodes in progress go first, as those that have not begun need no memory.
func (p *Processors) Room() <-chan struct{} { return p.begin(false) }

// Pace is Room where all episodes may be in flight at once: they begin at the rate of requests, even while some wait.
func (p *Processors) Pace() <-chan struct{} { return p.begin(true) }

func (p *Processors) begin(evenly bool) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.evenly = evenly
	p.fill(p.machine.Now())
	if p.roomy() {
		p.starts--
		return open
	}
	if p.room == nil {
		p.room = make(chan struct{})
	}
	p.wake()
	return p.room
}

func (p *Processors) roomy() bool {
	return p.starts >= 1 && (p.evenly || len(p.waiting) == 0)
}

var open = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// take asks for permission to send. If it returns false, the gate gets its turn later. The caller holds the gate's lock.
func (p *Processors) take(g *Gate, now time.Time) bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fill(now)
	if p.free() && (p.turn == g || len(p.waiting) == 0) {
		if p.turn == g {
			p.turn = nil
		}
		p.tokens = max(p.tokens-1, 0)
		p.inFlight++
		p.sent++
		return true
	}
	if !g.held {
		g.held = true
		p.waiting = append(p.waiting, g)
	}
	p.wake()
	return false
}

// done ends a request.
func (p *Processors) done() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
	p.ended++
}

// poke gives waiting gates their turns. The caller must not hold a gate's lock.
func (p *Processors) poke() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.poking { // the other goroutine looks at waiting again before it returns
		return
	}
	p.poking = true
	for len(p.waiting) > 0 && p.free() {
		g := p.waiting[0]
		p.waiting = p.waiting[1:]
		g.held, p.turn = false, g
		p.mu.Unlock()
		g.proceed()
		p.mu.Lock()
		p.turn = nil
	}
	p.poking = false
}

func (p *Processors) free() bool {
	return p.tokens >= 1 || p.inFlight < always*p.machine.Processors
}

// wake starts the timer for the next beat. The caller holds the lock.
func (p *Processors) wake() {
	if p.timed {
		return
	}
	p.timed = true
	if p.timer == nil {
		p.timer = time.AfterFunc(beat, p.tick)
		return
	}
	p.timer.Reset(beat)
}

// tick gives out the permissions of a beat.
func (p *Processors) tick() {
	p.mu.Lock()
	p.timed = false
	p.fill(p.machine.Now())
	p.mu.Unlock()
	p.poke()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.room != nil && p.roomy() {
		p.starts--
		close(p.room)
		p.room = nil
	}
	if len(p.waiting) > 0 || p.room != nil {
		p.wake()
	}
}

// fill adds the permissions for the time since the last beat. The caller holds the lock.
func (p *Processors) fill(now time.Time) {
	passed := now.Sub(p.filled)
	if passed < beat {
		return
	}
	if len(p.waiting) > 0 {
		p.held += min(passed, glance)
	}
	p.learn(now)
	rate := p.allowed(p.machine.Backlog())
	p.tokens = min(p.tokens+rate*passed.Seconds(), p.most(rate))
	p.starts, p.filled = min(p.starts+rate*passed.Seconds(), p.most(rate)), now
	if few := always * p.machine.Processors; p.inFlight < few {
		p.starts = max(p.starts, float64(few))
	}
}

// allowed is the rate at which requests may go out with a backlog.
func (p *Processors) allowed(backlog int) float64 {
	processors := float64(p.machine.Processors)
	return max(p.rate*eager/(1+float64(backlog)/(crowd*processors)), slow*processors)
}

// most is how many permissions are kept: a short queue of work, and at least one.
func (p *Processors) most(rate float64) float64 {
	return max(rate*stored*beat.Seconds(), 1)
}

// learn updates the rate while it holds something back. It may fall only while requests wait; it may rise while episodes wait
// to begin, too, as these may have other work before their first request.
func (p *Processors) learn(now time.Time) {
	passed := now.Sub(p.glance)
	if passed < glance {
		return
	}
	done := max(p.sent, (p.sent+p.ended)/2) // replies are work, too, when more come than requests go
	rate := float64(done) / passed.Seconds()
	if len(p.waiting) > 0 || p.room != nil && rate > p.rate {
		weight := min(passed, 2*glance).Seconds() / memory.Seconds() // the time in which the process was stopped does not count
		if rate > p.rate {
			weight *= rising
		}
		p.rate = max(p.rate+weight*(rate-p.rate), slow*float64(p.machine.Processors))
	}
	p.sent, p.ended, p.glance = 0, 0, now
}
