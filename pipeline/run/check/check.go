// Package check holds what there is against what was promised: tasks against their verifiers, and a run directory, from run.json to
// each row, against its journal.
package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"trajgen/outputs/export"
	"trajgen/outputs/journal"
	"trajgen/outputs/log"
	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/tools/twin"
	"trajgen/tools/web"
)

// Verification is the findings about a run directory, as `trajgen verify --json` prints them.
type Verification struct {
	Run         string           `json:"run"`
	OK          bool             `json:"ok"`
	Planned     int              `json:"planned"`
	Episodes    int              `json:"episodes"`        // with an attempt that counts
	Twins       int              `json:"twins,omitempty"` // of them, that are twins of others and not among the planned
	Attempts    int              `json:"attempts"`
	Rows        int64            `json:"rows"`  // of trajectories/
	Calls       int64            `json:"calls"` // of tool_calls/
	Damage      []journal.Damage `json:"damage"`
	Differences []string         `json:"differences"`
	More        int              `json:"more_differences,omitempty"` // how many are not listed
	Notes       []string         `json:"notes"`

	manifest run.Manifest
	shown    map[string]string // images → an episode that has it
	writer   string            // the process that is writing the journal; "" if none is
}

const (
	maxDifferences = 100
	maxMissing     = 20 // missing samples that are named
)

func (v *Verification) differ(format string, args ...any) {
	if len(v.Differences) < maxDifferences {
		v.Differences = append(v.Differences, fmt.Sprintf(format, args...))
		return
	}
	v.More++
}

func (v *Verification) note(format string, args ...any) {
	if len(v.Notes) < maxDifferences {
		v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
	}
}

// Text is a line for each difference and each note, and a verdict.
func (v *Verification) Text() string {
	var text strings.Builder
	for _, line := range v.Differences {
		fmt.Fprintln(&text, line)
	}
	if v.More > 0 {
		fmt.Fprintf(&text, "and %d more\n", v.More)
	}
	for _, line := range v.Notes {
		fmt.Fprintln(&text, "note:", line)
	}
	verdict := "nothing differs"
	if !v.OK {
		verdict = fmt.Sprintf("%d differences", len(v.Differences)+v.More)
	}
	of := ""
	if v.Planned > 0 { // unknown for a merged run
		of = fmt.Sprintf("of %d ", v.Planned)
	}
	twins := ""
	if v.Twins > 0 {
		twins = fmt.Sprintf(" and %d twins", v.Twins)
	}
	fmt.Fprintf(&text, "%s: %d %sepisodes%s in %d attempts, %d rows, %d tool calls: %s\n",
		v.Run, v.Episodes-v.Twins, of, twins, v.Attempts, v.Rows, v.Calls, verdict)
	return text.String()
}

// Verify checks a run directory. An error means that it could not be checked.
func Verify(ctx context.Context, dir string) (*Verification, error) {
	v := &Verification{Run: dir, Damage: []journal.Damage{}, Differences: []string{}, Notes: []string{}}
	var err error
	if v.manifest, err = run.ReadManifest(dir); err != nil {
		return nil, err
	}
	v.Planned = v.manifest.Tasks * v.manifest.Samples
	if is := run.Fingerprint(v.manifest.Experiment); is != v.manifest.Fingerprint {
		v.differ("run.json: the fingerprint is %q, its experiment's is %s", v.manifest.Fingerprint, is)
	}
	if s := v.manifest.Schema; s < 1 || s > episode.SchemaVersion {
		v.differ("run.json: schema %d (this trajgen knows 1 to %d)", s, episode.SchemaVersion)
	}
	if v.writer, err = log.Writer(run.JournalDir(dir)); err != nil {
		return nil, err
	}
	// While the run goes on, only the episodes that are there now are checked.
	reader, unreadable := journal.OpenReader(run.JournalDir(dir))
	if unreadable == nil {
		defer reader.Close()
		v.Episodes, v.Attempts = reader.Len(), reader.Attempted()
	}
	if err := v.frames(ctx); err != nil {
		return nil, err
	}
	switch {
	case len(v.Damage) > 0:
		v.note("the rows and the report were not compared: the journal is damaged")
	case unreadable != nil:
		return nil, unreadable
	default:
		err = v.made(ctx, reader)
	}
	if err != nil {
		return nil, err
	}
	if err := v.leftovers(); err != nil {
		return nil, err
	}
	if _, err := run.Spending(dir, v.manifest); err != nil {
		v.differ("%v", err)
	}
	v.images()
	for _, verify := range []func(string) error{web.VerifyRecording, twin.VerifyRecording} {
		if err := verify(dir); err != nil {
			v.differ("%v", err)
		}
	}
	v.OK = len(v.Differences) == 0
	return v, nil
}

// frames reads every byte of the journal.
func (v *Verification) frames(ctx context.Context) error {
	type attempt struct {
		id     string
		number int
	}
	seed, seen := maphash.MakeSeed(), map[uint64]int{} // the segment of each attempt
	repeated := map[[2]int]int{}                       // by the two segments with the same attempt
	damages, err := journal.Inspect(ctx, run.JournalDir(v.Run), func(segment int, e journal.Entry) error {
		key := maphash.Comparable(seed, attempt{e.ID, e.Attempt})
		if first, ok := seen[key]; ok {
			repeated[[2]int{segment, first}]++
		} else {
			seen[key] = segment
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, pair := range slices.SortedFunc(maps.Keys(repeated), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		v.differ("journal/%s: %d attempts that journal/%s has, too", journal.SegmentName(pair[0]), repeated[pair], journal.SegmentName(pair[1]))
	}
	indexes, err := journal.DamagedIndexes(run.JournalDir(v.Run))
	if err != nil {
		return err
	}
	for _, name := range indexes {
		v.differ("journal/%s is damaged: it is a copy, no episode is lost, and trajgen run --resume writes it anew", name)
	}
	for _, d := range damages {
		if d.Torn {
			v.note("%v: the next run cuts it off, and nothing of it was acknowledged", d)
			continue
		}
		v.Damage = append(v.Damage, d)
		v.differ("%v; lost: %s (trajgen repair --run %s)", d, d.LostText(), v.Run)
	}
	return nil
}

// identity checks an attempt's schema, id, run, row and number.
func (v *Verification) identity(ep *episode.Episode) {
	for each := range ep.Tree() {
		for _, child := range each.Children {
			id := child.Key.ID()
			from := child.Origin != nil && child.Origin.Parent == each.ID && episode.RootOf(id) == ep.ID
			if id != child.ID || !from || child.Row != ep.Row || child.Attempt != ep.Attempt || child.Run != ep.Run {
				v.differ("journal: subagent %s, attempt %d: it is not of episode %s, its row, attempt and run, or its key gives the id %s",
					child.ID, child.Attempt, each.ID, id)
			}
		}
	}
	wrong := func(format string, args ...any) {
		v.differ("journal: episode %s, attempt %d: %s", ep.ID, ep.Attempt, fmt.Sprintf(format, args...))
	}
	if ep.Schema < 1 || ep.Schema > episode.SchemaVersion {
		wrong("schema %d (this trajgen knows 1 to %d)", ep.Schema, episode.SchemaVersion)
	}
	if id := ep.Key.ID(); id != ep.ID {
		wrong("its key gives the id %s", id)
	}
	if ep.Run != v.manifest.Fingerprint && !slices.Contains(v.manifest.Of(), ep.Run) {
		wrong("it is of the run %q (want %s)", ep.Run, v.manifest.Fingerprint)
	}
	if ep.Row != ep.Task.Row {
		wrong("it is of row %d, its task of row %d", ep.Row, ep.Task.Row)
	}
	if ep.Attempt < 1 {
		wrong("attempts count from 1")
	}
	if ep.Schema < 4 { // older schemas kept the faults of attempts, and not each attempt
		return
	}
	numbered := len(ep.Earlier) == ep.Attempt-1
	for i, earlier := range ep.Earlier {
		numbered = numbered && earlier.Attempt == i+1
	}
	if !numbered {
		wrong("it has %d earlier attempts, or not in their order (want 1 to %d)", len(ep.Earlier), ep.Attempt-1)
	}
}

// made compares the files that are made from the journal with it, in one reading.
func (v *Verification) made(ctx context.Context, reader *journal.Reader) error {
	builder, err := run.BeginReport(v.Run, v.manifest, 0, 0)
	if err != nil {
		return err
	}
	reader.Strict = true
	for ep, err := range export.Ahead(reader.Uncounted()).Episodes(ctx) {
		if err != nil {
			return v.unread(err)
		}
		v.identity(ep)
		v.shows(ep)
	}
	missing := missingSamples{samples: v.manifest.Samples}
	source := export.Seen(export.Ahead(reader), func(ep *episode.Episode) {
		v.identity(ep)
		v.shows(ep)
		builder.Add(ep)
		if ep.Twin != nil {
			v.Twins++
			return
		}
		missing.add(ep)
	})
	if err := v.files(ctx, source, builder); err != nil {
		return v.unread(err)
	}
	if absent := v.Planned - (v.Episodes - v.Twins); absent > 0 {
		v.differ("journal: %d of %d episodes are missing (trajgen run --resume plays them): %s", absent, v.Planned, missing.text(v.manifest.Tasks))
	}
	return nil
}

// unread reports an episode whose bytes are intact but cannot be decoded.
func (v *Verification) unread(err error) error {
	if _, damaged := errors.AsType[*journal.ErrDamaged](err); !damaged {
		return err
	}
	v.differ("%v", err)
	v.note("the rows and the report were not compared, or not all of them")
	return nil
}

// files compares the files that Finish makes.
func (v *Verification) files(ctx context.Context, source export.Source, builder *report.Builder) error {
	there, err := run.MadeFiles(v.Run)
	if err != nil {
		return err
	}
	noted, err := run.ReadSums(v.Run)
	if err != nil {
		v.differ("%s: %v", run.SumsName, err)
	}
	if v.writer != "" || len(there) == 0 && noted == nil {
		if v.writer != "" {
			v.note("%s is writing: what is made at the end of the run was not looked at", v.writer)
		} else {
			v.note("there are no Parquet files and no report: the run has not ended yet")
		}
		for _, err := range source.Episodes(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	changed, by := map[string]bool{}, v.manifest.Version
	if noted != nil {
		by = noted.Version
		if changed, err = noted.Check(v.Run, v.differ); err != nil {
			return err
		}
	} else {
		v.note("there is no %s: the end of the run was interrupted, or an earlier trajgen made the files", run.SumsName)
	}
	others := 0 // unchanged files of another version, which this one would write with other bytes
	v.Rows, v.Calls, err = export.CompareRunFiles(ctx, source, v.Run, func(d export.FileDifference) {
		switch name := run.Below(v.Run, d.Path); {
		case changed[name]: // already reported
		case by != run.Version() && d.Byte >= 0:
			others++
		default:
			v.differ("%s: %s, compared with what the journal gives (trajgen run --resume writes it anew)", name, d.How)
		}
	})
	if err != nil {
		return err
	}
	if others > 0 {
		v.otherwise(others, by)
	}
	return v.report(builder.Finish(), changed, by)
}

// otherwise reports Parquet files that another version of trajgen wrote with other bytes.
func (v *Verification) otherwise(files int, by string) {
	rows := -1
	was, err := export.OpenFiles(v.Run)
	if err == nil {
		rows = was.Len()
		err = was.Close()
	}
	if err != nil {
		v.differ("%v", err)
		return
	}
	if rows != v.Episodes {
		v.differ("trajectories has %d episodes, the journal has %d (trajgen run --resume writes it anew)", rows, v.Episodes)
		return
	}
	v.note("%d Parquet files are by trajgen %s, which writes other bytes than this one, %s: their rows were counted and not compared (trajgen run --resume writes them anew)", files, by, run.Version())
}

// report compares report.json with a new report.
func (v *Verification) report(now *report.Report, changed map[string]bool, by string) error {
	for _, name := range []string{"report.md", "report.json"} {
		if _, err := os.Stat(filepath.Join(v.Run, name)); errors.Is(err, fs.ErrNotExist) && !changed[name] {
			v.differ("%s is missing (trajgen run --resume writes it)", name)
		}
	}
	data, err := os.ReadFile(filepath.Join(v.Run, "report.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read report.json: %w", err)
	}
	var was, is map[string]any
	if err := json.Unmarshal(data, &was); err != nil {
		v.differ("report.json: %v", err)
		return nil
	}
	fresh, err := json.Marshal(now)
	if err == nil {
		err = json.Unmarshal(fresh, &is)
	}
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	for _, name := range []string{"time", "budget"} { // wall time, and spending on episodes that are not in the journal
		delete(was, name)
		delete(is, name)
	}
	if was["schema"] != is["schema"] {
		v.note("report.json has schema %v and was not compared", was["schema"])
		return nil
	}
	say := v.differ
	if by != run.Version() {
		say = v.note
	}
	unequal("report.json", is, was, func(at string, want, got any) {
		say("%s: the journal gives %s, the file has %s", at, brief(want), brief(got))
	})
	return nil
}

// leftovers lists files that a crash left behind.
func (v *Verification) leftovers() error {
	var found []string
	for _, pattern := range []string{".tmp-*", "*/.tmp-*", "*.tmp", "*/.*.tmp", "*/*.tmp", "web/blobs/*/.tmp-*", "images/*/.tmp-*", "journal/*.torn"} {
		paths, err := filepath.Glob(filepath.Join(v.Run, pattern))
		if err != nil {
			return err
		}
		found = append(found, paths...)
	}
	slices.Sort(found)
	for _, path := range slices.Compact(found) {
		if strings.HasSuffix(path, ".torn") {
			v.note("%s: what an interrupted write left was cut off the journal and kept", path)
			continue
		}
		v.note("%s: a temporary file; it is of no use once nothing runs here", path)
	}
	return nil
}
