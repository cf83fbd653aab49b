package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/report"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// TestReportProofs holds that a report counts tasks with a proof, and names those that failed.
func TestReportProofs(t *testing.T) {
	proofs := []*episode.Proof{nil, {Gold: new(1.0), Noop: new(0.0)}, {Gold: new(0.0)}, {Gold: new(1.0), Noop: new(1.0)}}
	var episodes []*episode.Episode
	for row, proof := range proofs {
		for sample := range 2 {
			ep := sinktest.Episode(row, sample)
			ep.Proof = proof
			episodes = append(episodes, ep)
		}
	}
	r := reportOf(report.Meta{}, episodes...)
	want := &report.Proofs{Tasks: 3, Failed: 2, Failing: []report.FailedProof{
		{Task: "task-0002", Why: "the task's reference solution fails"}, {Task: "task-0003", Why: "doing nothing passes the task's verifier"},
	}}
	if diff := cmp.Diff(want, r.Tasks.Proofs); diff != "" {
		t.Errorf("proofs (-want +got):\n%s", diff)
	}
	var page bytes.Buffer
	if err := r.WriteMarkdown(&page); err != nil {
		t.Fatal(err)
	}
	const line = "of 3 tasks, 2 failed: task-0002 (the task's reference solution fails), task-0003 (doing nothing passes the task's verifier)"
	if !strings.Contains(page.String(), line) {
		t.Errorf("report:\n%s\nwant %q in it", page.String(), line)
	}
	if r := reportOf(report.Meta{}, episodes[:2]...); r.Tasks.Proofs != nil {
		t.Errorf("proofs of tasks of which nothing is known: %+v", r.Tasks.Proofs)
	}
}
