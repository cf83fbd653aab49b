package twin

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// Coverage is how far a recording answers the calls of a tool.
type Coverage struct {
	Tool     string         `json:"tool"`
	Calls    int            `json:"calls"`
	Hits     int            `json:"hits"`
	HitShare float64        `json:"hit_share"`
	Misses   map[string]int `json:"misses,omitempty"` // new_tool, other_digest, new_arguments or new_history
}

// Tally counts which calls a recording answers, by tool.
type Tally map[string]*Coverage

// Add counts a call that a recording was to answer, and no other one.
func (t Tally) Add(call *episode.ToolCall) {
	var about About
	if len(call.Source) > 0 && json.Unmarshal(call.Source, &about) == nil && about.Via == Replay {
		t.count(call.Name, about.Miss)
	}
}

// Lacks counts a call of a tool that the recording does not have.
func (t Tally) Lacks(tool string) { t.count(tool, newTool) }

func (t Tally) count(tool, miss string) {
	c := t[tool]
	if c == nil {
		c = &Coverage{Tool: tool, Misses: map[string]int{}}
		t[tool] = c
	}
	c.Calls++
	if miss == "" {
		c.Hits++
	} else {
		c.Misses[miss]++
	}
	c.HitShare = float64(c.Hits) / float64(c.Calls)
}

// List is the coverage of each tool, sorted by name.
func (t Tally) List() []Coverage {
	list := []Coverage{}
	for _, tool := range slices.Sorted(maps.Keys(t)) {
		list = append(list, *t[tool])
	}
	return list
}

// Others counts which of its own calls a recording could answer without those of the same episode: that is what it is worth for
// further ones.
func (t *Tape) Others() (Tally, error) {
	tally := Tally{}
	for _, p := range t.calls {
		asked, err := t.askedAt(p)
		if err != nil {
			return nil, err
		}
		_, miss := t.find(p.episode, asked, p.episode)
		tally.count(p.tool, miss)
	}
	return tally, nil
}

// askedAt is a call of the recording as it is looked up.
func (t *Tape) askedAt(p place) (asked, error) {
	record, err := t.index.Record(p.at)
	if err != nil {
		return asked{}, err
	}
	k, err := parse(record)
	if err != nil {
		return asked{}, err
	}
	return k.asked()
}

// Info is what a recording has.
type Info struct {
	Digest   string         `json:"digest"`
	Episodes int            `json:"episodes"`
	Calls    int            `json:"calls"`   // of the last attempt at each episode
	Tools    map[string]int `json:"tools"`   // calls
	Answers  []string       `json:"answers"` // plugins and servers that it knows
	Disk     int64          `json:"disk_bytes"`
}

// Info counts what the recording has.
func (t *Tape) Info() (Info, error) {
	info := Info{Digest: t.digest, Calls: len(t.calls), Tools: map[string]int{}, Answers: slices.Sorted(maps.Keys(t.about))}
	for i, p := range t.calls {
		info.Tools[p.tool]++
		if i == 0 || t.calls[i-1].episode != p.episode {
			info.Episodes++
		}
	}
	var err error
	info.Disk, err = t.index.Disk()
	return info, err
}

// PrintCoverage prints what a recording answers, a line for each tool.
func PrintCoverage(w io.Writer, tools []Coverage) error {
	fmt.Fprintf(w, "%7s %7s %7s  %-30s %s\n", "calls", "hits", "share", "tool", "misses")
	for _, c := range tools {
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(c.Misses)) {
			kinds = append(kinds, fmt.Sprintf("%s %d", kind, c.Misses[kind]))
		}
		fmt.Fprintf(w, "%7d %7d %6.1f%%  %-30s %s\n", c.Calls, c.Hits, 100*c.HitShare, c.Tool, strings.Join(kinds, ", "))
	}
	return nil
}
