package episode

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Effect is what became of a call that got a planted fault.
type Effect string

// The effects.
const (
	EffectNone  Effect = "none"  // the tool did not run
	EffectDone  Effect = "done"  // it ran as always
	EffectPart  Effect = "part"  // a part of what it wrote was taken back
	EffectTwice Effect = "twice" // it ran two times
)

// Planted is a fault that the run put into a call. What the model saw of it is the call's own status, class and result.
type Planted struct {
	Class   string `json:"class"`
	Variant string `json:"variant,omitempty"` // of the class; "" is its usual form
	Effect  Effect `json:"effect"`
	// P is the probability with which the fault that struck this call was planted.
	P float64 `json:"p"`
	// From is the ordinal of the call where a lasting fault began: the call's own where it began here.
	From   int            `json:"from"`
	Target *PlantedTarget `json:"target,omitempty"` // nil where the fault changed no value
	// Retries is how often the harness repeated the call before the model learned of it.
	Retries int `json:"retries,omitempty"`
	// What the tool said, before the fault. The result is absent when the tool did not run.
	RealStatus     CallStatus `json:"real_status,omitempty"`
	RealErrorClass string     `json:"real_error_class,omitempty"`
	RealResult     string     `json:"real_result,omitempty"`
}

// Place is where a call stands among an episode's: its turn, its index in the turn, and for a call that a script made, its number among
// those of that script, from 1.
type Place struct {
	Turn   int `json:"turn"`
	Index  int `json:"index"`
	Nested int `json:"nested,omitempty"`
}

// Places are the places of the episode's calls.
func (ep *Episode) Places() []Place {
	all := make([]Place, len(ep.Calls))
	for i := range ep.Calls {
		c := &ep.Calls[i]
		all[i] = Place{Turn: c.Turn, Index: c.Index}
		for j := i - 1; c.Parent != "" && j >= 0; j-- { // a script's calls stand after it
			if ep.Calls[j].ID == c.Parent {
				all[i] = all[j]
				all[i].Nested = c.Index + 1
				break
			}
		}
	}
	return all
}

// PlantedTarget is the value that a fault changed or added.
type PlantedTarget struct {
	Pointer string `json:"pointer"`         // JSON pointer into the result
	True    string `json:"true,omitempty"`  // the text that the tool gave
	Wrong   string `json:"wrong,omitempty"` // the text that the model saw
	Token   string `json:"token,omitempty"` // of a planted instruction
}

// PlantedLevel says how faults were drawn in an episode of a run that plants them at a level, without twins.
type PlantedLevel struct {
	Level float64 `json:"level"` // the chance of a fault at each call that could have one
	LogP  float64 `json:"log_p"` // natural logarithm of the probability of all that was drawn
}

// The roles of twins.
const (
	TwinPlacebo = "placebo" // has no fault: what it differs by is noise
	TwinFault   = "fault"   // has one fault at one call
)

// What became of a twin's prefix.
const (
	PrefixReplayed = "replayed" // the model's words came from the clean episode, the tools ran and gave the same results
	PrefixRecorded = "recorded" // likewise, but results from outside of the sandbox came from the clean episode
	PrefixDiverged = "diverged" // a tool gave another result: the pair is left out of estimates
)

// Twin says how an episode is the twin of a clean one: the two are the same up to one call.
type Twin struct {
	Role    string  `json:"role"`
	Of      string  `json:"of"` // ID of the clean episode
	Class   string  `json:"class"`
	Variant string  `json:"variant,omitempty"`
	P       float64 `json:"p"` // the probability with which this twin was planned
	// The call where they part: its place, and its number among all calls of the clean episode, from 0.
	Turn      int `json:"turn"`
	Index     int `json:"index"`
	Nested    int `json:"nested,omitempty"`
	Ordinal   int `json:"ordinal"`
	Replicate int `json:"replicate"`

	Prefix       string `json:"prefix"`
	PrefixTokens int    `json:"prefix_tokens"` // that the clean episode had paid for, and this one did not

	// Reactions are what the agent did after the call, sorted: retry, verify, switch, says, gives_up, ignores.
	Reactions   []string `json:"reactions,omitempty"`
	UsedWrong   *bool    `json:"used_wrong,omitempty"` // the wrong value stands in what the agent did afterwards; nil where the fault has none
	UsedTrue    *bool    `json:"used_true,omitempty"`
	SafeSuccess *bool    `json:"safe_success,omitempty"` // success, without an effect that happened twice and without a claim that the end contradicts
	Recoverable *bool    `json:"recoverable,omitempty"`  // the task's reference solution succeeds with the fault; nil where that was not tried
}

// Place is the place of the call where they part.
func (t *Twin) Place() Place { return Place{t.Turn, t.Index, t.Nested} }

// Position is where a call stands in its episode, counted from the beginning, as nothing that comes later may decide what is planted.
func Position(ordinal int) string {
	switch {
	case ordinal < 2:
		return "early"
	case ordinal < 6:
		return "middle"
	}
	return "late"
}

// Name is what Key.Twin has of the twin.
func (t *Twin) Name() string { return fmt.Sprintf("%s/%d/%d", t.FullClass(), t.Ordinal, t.Replicate) }

// FullClass is the class with its variant, if it has one, behind a colon.
func (t *Twin) FullClass() string {
	if t.Variant != "" {
		return t.Class + ":" + t.Variant
	}
	return t.Class
}

// Paid reports whether the episode paid for a turn: of a twin, its clean episode paid for those up to the call where the two part.
func (ep *Episode) Paid(turn int) bool { return ep.Twin == nil || turn > ep.Twin.Turn }

// Digest is the SHA-256 of the call's tool and its arguments, in hexadecimal; "" when the arguments were never an object. The order
// of keys and spaces do not matter.
func (c *ToolCall) Digest() string {
	if c.Arguments == nil {
		return ""
	}
	decoder := json.NewDecoder(bytes.NewReader(c.Arguments))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return ""
	}
	text, err := json.Marshal(value) // sorts keys
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(append([]byte(c.Name+"\x00"), text...))
	return hex.EncodeToString(sum[:])
}
