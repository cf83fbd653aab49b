package rl

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"trajgen/registry"
)

const (
	metricsName  = "metrics.jsonl"
	maxMetrics   = 64 << 20 // bytes of a file that are read
	maxLine      = 64 << 10
	mostMetrics  = 20 // numbers of a line
	historyShown = 10
)

// Metrics are the numbers of a line.
type Metrics map[string]float64

// history reads up to ten lines of the metrics, from the first to the last at even distances, and how many there are.
func (l *Lab) history(id string) (points []Metrics, count int, err error) {
	count, err = l.lines(id, func(int, []byte) {})
	wanted := map[int]bool{}
	for i := range min(count, historyShown) {
		wanted[int(math.Round(float64(i)*float64(count-1)/max(1, float64(min(count, historyShown)-1))))] = true
	}
	points = []Metrics{}
	if err == nil && count > 0 {
		_, err = l.lines(id, func(i int, line []byte) {
			if wanted[i] {
				points = append(points, numbers(line))
			}
		})
	}
	return points, count, err
}

// lines reads the whole lines that hold metrics, and leaves one that is still being written.
func (l *Lab) lines(id string, each func(i int, line []byte)) (count int, err error) {
	f, err := os.Open(filepath.Join(l.dir(id), metricsName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewReaderSize(io.LimitReader(f, maxMetrics), maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue // in parts, none of which is an object
		case errors.Is(err, io.EOF):
			return count, nil
		case err != nil:
			return count, err
		}
		if numbers(line) != nil {
			each(count, line)
			count++
		}
	}
}

// numbers are the numbers of a line, nil if it is not an object with any.
func numbers(line []byte) Metrics {
	var all map[string]any
	if json.Unmarshal(line, &all) != nil {
		return nil
	}
	found := Metrics{}
	for _, key := range sorted(all) {
		if number, is := all[key].(float64); is && len(found) < mostMetrics && len(key) <= 100 {
			found[key] = number
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// Status is what an agent is told of a training.
type Status struct {
	Look
	Minutes float64
	Metrics Metrics
	Log     string
	Wait    time.Duration // until it is told again; 0 when it was told now
}

// Check tells the status of a training, once in the time that the run sets. Only what was told counts.
func (v *View) Check(id string) (Status, error) {
	return remember(v, "check "+id, func() (s Status, err error) {
		l := v.lab
		l.mu.Lock()
		defer l.mu.Unlock()
		t, err := v.own(id)
		if err != nil {
			return s, err
		}
		now, every := l.cfg.Now(), l.cfg.Settings.CheckEvery
		if every == 0 {
			every = defaultCheck
		}
		if t.Checked != nil && now.Before(t.Checked.Add(every)) {
			return Status{Look: Look{Training: t}, Wait: t.Checked.Add(every).Sub(now)}, nil
		}
		s.Look = l.look(t)
		points, _, err := l.history(id)
		if err != nil {
			return s, err
		}
		if len(points) > 0 {
			s.Metrics = points[len(points)-1]
		}
		s.Minutes = math.Round(now.Sub(t.Started).Minutes()*10) / 10
		if s.Status == Failed || s.Status == Died {
			s.Log = l.log(id)
		}
		t.Checked = &now
		return s, l.save(t)
	})
}

// Results are a training's metrics.
type Results struct {
	Look
	Last    Metrics
	History []Metrics
	Count   int
}

// Results tells the last metrics of a training, and some from before.
func (v *View) Results(id string) (Results, error) {
	return remember(v, "results "+id, func() (r Results, err error) {
		t, err := v.own(id)
		if err != nil {
			return r, err
		}
		r.Look = v.lab.look(t)
		r.History, r.Count, err = v.lab.history(id)
		if err == nil && r.Count == 0 {
			f := registry.Failf("no_metrics", "training run %s has no metrics yet: it is %s", id, r.Status)
			f.Extra = map[string]any{"status": r.Status}
			return r, f
		}
		if r.Count > 0 {
			r.Last = r.History[len(r.History)-1]
		}
		return r, err
	})
}

// Trainings lists those of the episode.
func (v *View) Trainings() ([]Look, error) {
	return remember(v, "list", func() ([]Look, error) {
		all, err := v.lab.list(v.episode)
		looks := []Look{}
		for _, t := range all {
			looks = append(looks, v.lab.look(t))
		}
		return looks, err
	})
}

// inOrder sorts trainings by their beginning.
func inOrder(all []Training) []Training {
	slices.SortFunc(all, func(a, b Training) int {
		if c := a.Started.Compare(b.Started); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}
