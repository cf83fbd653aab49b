package report_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
)

// TestReportSkills compares episodes with and without skills, and says how far they came with each.
func TestReportSkills(t *testing.T) {
	b := report.New(report.Meta{})
	for i := range 8 {
		ep := judged(fmt.Sprint("task-", i), 0, float64(i%2))
		ep.Skills = &episode.Skills{Mode: "without", LogP: math.Log(0.75)}
		if i%2 == 1 {
			ep.Skills = &episode.Skills{Mode: "with", LogP: math.Log(0.25), Events: []episode.SkillEvent{
				{Kind: episode.SkillOffered, Skill: "pdf"}, {Kind: episode.SkillListed, Skill: "pdf"}, {Kind: episode.SkillOffered, Skill: "csv"},
				{Kind: episode.SkillViewed, Skill: "pdf"}, {Kind: episode.SkillScript, Skill: "pdf"}, {Kind: episode.SkillScript, Skill: "pdf"},
				{Kind: episode.SkillRefused, Skill: "../x"}, {Kind: episode.SkillCreated, Skill: fmt.Sprint("own-", i)},
			}}
		}
		b.Add(ep)
	}
	for i := range 300 { // names of agents are bounded
		ep := judged("many", i, 0)
		ep.Skills = &episode.Skills{Mode: "with", LogP: math.Log(0.25), Events: []episode.SkillEvent{{Kind: episode.SkillPatched, Skill: fmt.Sprint("x", i)}}}
		b.Add(ep)
	}
	r := b.Finish()
	if len(r.Draw) != 2 || r.Draw[0].Name != "with skills (25.0 %)" || r.Draw[1].Name != "without skills (75.0 %)" || *r.Draw[1].Reward.Mean != 0 {
		t.Errorf("draw: %+v", r.Draw)
	}
	if len(r.Skills.Skills) > 201 {
		t.Errorf("%d skills", len(r.Skills.Skills))
	}
	for _, s := range r.Skills.Skills {
		if s.Skill == "pdf" && (s.Offered != 4 || s.Viewed != 4 || s.Script != 4 || *s.Reward.Mean != 1) || s.Skill == "../x" {
			t.Errorf("%+v", s)
		}
	}
	var page strings.Builder
	if err := r.WriteMarkdown(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## With and without skills", "## Skills", "| pdf | 4 | 4 | 4 | 0 | 1.000 |", "| csv | 4 | 0 | 0 | 0 | - | - |"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	page.Reset()
	if err := report.New(report.Meta{}).Finish().WriteMarkdown(&page); err != nil || strings.Contains(page.String(), "kills") {
		t.Errorf("a run without skills has a table of them: %v", err)
	}
}
