package harbor

import (
	"cmp"
	"fmt"
)

// health is a command that says whether the environment is well.
type health struct {
	Command       string
	Interval      float64 `json:"interval_sec"`
	Timeout       float64 `json:"timeout_sec"`
	Start         float64 `json:"start_period_sec"`
	StartInterval float64 `json:"start_interval_sec"`
	Retries       float64
}

// script waits until the environment is well, and fails when it never is.
func (h health) script() string {
	return fmt.Sprintf(`began=$SECONDS failed=0
until timeout %g bash -c %s; do
	if [ $((SECONDS - began)) -lt %.0f ]; then sleep %g; continue; fi
	failed=$((failed + 1))
	if [ "$failed" -ge %.0f ]; then echo "the health check failed $failed times" >&2; exit 1; fi
	sleep %g
done`, cmp.Or(h.Timeout, 30), quote(h.Command), h.Start, cmp.Or(h.StartInterval, 5), cmp.Or(h.Retries, 3), cmp.Or(h.Interval, 5))
}
