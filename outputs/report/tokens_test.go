package report_test

import (
	"bytes"
	"strings"
	"testing"

	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
)

// TestReportSaysWhatIsSafe counts rows that can be trained on; those of an outage are no rows to train on.
func TestReportSaysWhatIsSafe(t *testing.T) {
	with := func(drift episode.DriftVerdict, outcome episode.Outcome, logprobs ...float32) *episode.Episode {
		ep := judged("a", 0, 1)
		ep.Outcome, ep.Drift = outcome, &episode.Drift{Verdict: drift}
		ep.Turns = []episode.Turn{{Tokens: &episode.TurnTokens{Prompt: episode.IDs{1}, Completion: episode.IDs{2, 3}, Logprobs: logprobs}}}
		return ep
	}
	r := reportOf(report.Meta{},
		with(episode.DriftNone, episode.Success, -1, -2), with(episode.DriftNone, episode.Failure),
		with(episode.DriftFound, episode.Limit, -1, -2), with(episode.DriftNone, episode.ModelError, -1, -2),
		with(episode.DriftCompacted, episode.Success), judged("b", 0, 1),
	)
	d := r.Drift
	if d == nil || d.Safe != 2 || d.Of != 5 || *d.SafeShare != 0.4 || d.WithLogprobs != 1 {
		t.Errorf("drift = %+v, want 2 safe ones of 5, one of them with log probabilities", d)
	}
	var page bytes.Buffer
	if err := r.WriteMarkdown(&page); err != nil {
		t.Fatal(err)
	}
	if want := "token drift: **none 3, drift 1, compacted 1, repaired 0, unknown 1; 40.0 % safe to train on (2 of 5, 1 with log probabilities)**"; !strings.Contains(page.String(), want) {
		t.Errorf("the page does not say %q:\n%s", want, page.String())
	}
	if r := reportOf(report.Meta{}, judged("b", 0, 1)); r.Drift != nil {
		t.Errorf("drift = %+v without any ids, want null", r.Drift)
	}
	if r := reportOf(report.Meta{TokenIDs: true}, judged("b", 0, 1)); r.Drift == nil || r.Drift.Safe != 0 || r.Drift.Of != 1 {
		t.Errorf("drift = %+v of a server that tells no ids although it was asked, want none of 1 safe", r.Drift)
	}
}
