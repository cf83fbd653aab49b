package report_test

import (
	"fmt"
	"time"

	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
)

func ExampleBuilder() {
	b := report.New(report.Meta{Origin: report.Origin{Name: "nightly"}, Planned: 5, Wall: 2 * time.Second})
	for task, rewards := range [][]float64{{1, 0}, {1, 1}} {
		for n, reward := range rewards {
			ep := &episode.Episode{Key: episode.Key{Task: fmt.Sprint(task), Sample: n}, Outcome: episode.Failure, Stop: episode.StopAnswered, Reward: &reward}
			if reward == 1 {
				ep.Outcome = episode.Success
			}
			b.Add(ep)
		}
	}
	r := b.Finish()
	fmt.Println("missing", *r.Episodes.Missing)
	fmt.Printf("reward %.2f [%.2f, %.2f]\n", *r.Reward.Mean, *r.Reward.Low, *r.Reward.High)
	for _, p := range r.PassAtK {
		fmt.Printf("pass@%d %.2f\n", p.K, p.Value)
	}
	// Output:
	// missing 1
	// reward 0.75 [0.00, 1.00]
	// pass@1 0.75
	// pass@2 1.00
}
