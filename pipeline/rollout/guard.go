package rollout

import (
	"fmt"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// What is done about calls that lead nowhere. Each does what those before it do, too.
const (
	GuardOff    = "off"
	GuardRecord = "record" // the default: notices in the trace
	GuardTell   = "tell"   // the model is told, in a message that is marked as the harness's
	GuardStop   = "stop"   // the episode ends when going on is hopeless
)

// CheckGuard says whether there is such a mode; "" is the default.
func CheckGuard(mode string) error {
	modes := []string{GuardOff, GuardRecord, GuardTell, GuardStop}
	if mode != "" && !slices.Contains(modes, mode) {
		return fmt.Errorf("guardrails is %q; one of %s", mode, strings.Join(modes, ", "))
	}
	return nil
}

// warn tells the model what the harness noticed about its calls, or ends the episode.
func (a *attempt) warn(calls []episode.ToolCall) error {
	if a.Guardrails != GuardTell && a.Guardrails != GuardStop {
		return nil
	}
	if a.Guardrails == GuardStop && a.kit.guard.Stopped() != "" {
		return a.stop(episode.StopRepeating)
	}
	var notices []string
	for _, call := range calls {
		if call.Notice != "" {
			notices = append(notices, fmt.Sprintf("%s (%s): %s.", call.Name, call.ID, call.Notice))
		}
	}
	if len(notices) > 0 {
		a.say(episode.Message{Role: "user", Content: strings.Join(notices, "\n"), Harness: true})
	}
	return nil
}
