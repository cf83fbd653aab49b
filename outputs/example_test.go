package outputs_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"trajgen/outputs"
	"trajgen/pipeline/episode"
)

func ExampleJournal() {
	run, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(run)

	j, err := outputs.OpenJournal(filepath.Join(run, "journal"), outputs.JournalOptions{})
	if err != nil {
		log.Fatal(err)
	}
	// Episodes end in any order, and from many goroutines.
	for _, row := range []int{1, 0} {
		key := episode.Key{Seed: 1, Task: fmt.Sprint("task-", row)}
		ep := &episode.Episode{ID: key.ID(), Key: key, Row: row, Attempt: 1, Outcome: episode.Success, Reward: new(1.0)}
		if err := j.Append(context.Background(), ep); err != nil {
			log.Fatal(err)
		}
	}
	// A run that is resumed asks before it plays.
	entry, done := j.Has(episode.Key{Seed: 1, Task: "task-1"}.ID())
	fmt.Println(entry.Outcome, done)
	if err := j.Close(); err != nil {
		log.Fatal(err)
	}

	r, err := outputs.OpenReader(filepath.Join(run, "journal"))
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for ep, err := range r.Episodes(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(ep.Row, ep.Key.Task)
	}
	files, err := outputs.WriteDatasetFiles(context.Background(), r, run)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range files {
		name, _ := filepath.Rel(run, f.Path)
		fmt.Println(name, f.Rows)
	}
	// Output:
	// success true
	// 0 task-0
	// 1 task-1
	// trajectories/part-00000.parquet 2
	// tool_calls/part-00000.parquet 0
}

func ExampleReportBuilder() {
	b := outputs.NewReport(outputs.Meta{Name: "nightly", Planned: 5, Wall: 2 * time.Second})
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
	// reward 0.75 [-2.43, 3.93]
	// pass@1 0.75
	// pass@2 1.00
}
