package estimate

import "fmt"

// Outside are values that are not between 0 and 1, as rewards mostly are.
type Outside struct {
	seen, n         int
	least, greatest float64 // of all that were seen
}

// Add looks at a value.
func (o *Outside) Add(v float64) {
	if o.seen++; o.seen == 1 {
		o.least, o.greatest = v, v
	}
	o.least, o.greatest = min(o.least, v), max(o.greatest, v)
	if v < 0 || v > 1 {
		o.n++
	}
}

// Any says whether there are such values.
func (o *Outside) Any() bool { return o.n > 0 }

// Tell notes on an estimate of such values how many they are, and what its interval then is.
func (o *Outside) Tell(e *Estimate) {
	if o.n == 0 {
		return
	}
	e.Outside = o.n
	if e.Low != nil {
		e.Note = fmt.Sprintf("%d of the values are not between 0 and 1 (from %.3g to %.3g): the interval is Student's t, which is too narrow for few tasks",
			o.n, o.least, o.greatest)
	}
}
