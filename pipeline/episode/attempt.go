package episode

import (
	"encoding/json"
	"time"
)

// Attempt is what an episode keeps of an earlier attempt: what failed, when, and what it cost.
type Attempt struct {
	Attempt int           `json:"attempt"` // from 1
	Outcome Outcome       `json:"outcome"`
	Fault   *Fault        `json:"fault,omitempty"`
	Started time.Time     `json:"started,omitzero"`
	Elapsed time.Duration `json:"elapsed,omitempty"`
	Turns   int           `json:"turns,omitempty"`
	Usage   Usage         `json:"usage,omitzero"`
	CostUSD *float64      `json:"cost_usd,omitempty"` // nil when a part of it is unknown
	// AtOnce says that the next attempt was a retry in the same run.
	AtOnce   bool        `json:"at_once,omitempty"`
	Differed *Difference `json:"differed,omitempty"`
}

// Difference is where an episode that resumed after its runner had died differed from its record.
type Difference struct {
	Turn int    `json:"turn"`
	Call int    `json:"call"`           // index among the calls of the turn; -1 if it does not concern a call
	Name string `json:"name,omitempty"` // of the tool
	At   int    `json:"at"`             // first byte that differs
	Was  string `json:"was"`            // the record from there on, cut
	Got  string `json:"got"`            // the new text from there on, cut
}

// Ended is what later attempts keep of this one. What its subagents used is in it.
func (ep *Episode) Ended() Attempt {
	ended := Attempt{
		Attempt: ep.Attempt, Outcome: ep.Outcome, Fault: ep.Fault, Started: ep.Started, Elapsed: ep.Elapsed,
		Turns: ep.played(), Usage: ep.Usage, CostUSD: ep.CostUSD, AtOnce: ep.Pending, Differed: ep.Differed,
	}
	for child := range ep.Tree() {
		if child == ep || child.played() == 0 {
			continue
		}
		ended.Turns += child.played()
		ended.Usage = ended.Usage.Add(child.Usage)
		if ended.CostUSD != nil && child.CostUSD != nil {
			ended.CostUSD = new(*ended.CostUSD + *child.CostUSD)
		} else {
			ended.CostUSD = nil
		}
	}
	return ended
}

// played counts the turns that were paid for: the record of an attempt that could not continue may have more turns than the
// attempt.
func (ep *Episode) played() int { return len(ep.Turns) + ep.Unplayed }

// Attempts are the earlier attempts, in order.
type Attempts []Attempt

// Tries is how many of the last attempts were retries within one run and its resumes. Attempts that could not continue from
// their record do not count.
func (a Attempts) Tries() (n int) {
	for i := len(a) - 1; i >= 0 && a[i].AtOnce; i-- {
		if a[i].Outcome != Cancelled {
			n++
		}
	}
	return n
}

// UnmarshalJSON also reads schema 3 and older ones, which had only a list of faults.
func (a *Attempts) UnmarshalJSON(data []byte) error {
	var list []struct {
		Attempt
		Class   string        `json:"class"`
		Message string        `json:"message"`
		Pause   time.Duration `json:"pause"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*a = nil
	for i, entry := range list {
		if entry.Attempt.Attempt == 0 {
			entry.Attempt.Attempt = i + 1
			entry.Fault = &Fault{Outcome: entry.Outcome, Class: entry.Class, Message: entry.Message, Pause: entry.Pause}
		}
		*a = append(*a, entry.Attempt)
	}
	return nil
}
