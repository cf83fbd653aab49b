package report_test

import (
	"bytes"
	"strings"
	"testing"

	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
)

// swept is a judged episode that was played with some settings.
func swept(task string, sample int, reward float64, sampling episode.Sampling) *episode.Episode {
	ep := judged(task, sample, reward)
	ep.Sampling = sampling
	return ep
}

func TestReportOfASweep(t *testing.T) {
	cold := episode.Sampling{Model: "m", Temperature: new(0.0), MaxTokens: 100}
	hot := episode.Sampling{Model: "m", Temperature: new(1.5), MaxTokens: 100}
	lost := swept("b", 3, 0, hot)
	lost.Outcome, lost.Reward = episode.ModelError, nil
	// Added backwards: the order is that of the samples.
	got := reportOf(report.Meta{}, lost, swept("b", 2, 1, cold), swept("a", 3, 1, hot), swept("a", 1, 0, hot), swept("a", 0, 1, cold))
	if len(got.Sweep) != 2 {
		t.Fatalf("%d combinations, want 2: %+v", len(got.Sweep), got.Sweep)
	}
	for i, want := range []struct {
		name     string
		episodes int
		success  float64
	}{{"temperature=0", 2, 1}, {"temperature=1.5", 3, 0.5}} {
		g := got.Sweep[i]
		if g.Name != want.name || g.Episodes != want.episodes || g.SuccessRate.Mean == nil || *g.SuccessRate.Mean != want.success || *g.Reward.Mean != want.success {
			t.Errorf("combination %d: %s, %d episodes, success %v; want %+v", i, g.Name, g.Episodes, g.SuccessRate.Mean, want)
		}
	}
	if outcomes := got.Sweep[1].Outcomes; len(outcomes) != 3 || outcomes[2] != (report.OutcomeCount{Outcome: episode.ModelError, Count: 1}) {
		t.Errorf("outcomes %+v", outcomes)
	}
	var page bytes.Buffer
	if err := got.WriteMarkdown(&page); err != nil {
		t.Fatal(err)
	}
	if want := `| 2 | 1.5 | 3 | 0.500 | 50.0 % | - | success 1, failure 1, model\_error 1 |`; !strings.Contains(page.String(), "## Sweep\n\n|  | temperature |") || !strings.Contains(page.String(), want) {
		t.Errorf("the page lacks %q:\n%s", want, page.String())
	}
	if same := reportOf(report.Meta{}, swept("a", 0, 1, cold), swept("a", 1, 1, cold)); len(same.Sweep) != 0 {
		t.Errorf("a run without a sweep has %+v", same.Sweep)
	}
}

// A setting that some episodes left to the server has a name of its own beside its values.
func TestReportOfASweepWithNone(t *testing.T) {
	got := reportOf(report.Meta{}, judged("a", 0, 1), swept("a", 1, 1, episode.Sampling{Model: "x|y", TopP: new(0.5)}))
	if got.Sweep[0].Name != "model=(none) top_p=(none)" || got.Sweep[1].Name != "model=x|y top_p=0.5" {
		t.Errorf("names %q, %q", got.Sweep[0].Name, got.Sweep[1].Name)
	}
}
