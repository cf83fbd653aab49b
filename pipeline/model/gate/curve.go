package gate

import "math"

const (
	// steep makes a curve rise by an eighth in 16 rounds from its plateau, and double in 32.
	steep = 3e-5
	// softly is what a cut leaves that comes after a quiet time; hardly, one that follows upon another.
	softly, hardly = 0.95, 0.7
	// plateau is where a curve stays longest after a soft cut, below where it was cut.
	plateau = 0.98
)

// curve is a quantity that grows while it is the bottleneck and falls when the server refuses. It rises as TCP CUBIC
// does: quickly back to a plateau a little below where it was refused, slowly there, and ever faster beyond, so that
// it seldom meets a limit that stays and soon finds out when that is gone.
type curve struct {
	value, low, high float64

	base, level float64 // the value after the last cut, and the plateau
	rounds      float64 // time as the bottleneck since
	target      float64 // below it the value doubles with each round
}

// age lets rounds pass with the curve as the bottleneck.
func (c *curve) age(rounds float64) {
	if math.IsInf(c.value, 1) {
		return
	}
	rounds = min(rounds, 1) // a longer silence says nothing about the server
	if c.value < c.target {
		c.value = min(c.value*math.Exp2(rounds), c.target)
		c.settle(c.value, c.value)
		return
	}
	c.rounds += rounds
	deficit := max(0, 1-c.base/c.level)
	x := c.rounds - math.Cbrt(deficit/steep)
	c.value = min(max(c.level*(1+steep*x*x*x), c.low), c.high)
}

// settle begins a new curve at value.
func (c *curve) settle(value, level float64) {
	c.value = min(max(value, c.low), c.high)
	c.base, c.level, c.rounds = c.value, max(level, c.value), 0
}

// cut lets the value fall to a share of itself. The plateau is a little below where it was cut, and lower after a deep
// cut, whose reason may be there to stay.
func (c *curve) cut(share float64) {
	level := c.value * plateau
	if share < softly {
		level = c.value * (1 + share) / 2
	}
	c.target = 0
	c.settle(c.value*share, level)
}

// recover lets the value double up to what the server took before, if it fell so far that there was an outage.
func (c *curve) recover(was float64) {
	if c.value < was/2 && !math.IsInf(was, 1) {
		c.target = was * softly
	}
}
