package bench

import (
	"sync"
	"time"
)

// Meter watches this process play.
type Meter struct {
	total int
	half  func() // told when half of the episodes have ended
	waits func() Waits
	began time.Time

	mu     sync.Mutex // guards what follows
	ended  int
	tenths []float64
}

// NewMeter begins to watch so many episodes. half, which may be nil, is called in the middle.
func NewMeter(total int, half func()) *Meter {
	return &Meter{total: total, half: half, waits: watchWaits(), began: time.Now(), tenths: []float64{ownCPU()}}
}

// Ended notes that an episode has. It is safe for concurrent use.
func (m *Meter) Ended() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended++
	if m.ended == m.total*len(m.tenths)/10 {
		m.tenths = append(m.tenths, ownCPU())
	}
	if m.ended == m.total/2 && m.half != nil {
		m.half()
	}
}

// Played is what came out.
func (m *Meter) Played() Played {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Played{Episodes: m.ended, Seconds: time.Since(m.began).Seconds(), Waits: m.waits(), TenthCPUMS: m.tenths}
}
