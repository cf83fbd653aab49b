package gate

import (
	"math"
	"time"
)

const (
	// convincing is how many refusals make a share of them sure enough, and plenty how many results without so many.
	convincing, plenty = 8, 400
	// hopeless is the share of refusals beyond which less is always better.
	hopeless = 0.6
	// lenient is how long refusals are then put up with, before they are asked about again; longer each time.
	lenient, longLenient = time.Minute, 16 * time.Minute
)

// doubt finds out whether refusals have to do with what we send. A gateway whose other customers are busy refuses one
// request in ten whatever we do, and slowing down for it would only stop the run: when a third of the requests is
// refused as often as all of them were, the cuts are taken back.
type doubt struct {
	ended, refused int // since the last look

	share       float64 // of refusals, at the first look
	limit, rate float64 // then
	until       time.Time
	lenient     time.Duration
}

// count takes a result.
func (d *doubt) count(refused bool) {
	d.ended++
	if refused {
		d.refused++
	}
}

// look is called before a cut and tells whether refusals are to be put up with.
func (g *Gate) look(now time.Time) bool {
	d := &g.doubt
	if now.Before(d.until) {
		if d.ended >= plenty && float64(d.refused) > hopeless*float64(d.ended) {
			d.until, d.ended, d.refused = now, 0, 0 // it was us after all
		}
		return now.Before(d.until)
	}
	if d.refused < convincing && d.ended < plenty {
		return false
	}
	share := float64(d.refused) / float64(d.ended)
	d.ended, d.refused = 0, 0
	if share > hopeless || share < d.share/3 || d.share == 0 {
		d.share, d.limit, d.rate = share, g.limit.value, min(g.pace.rate.value, g.pace.taken(now))
		return false
	}
	d.share = share
	if part := min(1, g.limit.value/d.limit) * min(1, g.pace.rate.value/d.rate); part > 0.35 {
		return false
	}
	g.limit.settle(d.limit, 0)
	g.limit.target = g.limit.high
	g.pace.rate.value, g.pace.until = math.Inf(1), now
	d.lenient = min(max(2*d.lenient, lenient), longLenient)
	d.share, d.until = 0, now.Add(d.lenient)
	return true
}
