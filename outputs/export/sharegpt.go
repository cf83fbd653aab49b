package export

import (
	"errors"
	"fmt"
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

// sharegptRow is a row. Its counts have every tool of the export, so that readers by column find one schema.
type sharegptRow struct {
	PromptIndex   int                          `json:"prompt_index"`
	Conversations []ShareGPTTurn               `json:"conversations"`
	Metadata      sharegptMetadata             `json:"metadata"`
	Completed     bool                         `json:"completed"`
	Partial       bool                         `json:"partial"`
	APICalls      int                          `json:"api_calls"`
	ToolsetsUsed  []string                     `json:"toolsets_used"`
	ToolStats     map[string]sharegptToolStats `json:"tool_stats"`
	ToolErrors    map[string]int               `json:"tool_error_counts"`
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

// sharegptSink keeps the rows beside the file until all tools are known.
type sharegptSink struct {
	*lines[sharegptRow]
	notes
	kept  *spool
	own   bool
	tools map[string]sharegptToolStats // every tool of the export, all zero
}

func openShareGPT(path string, options Options) (target, error) {
	f, err := openFile(path, "sharegpt.jsonl")
	if err != nil {
		return nil, err
	}
	kept, err := openSpool(path)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	own := options.Set["system"] == "own"
	return &sharegptSink{lines: &lines[sharegptRow]{file: f}, notes: notes{}, kept: kept, own: own, tools: map[string]sharegptToolStats{}}, nil
}

func (s *sharegptSink) add(ep *episode.Episode) error {
	turns, err := sharegptTurns(ep, s.own)
	if err != nil {
		return err // a *Refusal
	}
	row := sharegptRow{
		PromptIndex: ep.Row, Conversations: turns, APICalls: len(ep.Turns), ToolsetsUsed: append([]string{}, ep.Toolsets...),
		Metadata:  sharegptMetadata{Model: ep.Model},
		Completed: ep.Stop == episode.StopAnswered, Partial: ep.Stop != episode.StopAnswered,
	}
	if !ep.Started.IsZero() {
		row.Metadata.Timestamp = ep.Started.UTC().Format("2006-01-02T15:04:05.000000+00:00")
	}
	if err := sameShareGPT(&row, ep, s.own); err != nil {
		return err
	}
	stats, invented := s.count(ep)
	if err := s.remember(ep, stats); err != nil {
		return err
	}
	row.ToolStats = stats
	if err := s.kept.add(row); err != nil {
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
	for row, err := range spooled[sharegptRow](s.kept) {
		if err != nil {
			return nil, err
		}
		all := maps.Clone(s.tools)
		maps.Copy(all, row.ToolStats)
		row.ToolStats, row.ToolErrors = all, map[string]int{}
		for name, n := range all {
			row.ToolErrors[name] = n.Failure
		}
		if err := s.put(row); err != nil {
			return nil, err
		}
	}
	return s.lines.finish()
}

func (s *sharegptSink) close() error { return errors.Join(s.kept.Close(), s.lines.close()) }

// systemOf is the system message with which a conversation begins.
func systemOf(ep *episode.Episode) string {
	if i := slices.IndexFunc(ep.Messages, func(m episode.Message) bool { return m.Role != "system" }); i > 0 {
		return ep.Messages[0].Content
	}
	return ""
}
