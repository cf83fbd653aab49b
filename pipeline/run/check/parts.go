package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// missingSamples finds the missing samples of tasks, from episodes in dataset order.
type missingSamples struct {
	samples int

	tasks int
	next  episode.Key // of the current task, the sample that should come next
	named []string
}

func (m *missingSamples) add(ep *episode.Episode) {
	if m.tasks == 0 || ep.Key.Task != m.next.Task {
		m.until(m.samples)
		m.tasks++
		m.next = ep.Key
		m.next.Sample = 0
	}
	m.until(ep.Key.Sample)
	m.next.Sample++
}

// until records the missing samples of the current task before one that is there, or before the end.
func (m *missingSamples) until(sample int) {
	for ; m.tasks > 0 && m.next.Sample < min(sample, m.samples); m.next.Sample++ {
		if len(m.named) < maxMissing {
			m.named = append(m.named, fmt.Sprintf("%s (task %q, sample %d)", m.next.ID(), m.next.Task, m.next.Sample))
		}
	}
}

// text describes the missing samples of a number of tasks.
func (m *missingSamples) text(tasks int) string {
	m.until(m.samples)
	named := m.named
	if none := tasks - m.tasks; none > 0 {
		named = append(named, fmt.Sprintf("all of %d tasks", none))
	}
	return strings.Join(named, ", ")
}

// unequal finds where two decoded JSON values differ.
func unequal(at string, want, got any, tell func(at string, want, got any)) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		names := maps.Clone(w)
		maps.Copy(names, g)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			unequal(at+", "+name, w[name], g[name], tell)
		}
		return
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			break
		}
		for i := range w {
			unequal(fmt.Sprintf("%s[%d]", at, i), w[i], g[i], tell)
		}
		return
	}
	if !reflect.DeepEqual(want, got) {
		tell(at, want, got)
	}
}

// brief is a JSON value on one short line.
func brief(value any) string {
	const most = 120
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "..."
	}
	return string(text)
}
