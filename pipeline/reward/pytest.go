package reward

import (
	"fmt"
	"regexp"
	"strings"

	"trajgen/pipeline/episode"
)

// pytestSummary begins the list of results that pytest -rA prints at its end.
var pytestSummary = regexp.MustCompile(`(?m)^=+ short test summary info =+\r?$`)

var pytestResult = regexp.MustCompile(`^(PASSED|XFAIL|SKIPPED|FAILED|ERROR|XPASS)\b`)

// judgePytest reads a summary of pytest, as Terminal-Bench does: each result must be one that pytest counts as no failure. The last
// summary counts, as what the tests print of the agent's stands before it. Without any, the tests did not run.
func judgePytest(stdout, detail string) (judgement, error) {
	at := pytestSummary.FindAllStringIndex(stdout, -1)
	if len(at) == 0 {
		return judgement{}, &Broken{Class: "output", Message: "the tests printed no summary of pytest -rA: " + detail}
	}
	good, bad := 0, 0
	for line := range strings.Lines(stdout[at[len(at)-1][1]:]) {
		switch pytestResult.FindString(line) {
		case "":
		case "PASSED", "XFAIL", "SKIPPED":
			good++
		default:
			bad++
		}
	}
	if good+bad == 0 {
		return judgement{}, &Broken{Class: "output", Message: "the summary of pytest has no results: " + detail}
	}
	return judgement{value: verdict(bad == 0), detail: fmt.Sprintf("%d of %d tests passed: %s", good, good+bad, detail)}, nil
}

// mostOutput is how much of a command's output decides.
func mostOutput(check episode.Check) int {
	if parsers[check.Reward] != nil {
		return 1 << 20
	}
	return 0
}
