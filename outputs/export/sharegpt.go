package export

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"trajgen/pipeline/episode"
)

var sharegptFormat = Format{
	shows:   true,
	imaging: inlined,
	About: "ShareGPT conversations in the envelope of Hermes: <tools>, <think>, <tool_call> and <tool_response>, with statistics of calls. Each row is parsed back before it is written, " +
		"and refused when it would not read the same. What the harness said stands as a turn of human or gpt. " +
		"With --inline-media, rows have a list of images, and turns a mark <image> where each stands",
	Settings: map[string]Setting{
		"system": {
			About: "tools (default) opens with the list of tools alone, as Hermes does, own puts the system message that the model saw before it",
			words: []string{"tools", "own"},
		},
		"file": {
			About: "jsonl (default; images are data URLs) or parquet (images are bytes, as LLaMA-Factory wants; " +
				"without the counts of calls by tool)",
			words: []string{"jsonl", "parquet"},
		},
	},
	open: openShareGPT,
}

// sharegptRow is a row. Its counts have every tool of the export, so that readers by column find one schema.
type sharegptRow struct {
	PromptIndex   int                          `json:"prompt_index" parquet:"prompt_index"`
	Conversations []ShareGPTTurn               `json:"conversations" parquet:"conversations,list"`
	Images        []rowImage                   `json:"images,omitempty" parquet:"images,list"`
	Metadata      sharegptMetadata             `json:"metadata" parquet:"metadata"`
	Completed     bool                         `json:"completed" parquet:"completed"`
	Partial       bool                         `json:"partial" parquet:"partial"`
	APICalls      int                          `json:"api_calls" parquet:"api_calls"`
	ToolsetsUsed  []string                     `json:"toolsets_used" parquet:"toolsets_used,list"`
	ToolStats     map[string]sharegptToolStats `json:"tool_stats" parquet:"-"` // whose order a map of Parquet would not keep
	ToolErrors    map[string]int               `json:"tool_error_counts" parquet:"-"`
}

// ShareGPTTurn is a turn of a ShareGPT conversation.
type ShareGPTTurn struct {
	From  string `json:"from" parquet:"from,dict"` // system, human, gpt, tool
	Value string `json:"value" parquet:"value"`
}

type sharegptMetadata struct {
	BatchNum  int    `json:"batch_num" parquet:"batch_num"` // always 0: episodes are not played in batches
	Timestamp string `json:"timestamp" parquet:"timestamp"`
	Model     string `json:"model" parquet:"model,dict"`
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
	rowFile[*sharegptRow]
	notes
	kept  *spool
	way   sharegptWay
	tools map[string]sharegptToolStats // every tool of the export, all zero
}

// sharegptWay says how rows are written.
type sharegptWay struct {
	own    bool // with the system message that the model saw
	inline bool // with images
}

func openShareGPT(path string, options Options) (target, error) {
	out, err := openRowFile[*sharegptRow](path, rowKind{as: options.Set["file"], name: "sharegpt", id: "prompt_index"}, options)
	if err != nil {
		return nil, err
	}
	kept, err := openSpool(path)
	if err != nil {
		return nil, errors.Join(err, out.close())
	}
	way := sharegptWay{own: options.Set["system"] == "own", inline: options.Inline}
	return &sharegptSink{rowFile: out, notes: notes{}, kept: kept, way: way, tools: map[string]sharegptToolStats{}}, nil
}

func (s *sharegptSink) add(ep *episode.Episode) error {
	turns, err := s.way.turns(ep)
	if err != nil {
		return err // a *Refusal
	}
	row := sharegptRow{
		PromptIndex: ep.Row, Conversations: turns, Images: rowImages(ep.Messages),
		APICalls: len(ep.Turns), ToolsetsUsed: append([]string{}, ep.Toolsets...),
		Metadata:  sharegptMetadata{Model: ep.Model},
		Completed: ep.Stop == episode.StopAnswered, Partial: ep.Stop != episode.StopAnswered,
	}
	if !ep.Started.IsZero() {
		row.Metadata.Timestamp = ep.Started.UTC().Format("2006-01-02T15:04:05.000000+00:00")
	}
	if err := s.way.same(&row, ep); err != nil {
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
	if !s.way.own && systemOf(ep) != "" {
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
		if err := s.put(&row); err != nil {
			return nil, err
		}
	}
	return s.rowFile.finish()
}

func (s *sharegptSink) close() error { return errors.Join(s.kept.Close(), s.rowFile.close()) }

// systemOf is the system message with which a conversation begins.
func systemOf(ep *episode.Episode) string {
	if i := slices.IndexFunc(ep.Messages, func(m episode.Message) bool { return m.Role != "system" }); i > 0 {
		return ep.Messages[0].Content
	}
	return ""
}
