package export

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"trajgen/pipeline/episode"
)

var sharegptFormat = Format{
	About: "ShareGPT conversations in the envelope of Hermes: <tools>, <think>, <tool_call> and <tool_response>, with statistics of calls. Each row is parsed back before it is written, " +
		"and refused when it would not read the same. What the harness said stands as a turn of human or gpt",
	Settings: map[string]Setting{"system": {
		About: "tools (default) opens with the list of tools alone, as Hermes does, own puts the system message that the model saw before it",
		words: []string{"tools", "own"},
	}},
	open: openShareGPT,
}

// sharegptRow is a row but for its sharegptCounts. Those have every tool of the export in every row, so that readers by
// column find one schema, and are added when all tools are known.
type sharegptRow struct {
	PromptIndex   int              `json:"prompt_index"`
	Conversations []ShareGPTTurn   `json:"conversations"`
	Metadata      sharegptMetadata `json:"metadata"`
	Completed     bool             `json:"completed"`
	Partial       bool             `json:"partial"`
	APICalls      int              `json:"api_calls"`
	ToolsetsUsed  []string         `json:"toolsets_used"`
}

type sharegptCounts struct {
	ToolStats  map[string]sharegptToolStats `json:"tool_stats"`
	ToolErrors map[string]int               `json:"tool_error_counts"`
}

// ShareGPTTurn is a turn of a ShareGPT conversation.
type ShareGPTTurn struct {
	From  string `json:"from"` // system, human, gpt, tool
	Value string `json:"value"`
}

type sharegptMetadata struct {
	BatchNum  int    `json:"batch_num"` // always 0: episodes are not played in batches
	Timestamp string `json:"timestamp"`
	Model     string `json:"model"`
}

type sharegptToolStats struct {
	Count   int `json:"count"`
	Success int `json:"success"`
	Failure int `json:"failure"`
}

// inventedTools is the name under which calls of tools that do not exist are counted: the names that models invent
// would be columns without end.
const inventedTools = "unknown_tool"

// sharegptTools bounds what every row repeats.
const sharegptTools = 4096

const (
	noteSystem   = "episodes whose system message was left out, since --set system=tools"
	noteInvented = "episodes with calls of tools that do not exist, which are counted as " + inventedTools
)

type sharegptSink struct {
	*lines[json.RawMessage]
	notes
	spool *spool
	own   bool
	tools map[string]sharegptToolStats // every tool of the export, all zero
}

func openShareGPT(path string, options Options) (target, error) {
	f, err := openFile(path, "sharegpt.jsonl")
	if err != nil {
		return nil, err
	}
	spool, err := openSpool(path)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return &sharegptSink{lines: &lines[json.RawMessage]{file: f}, notes: notes{}, spool: spool, own: options.Set["system"] == "own", tools: map[string]sharegptToolStats{}}, nil
}

func (s *sharegptSink) add(ep *episode.Episode) error {
	turns, err := sharegptTurns(ep, s.own)
	if err != nil {
		return err // a *Refusal
	}
	row := sharegptRow{
		PromptIndex: ep.Row, Conversations: turns, APICalls: len(ep.Turns), ToolsetsUsed: ep.Toolsets,
		Metadata:  sharegptMetadata{Model: ep.Model},
		Completed: ep.Stop == episode.StopAnswered, Partial: ep.Stop != episode.StopAnswered,
	}
	if row.ToolsetsUsed == nil {
		row.ToolsetsUsed = []string{}
	}
	if !ep.Started.IsZero() {
		row.Metadata.Timestamp = ep.Started.UTC().Format("2006-01-02T15:04:05.000000+00:00")
	}
	line, err := encodeLine(&row)
	if err != nil {
		return err
	}
	if err := sameShareGPT(line, ep, s.own); err != nil {
		return err
	}
	stats, invented := s.count(ep)
	if err := s.remember(ep, stats); err != nil {
		return err
	}
	counts, err := encodeLine(stats)
	if err == nil {
		_, err = s.spool.Write(append(line, counts...))
	}
	if err != nil {
		return err
	}
	s.remark(ep)
	s.remarkPrefill(ep, 0)
	if invented {
		s.notes[noteInvented]++
	}
	if !s.own && systemOf(ep) != "" {
		s.notes[noteSystem]++
	}
	return nil
}

// count counts the calls that the model made, by how they ended.
func (s *sharegptSink) count(ep *episode.Episode) (stats map[string]sharegptToolStats, invented bool) {
	stats = map[string]sharegptToolStats{}
	for i := range ep.Calls {
		call := &ep.Calls[i]
		if call.Parent != "" { // made by the code of another call
			continue
		}
		name := call.Name
		if call.Status == episode.CallUnknownTool {
			name, invented = inventedTools, true
		}
		n := stats[name]
		n.Count++
		if call.Status == episode.CallOK {
			n.Success++
		} else {
			n.Failure++
		}
		stats[name] = n
	}
	return stats, invented
}

// remember keeps the names of the tools that a row knows.
func (s *sharegptSink) remember(ep *episode.Episode, stats map[string]sharegptToolStats) error {
	for _, name := range functionNames(ep.Tools) { // sharegptTurns refuses a tool without one
		s.tools[name] = sharegptToolStats{}
	}
	for name := range stats {
		s.tools[name] = sharegptToolStats{}
	}
	if len(s.tools) > sharegptTools {
		return fmt.Errorf("more than %d tools over all episodes, each of which stands in every row (choose with --where)", sharegptTools)
	}
	return nil
}

// finish writes the rows with all tools in each.
func (s *sharegptSink) finish() ([]FileInfo, error) {
	from, err := s.spool.read()
	if err != nil {
		return nil, err
	}
	reader := bufio.NewReader(from)
	for {
		row, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return s.lines.finish()
		}
		var stats []byte
		if err == nil {
			stats, err = reader.ReadBytes('\n')
		}
		counts := sharegptCounts{maps.Clone(s.tools), map[string]int{}}
		if err == nil {
			err = json.Unmarshal(stats, &counts.ToolStats)
		}
		if err != nil {
			return nil, fmt.Errorf("read back the rows of %s: %w", s.path, err)
		}
		for name, n := range counts.ToolStats {
			counts.ToolErrors[name] = n.Failure
		}
		rest, err := encodeLine(counts)
		if err != nil {
			return nil, err
		}
		row[len(row)-2] = ',' // for the brace and the line break
		if err := s.put(append(row[:len(row)-1], rest[1:]...)); err != nil {
			return nil, err
		}
	}
}

func (s *sharegptSink) close() error { return errors.Join(s.spool.Close(), s.lines.close()) }

// systemOf is the system message with which a conversation begins.
func systemOf(ep *episode.Episode) string {
	if i := slices.IndexFunc(ep.Messages, func(m episode.Message) bool { return m.Role != "system" }); i > 0 {
		return ep.Messages[0].Content
	}
	return ""
}
