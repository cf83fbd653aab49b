// Package export turns the episodes of a run into files: a Sink writes one format, and Write feeds sinks from a Source.
//
// Nothing here knows the time or the machine: the same episodes give the same bytes wherever and whenever they are
// exported.
package export

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"trajgen/outputs/media"
	"trajgen/pipeline/episode"
)

// FileInfo is a file that a sink wrote.
type FileInfo struct {
	Path  string `json:"path"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

// Teller is a Source, or what a format writes to, that has something to say in the end: what of the episodes could not be
// carried.
type Teller interface {
	// Notes are sentences without a full stop, with counts, in a fixed order.
	Notes() []string
}

// Dropper is a Source that leaves episodes out, or a format that finds only later that it cannot carry some which it took.
type Dropper interface {
	// Dropped counts those episodes, by reason, in the end.
	Dropped() map[string]int
}

// Refusal is an episode that a format cannot carry.
type Refusal struct {
	Reason string // the same words for all episodes of one kind, so that they can be counted: "no token ids"
}

func (r *Refusal) Error() string { return "this format cannot carry the episode: " + r.Reason }

// Options are how a sink writes. The zero value is ready for use. They decide where files and row groups end and what
// is said about the run, and so the bytes; nothing else does but the episodes.
type Options struct {
	PartBytes     int64 // a part file ends after so many bytes; 0 is 256 MiB
	PartRows      int64 // or after so many rows; 0 is 1,000,000
	RowGroupBytes int64 // a row group ends after so many bytes, which are held in memory; 0 is 16 MiB
	RowGroupRows  int64 // or after so many rows; 0 is 100,000

	// Set are the format's own settings, as Formats lists them.
	Set map[string]string
	// Images reads an image of an episode by its digest; nil has none.
	Images func(sha256 string) ([]byte, error)
	// Unsound takes episodes of tasks whose proof speaks against their rewards into formats that trainers learn rewards from.
	Unsound bool
	// Faulted takes episodes with planted faults, and twins, into formats that trainers learn from.
	Faulted bool
	// Inline puts images into formats that have a place for them.
	Inline bool
	// Run says what is exported, for formats that tell it.
	Run Run
}

// Run is what formats tell about a run. Everything may be empty.
type Run struct {
	Name        string // of the run directory
	Fingerprint string
	Version     string // of the trajgen that played it
	Model       string
	BaseURL     string
	Dataset     string // as the run file names it
	Digest      string // of the dataset
	License     string // of the dataset, where it says one
	Tasks       int
	Samples     int
	Seed        uint64
	RunFile     json.RawMessage // as run.json has it
}

func (o Options) withDefaults() Options {
	o.PartBytes = cmp.Or(o.PartBytes, 256<<20)
	o.PartRows = cmp.Or(o.PartRows, 1_000_000)
	o.RowGroupBytes = cmp.Or(o.RowGroupBytes, 16<<20)
	o.RowGroupRows = cmp.Or(o.RowGroupRows, 100_000)
	return o
}

// Format is something that can be exported to.
type Format struct {
	About    string             // a clause for --help: "one episode per line, exactly as the journal holds it"
	Folder   bool               // it is a directory, and not one file that can go through a pipe
	Settings map[string]Setting // what Options.Set may hold
	Rows     bool               // it has the columns of package rows, and loses nothing of what was read from some

	imaging imaging
	nests   bool // an episode holds its subagents
	trains  bool // trainers learn from its rewards
	shows   bool // trainers learn from its conversations, without rewards
	epochs  bool // it knows episodes by task and sample, as which a twin would be a second one
	open    func(path string, options Options) (target, error)
}

// formats are those that exist. The path is a directory or a file, as the format has it.
var formats = map[string]Format{
	"arrow":                 arrowFormat,
	"arrow-stream":          arrowStreamFormat,
	"hf":                    hfFormat,
	"jsonl":                 jsonlFormat,
	"parquet":               parquetFormat,
	"openai":                openaiFormat,
	"sharegpt":              sharegptFormat,
	"tokens":                tokensFormat,
	"trl":                   trlFormat,
	"trl-preference":        preferenceFormat,
	"trl-prompt-completion": promptCompletionFormat,
	"atif":                  atifFormat,
	"atif-lines":            atifLinesFormat,
	"inspect":               inspectFormat,
	"nemo-gym":              nemoGymFormat,
	"verifiers":             verifiersFormat,
	"verifiers-results":     verifiersResultsFormat,
	"skyrl":                 skyrlFormat,
	"skyrl-dataset":         skyrlDatasetFormat,
	"verl":                  verlFormat,
	"verl-rollouts":         verlRolloutsFormat,
	"verl-sft":              verlSFTFormat,
}

// Formats are the formats that exist, by name.
func Formats() map[string]Format {
	all := maps.Clone(formats)
	for name, format := range all {
		if !format.nests {
			format.Settings = maps.Clone(format.Settings)
			if format.Settings == nil {
				format.Settings = map[string]Setting{}
			}
			format.Settings[childrenSetting] = Setting{
				About: "is rows (default) for subagents as rows of their own, or skip to leave them out",
				words: []string{childrenRows, childrenSkip},
			}
			all[name] = format
		}
	}
	return all
}

// Names lists the formats that exist, sorted.
func Names() []string { return slices.Sorted(maps.Keys(formats)) }

// Open opens a sink of the named format that writes to path.
func Open(name, path string, options Options) (*Sink, error) {
	format, ok := Formats()[name]
	if !ok {
		return nil, fmt.Errorf("unknown output format %q (have %s)", name, strings.Join(Names(), ", "))
	}
	var err error
	if options.Set, err = format.settings(name, options.Set); err != nil {
		return nil, err
	}
	out, err := format.open(path, options.withDefaults())
	if err != nil {
		return nil, err
	}
	return &Sink{target: out, path: path, imaging: format.imaging, nests: format.nests, trains: format.trains, teaches: format.trains || format.shows, epochs: format.epochs, options: options, lost: notes{}}, nil
}

// Source yields episodes in dataset order: by row, then sample. A journal.Reader is one.
type Source interface {
	Episodes(ctx context.Context) iter.Seq2[*episode.Episode, error]
}

// Result is what came of an export.
type Result struct {
	Files    []FileInfo     `json:"files"`
	Episodes int            `json:"episodes"` // that were written
	Dropped  map[string]int `json:"dropped"`  // those that were left out, by reason
	Notes    []string       `json:"notes"`    // what could not be carried
}

// Write writes every episode of source into a sink, commits it and closes it in any case. It holds one episode at a
// time, beside what the sink buffers.
func Write(ctx context.Context, source Source, sink *Sink) (result Result, err error) {
	defer func() { err = errors.Join(err, sink.Close()) }()
	result = Result{Files: []FileInfo{}, Dropped: map[string]int{}, Notes: []string{}} // empty lists in JSON
	for tree, err := range source.Episodes(ctx) {
		if err != nil {
			return result, err
		}
		for ep := range sink.parts(tree) {
			err := sink.Write(ctx, ep)
			if refusal, ok := errors.AsType[*Refusal](err); ok {
				result.Dropped[refusal.Reason]++
				continue
			}
			if err != nil {
				return result, err
			}
			result.Episodes++
		}
	}
	if err := context.Cause(ctx); err != nil { // it came behind the last episode, and nothing has its name yet
		return result, err
	}
	if result.Files, err = sink.Commit(); err != nil {
		return result, err
	}
	for _, part := range []any{source, sink.target, sink.lost} {
		if dropper, ok := part.(Dropper); ok {
			for reason, n := range dropper.Dropped() {
				result.Dropped[reason] += n
				if part == sink.target { // it had taken them
					result.Episodes -= n
				}
			}
		}
		if teller, ok := part.(Teller); ok {
			result.Notes = append(result.Notes, teller.Notes()...)
		}
	}
	return result, nil
}

// RunFiles writes trajectories/ and tool_calls/ of a run directory from its journal, and media/ where episodes have images.
func RunFiles(ctx context.Context, source Source, runDir string) ([]FileInfo, error) {
	sink, err := Open("parquet", runDir, Options{Images: media.Open(media.Dir(runDir)).Read})
	if err != nil {
		return nil, err
	}
	result, err := Write(ctx, source, sink)
	return result.Files, err
}
