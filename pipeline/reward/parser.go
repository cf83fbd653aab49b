package reward

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// parsers read what tests printed, by the names that they have in Terminal-Bench. Each gets the output, and its end for the reader.
var parsers = map[string]func(stdout, detail string) (judgement, error){
	"pytest":    judgePytest,
	"swebench":  marked("SWEBench", "PASSED"),
	"sweperf":   marked("SWE-Perf", "PASSED"),
	"mlebench":  marked("MLEBench", "ALL TESTS PASSED"),
	"swelancer": judgeSWELancer,
}

// Parsers are the names of parsers that can be a check's reward, sorted.
func Parsers() []string { return slices.Sorted(maps.Keys(parsers)) }

// marked judges by what stands between two lines: from the first beginning to the last end, so that one that the agent's code
// printed beside them never passes.
func marked(benchmark, passed string) func(stdout, detail string) (judgement, error) {
	begin, end := benchmark+" results starts here", benchmark+" results ends here"
	return func(stdout, detail string) (judgement, error) {
		_, rest, begun := strings.Cut(stdout, begin)
		at := strings.LastIndex(rest, end)
		if !begun || at < 0 {
			return judgement{}, &Broken{Class: "output", Message: fmt.Sprintf("the tests printed no results between %q and %q: %s", begin, end, detail)}
		}
		return judgement{value: verdict(strings.TrimSpace(rest[:at]) == passed), detail: detail}, nil
	}
}

var lancerResult = regexp.MustCompile(`(?i)swe lancer (success|failure)`)

// judgeSWELancer takes the last word, which comes from the tests.
func judgeSWELancer(stdout, detail string) (judgement, error) {
	all := lancerResult.FindAllStringSubmatch(stdout, -1)
	if len(all) == 0 {
		return judgement{}, &Broken{Class: "output", Message: "the tests printed neither SWE Lancer success nor failure: " + detail}
	}
	return judgement{value: verdict(strings.EqualFold(all[len(all)-1][1], "success")), detail: detail}, nil
}
