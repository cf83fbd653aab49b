package report

import "trajgen/outputs/estimate"

// stability is what the plays of a task say of it, with 95 % confidence.
func stability(c estimate.Cluster) string {
	i := estimate.ClopperPearson(c.Sum, float64(c.N))
	switch {
	case i.Low > 0.9:
		return stablePass
	case i.High < 0.1:
		return stableFail
	case i.Low > 0.05 && i.High < 0.95:
		return flaky
	}
	return unknown
}

const (
	stablePass = "stable_pass"
	stableFail = "stable_fail"
	flaky      = "flaky"
	unknown    = "unknown" // too few plays to tell
)
