package export_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"trajgen/outputs/export"
	"trajgen/outputs/internal/golden"
	"trajgen/outputs/journal"
	"trajgen/outputs/rows"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// formats say how a test reads back what a sink wrote. Each sink that exists must be here.
var formats = map[string]sinktest.Format{
	"arrow":        {Path: "data/run", IDs: filesIDs},
	"arrow-stream": {Path: "data/run.arrows", IDs: arrowStreamIDs},
	"hf":           {Path: "data/hf", IDs: filesIDs},
	"jsonl": {Path: "data/episodes.jsonl", IDs: func(t *testing.T, path string) []string {
		var ids []string
		for _, ep := range readJSONL(t, path) {
			ids = append(ids, ep.ID)
		}
		return ids
	}},
	"parquet": {Path: "data/run", IDs: func(t *testing.T, path string) []string {
		var ids []string
		for _, part := range parts(t, path, "trajectories") {
			rows, err := parquet.ReadFile[rows.Trajectory](part)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				ids = append(ids, row.ID)
			}
		}
		return ids
	}},
	"openai":                {Path: "data/openai.jsonl", Set: map[string]string{"id": "id"}, Carries: hasMessages, IDs: idsOf(rowID)},
	"sharegpt":              {Path: "data/sharegpt.jsonl", Carries: hasMessages, IDs: idsOf(timestampIDs)},
	"tokens":                {Path: "data/tokens.parquet", Carries: hasSequence, IDs: idColumn("id")},
	"trl":                   {Path: "data/trl.jsonl", Set: asTexts, Carries: hasMessages, IDs: idsOf(rowID)},
	"trl-preference":        {Path: "data/pairs.jsonl", Set: asTexts, Carries: paired, IDs: idsOf(func(row chatRow) []string { return []string{row.ChosenID, row.RejectedID} })},
	"trl-prompt-completion": {Path: "data/pc.jsonl", Set: asTexts, Carries: hasMessages, IDs: idsOf(rowID)},
}

// asTexts lets rows have arguments that are not objects.
var asTexts = map[string]string{"json": "string"}

func TestSinks(t *testing.T) {
	if diff := cmp.Diff(export.Names(), slices.Sorted(maps.Keys(formats))); diff != "" {
		t.Fatalf("sinks without a suite (-have +tested):\n%s", diff)
	}
	for _, name := range export.Names() {
		format := formats[name]
		format.Name = name
		t.Run(name, func(t *testing.T) { sinktest.Run(t, format) })
	}
}

func TestOpenSinkNamesWhatWouldBeRight(t *testing.T) {
	_, err := export.Open("parqet", t.TempDir(), export.Options{})
	if err == nil || !strings.Contains(err.Error(), "have "+strings.Join(export.Names(), ", ")) {
		t.Errorf("OpenSink(parqet): %v, want an error that lists the formats", err)
	}
}

func parts(t *testing.T, dir, table string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, table, "part-*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readJSONL(t *testing.T, path string) []*episode.Episode {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var episodes []*episode.Episode
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		ep := new(episode.Episode)
		if err := json.Unmarshal(lines.Bytes(), ep); err != nil {
			t.Fatal(err)
		}
		episodes = append(episodes, ep)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return episodes
}

func TestJSONLHoldsWholeEpisodes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "episodes.jsonl")
	sink, err := export.Open("jsonl", path, export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	episodes := sinktest.Episodes(20)
	if _, err := export.Write(t.Context(), sinktest.Slice(episodes), sink); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(episodes, readJSONL(t, path)); diff != "" {
		t.Errorf("episodes (-want +got):\n%s", diff)
	}
}

// An export that is interrupted behind its last episode leaves what was there.
func TestInterruptBehindTheLastEpisode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "episodes.jsonl")
	write := func(ctx context.Context, source export.Source) error {
		sink, err := export.Open("jsonl", path, export.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = export.Write(ctx, source, sink)
		return err
	}
	if err := write(t.Context(), sinktest.Slice(sinktest.Episodes(3))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := write(ctx, endsWith{sinktest.Slice(sinktest.Episodes(5)), cancel}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v, want %v", err, context.Canceled)
	}
	if have := len(readJSONL(t, path)); have != 3 {
		t.Errorf("%d episodes, want the 3 of the earlier export", have)
	}
}

// endsWith is a source behind whose last episode something happens.
type endsWith struct {
	export.Source
	what func()
}

func (e endsWith) Episodes(ctx context.Context) iter.Seq2[*episode.Episode, error] {
	return func(yield func(*episode.Episode, error) bool) {
		for ep, err := range e.Source.Episodes(ctx) {
			if !yield(ep, err) {
				return
			}
		}
		e.what()
	}
}

// runDir is a run directory with a journal of the episodes, appended in the given order.
func runDir(t *testing.T, episodes []*episode.Episode) string {
	t.Helper()
	dir := t.TempDir()
	j := open(t, filepath.Join(dir, "journal"), journal.Options{})
	fill(t, j, episodes)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeDataset(t *testing.T, dir string) []export.FileInfo {
	t.Helper()
	files, err := export.RunFiles(t.Context(), reader(t, filepath.Join(dir, "journal")), dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The same episodes give the same bytes, whatever the order in which they ended, and wherever and how often they are
// exported.
func TestDatasetFilesAreAFunctionOfTheJournal(t *testing.T) {
	episodes := sinktest.Episodes(40)
	read := func(dir string) map[string][]byte {
		content := make(map[string][]byte)
		for _, f := range writeDataset(t, dir) {
			name, err := filepath.Rel(dir, f.Path)
			if err != nil {
				t.Fatal(err)
			}
			if content[name], err = os.ReadFile(f.Path); err != nil {
				t.Fatal(err)
			}
		}
		return content
	}
	here := runDir(t, episodes)
	first := read(here)
	if len(first) != 2 {
		t.Errorf("files: %v, want one part of each table", slices.Sorted(maps.Keys(first)))
	}
	backwards := slices.Clone(episodes)
	slices.Reverse(backwards)
	for name, again := range map[string]map[string][]byte{"exported again": read(here), "ended in another order": read(runDir(t, backwards))} {
		for file, want := range first {
			if !bytes.Equal(want, again[file]) {
				t.Errorf("%s: %s differs", name, file)
			}
		}
	}
}

func TestPartsAndRowGroupsAreBounded(t *testing.T) {
	dir := t.TempDir()
	options := export.Options{PartBytes: 500_000, RowGroupBytes: 200_000}
	sink, err := export.Open("parquet", dir, options)
	if err != nil {
		t.Fatal(err)
	}
	var episodes []*episode.Episode
	for n := range 120 {
		ep := sinktest.Episode(n, 0)
		noise := make([]byte, 10_000) // does not shrink
		for i, rng := 0, ep.Key.Rand("noise"); i < len(noise); i++ {
			noise[i] = byte(rng.Uint32())
		}
		ep.Answer = fmt.Sprintf("%x", noise)
		episodes = append(episodes, ep)
	}
	if _, err := export.Write(t.Context(), sinktest.Slice(episodes), sink); err != nil {
		t.Fatal(err)
	}
	files := parts(t, dir, "trajectories")
	if len(files) < 2 {
		t.Errorf("%d parts, want several", len(files))
	}
	for i, path := range files {
		f := openParquet(t, path)
		groups := f.RowGroups()
		// A rule on the file's whole size would flush after each row from the second group on.
		if i < len(files)-1 && (len(groups) < 2 || int64(len(groups)) > f.NumRows()/2) {
			t.Errorf("%s: %d row groups for %d rows, want a few rows in each", path, len(groups), f.NumRows())
		}
		// The bound is on the pages; the footer describes every page of every column on top.
		if f.Size() > options.PartBytes+200_000 {
			t.Errorf("%s: %d bytes, want about %d", path, f.Size(), options.PartBytes)
		}
	}
}

func openParquet(t *testing.T, path string) *parquet.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// The schema is what users' queries are written against: a change of this file is a change of the format.
func TestSchema(t *testing.T) {
	dir := runDir(t, sinktest.Episodes(1))
	var text strings.Builder
	for _, f := range writeDataset(t, dir) {
		file := openParquet(t, f.Path)
		text.WriteString(file.Schema().String() + "\n")
		for _, key := range []string{"trajgen.schema_version", "trajgen.table"} {
			value, _ := file.Lookup(key)
			text.WriteString(key + " = " + value + "\n")
		}
		text.WriteString("\n")
		for _, path := range file.Schema().Columns() {
			name := strings.Join(path, ".")
			if strings.Contains(name, "key_value") {
				t.Errorf("column %s is a map", name)
			}
			leaf, _ := file.Schema().Lookup(path...)
			if leaf.MaxRepetitionLevel != strings.Count(name, "list.element") {
				t.Errorf("column %s repeats without a list", name)
			}
		}
	}
	golden.Check(t, []byte(text.String()))
}

// What the tags of the row types must keep to; parquet-go takes them otherwise without a word.
func TestRowTypes(t *testing.T) {
	var check func(path string, typ reflect.Type)
	check = func(path string, typ reflect.Type) {
		for field := range typ.Fields() {
			name := path + "." + field.Name
			tag := strings.Split(field.Tag.Get("parquet"), ",")
			if want := snake(field.Name); strings.ToLower(tag[0]) != tag[0] || tag[0] == "" {
				t.Errorf("%s is column %q; want a name like %s", name, tag[0], want)
			}
			if slices.Contains(tag, "optional") != (field.Type.Kind() == reflect.Pointer) {
				t.Errorf("%s: optional columns are pointers, and pointers are optional columns", name)
			}
			if field.Type.Kind() == reflect.Map || field.Type.Kind() == reflect.Interface {
				t.Errorf("%s is a %s; want a list of pairs or a text", name, field.Type)
			}
			inner := field.Type
			if inner.Kind() == reflect.Slice {
				if !slices.Contains(tag, "list") {
					t.Errorf("%s is a slice without the list tag", name)
				}
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				check(name, inner)
			}
		}
	}
	check("TrajectoryRow", reflect.TypeFor[rows.Trajectory]())
	check("ToolCallRow", reflect.TypeFor[rows.ToolCall]())
}

func snake(name string) string {
	return strings.ToLower(regexp.MustCompile("([a-z])([A-Z])").ReplaceAllString(name, "${1}_$2"))
}

// Bounds of texts stand in the footer whole and uncompressed.
func TestNoBoundsOfFreeText(t *testing.T) {
	episodes := sinktest.Episodes(3)
	for _, ep := range episodes {
		large := sinktest.Large(1 << 20)
		ep.Answer, ep.Messages = large, append(ep.Messages, episode.Message{Role: "assistant", Content: large})
		ep.Calls = append(ep.Calls, episode.ToolCall{ID: "x", Name: "terminal", Status: episode.CallOK, Result: large})
	}
	short := map[string]bool{"episode_id": true, "outcome": true, "stop": true, "status": true}
	var sum int64
	for _, f := range writeDataset(t, runDir(t, episodes)) {
		sum += f.Bytes
		file := openParquet(t, f.Path)
		for g, group := range file.Metadata().RowGroups {
			for c, column := range group.Columns {
				name := strings.Join(column.MetaData.PathInSchema, ".")
				stats := column.MetaData.Statistics
				bounds := len(stats.MinValue)+len(stats.MaxValue)+len(stats.Min)+len(stats.Max) > 0
				for _, page := range slices.Concat(file.ColumnIndexes()[g*len(group.Columns)+c].MinValues, file.ColumnIndexes()[g*len(group.Columns)+c].MaxValues) {
					bounds = bounds || len(page) > 0
				}
				text := file.Schema().Columns() != nil && column.MetaData.Type.String() == "BYTE_ARRAY"
				if text && bounds != short[name] {
					t.Errorf("%s: bounds %v, want %v", name, bounds, short[name])
				}
			}
		}
		id, _ := file.Schema().Lookup("episode_id")
		filter := file.RowGroups()[0].ColumnChunks()[id.ColumnIndex].BloomFilter()
		if filter == nil {
			t.Errorf("%s has no bloom filter on the id", f.Path)
		} else if has, err := filter.Check(parquet.ValueOf(episodes[1].ID)); err != nil || !has {
			t.Errorf("bloom filter misses an id: %v, %v", has, err)
		}
	}
	// 9 texts of 1 MB, which shrink to a tenth; bounds would add two copies of each at least.
	if want := int64(2 << 20); sum > want {
		t.Errorf("the files have %d bytes, want less than %d", sum, want)
	}
	t.Logf("the files have %d bytes", sum)
}

func open(t *testing.T, dir string, options journal.Options) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, options)
	if err != nil {
		t.Fatalf("OpenJournal: %v", err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func fill(t *testing.T, j *journal.Journal, episodes []*episode.Episode) {
	t.Helper()
	for _, ep := range episodes {
		if err := j.Append(t.Context(), ep); err != nil {
			t.Fatalf("Append %s: %v", ep.ID, err)
		}
	}
}

func reader(t *testing.T, dir string) *journal.Reader {
	t.Helper()
	r, err := journal.OpenReader(dir)
	if err != nil {
		t.Fatalf("OpenReader: %v", err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func all(t *testing.T, source export.Source) []*episode.Episode {
	t.Helper()
	var episodes []*episode.Episode
	for ep, err := range source.Episodes(t.Context()) {
		if err != nil {
			t.Fatalf("Episodes: %v", err)
		}
		episodes = append(episodes, ep)
	}
	return episodes
}

// TestJournalBeforeTokenIDs reads a journal of schema 2, and exports it.
func TestJournalBeforeTokenIDs(t *testing.T) {
	r := reader(t, "testdata/schema2")
	want := sinktest.Episodes(4)
	var got []*episode.Episode
	for ep, err := range r.Episodes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ep)
	}
	if len(got) != len(want) {
		t.Fatalf("%d episodes, want %d", len(got), len(want))
	}
	for i, ep := range got {
		if ep.Schema != 2 || ep.ID != want[i].ID || len(ep.Messages) != len(want[i].Messages) || ep.Drift != nil {
			t.Errorf("episode %d: schema %d, id %s, %d messages, drift %+v", i, ep.Schema, ep.ID, len(ep.Messages), ep.Drift)
		}
	}
	dir := t.TempDir()
	if _, err := export.RunFiles(t.Context(), r, dir); err != nil {
		t.Fatal(err)
	}
	for i, row := range arrowRows(t, dir, "trajectories") {
		if row["drift"] != "unknown" || len(row["token_ids"].([]any)) != 0 || row["episode_id"] != want[i].ID {
			t.Errorf("row %d: id %v, drift %v, token ids %v", i, row["episode_id"], row["drift"], row["token_ids"])
		}
	}
}

// TestJournalWithAttemptsAsFaults reads a journal of schema 3, whose earlier attempts are nothing but faults, and exports it.
func TestJournalWithAttemptsAsFaults(t *testing.T) {
	r := reader(t, "testdata/schema3")
	want := sinktest.Episodes(6)
	i := 0
	for ep, err := range r.Episodes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[i].Earlier, ep.Earlier); ep.Schema != 3 || diff != "" {
			t.Errorf("episode %d: schema %d, earlier attempts (-want +got):\n%s", i, ep.Schema, diff)
		}
		i++
	}
	dir := t.TempDir()
	if _, err := export.RunFiles(t.Context(), r, dir); err != nil {
		t.Fatal(err)
	}
	for i, row := range arrowRows(t, dir, "trajectories") {
		if row["episode_id"] != want[i].ID || len(row["earlier_attempts"].([]any)) != len(want[i].Earlier) {
			t.Errorf("row %d: id %v, earlier %v", i, row["episode_id"], row["earlier_attempts"])
		}
	}
}

// TestJournalBeforeArgumentsWereSentOtherwise reads a journal of schema 4, whose calls were sent as they were written, and
// exports it.
func TestJournalBeforeArgumentsWereSentOtherwise(t *testing.T) {
	r := reader(t, "testdata/schema4")
	want := sinktest.Episodes(6)
	i := 0
	for ep, err := range r.Episodes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if ep.Schema != 4 || ep.ID != want[i].ID || len(ep.Turns) != len(want[i].Turns) {
			t.Errorf("episode %d: schema %d, id %s, %d turns", i, ep.Schema, ep.ID, len(ep.Turns))
		}
		for _, turn := range ep.Turns {
			for _, call := range ep.Messages[turn.Message].Calls {
				if turn.Raw != "" || call.Sent != "" {
					t.Errorf("episode %d: raw %q, sent %q", i, turn.Raw, call.Sent)
				}
			}
		}
		i++
	}
	dir := t.TempDir()
	if _, err := export.RunFiles(t.Context(), r, dir); err != nil || i != len(want) {
		t.Fatalf("%d episodes, %v", i, err)
	}
	for i, row := range arrowRows(t, dir, "trajectories") {
		if row["episode_id"] != want[i].ID || len(row["turns"].([]any)) != len(want[i].Turns) {
			t.Errorf("row %d: id %v, turns %v", i, row["episode_id"], row["turns"])
		}
	}
}

// TestEarlierSchemas reads journals and rows of schema 5, whose calls say nothing of what answered them, of schema 6, without
// images, of schema 7, of schema 8, without proofs, and of schema 9, without planted faults, and exports them.
func TestEarlierSchemas(t *testing.T) {
	for schema, lacks := range map[int]string{5: "source", 6: "images", 7: "", 8: "", 9: "planted_class"} {
		dir := fmt.Sprintf("testdata/schema%d", schema)
		files, err := export.OpenFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		r := reader(t, dir)
		want := sinktest.Episodes(3)
		for name, episodes := range map[string]iter.Seq2[*episode.Episode, error]{"journal": r.Episodes(t.Context()), "rows": files.Episodes(t.Context())} {
			i := 0
			for ep, err := range episodes {
				if err != nil {
					t.Fatal(err)
				}
				if ep.Schema != schema || ep.ID != want[i].ID || (ep.Web != "") != (schema >= 7) || (ep.Proof != nil) != (schema >= 9 && i == 2) || len(ep.Calls) != len(want[i].Calls) || len(ep.Images()) > 0 {
					t.Errorf("%s of schema %d, episode %d: schema %d, id %s, %d calls", name, schema, i, ep.Schema, ep.ID, len(ep.Calls))
				}
				for _, call := range ep.Calls {
					if schema == 5 && call.Source != nil {
						t.Errorf("%s of schema %d, episode %d: source %s", name, schema, i, call.Source)
					}
				}
				i++
			}
			if i != len(want) {
				t.Errorf("%s of schema %d: %d episodes, want %d", name, schema, i, len(want))
			}
		}
		out := t.TempDir()
		if _, err := export.RunFiles(t.Context(), r, out); err != nil {
			t.Fatal(err)
		}
		for i, row := range arrowRows(t, out, "tool_calls") {
			if row[lacks] != nil {
				t.Errorf("schema %d, row %d: %s %v", schema, i, lacks, row[lacks])
			}
		}
	}
}

// TestRowsWithAnotherIDColumn reads Parquet files of schema 4, in which the episode's id is called id.
func TestRowsWithAnotherIDColumn(t *testing.T) {
	files, err := export.OpenFiles("testdata/schema4")
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	want := sinktest.Episodes(3)
	i := 0
	for ep, err := range files.Episodes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if ep.Schema != 4 || ep.ID != want[i].ID || len(ep.Calls) != len(want[i].Calls) {
			t.Errorf("episode %d: schema %d, id %s, %d calls", i, ep.Schema, ep.ID, len(ep.Calls))
		}
		i++
	}
	if i != len(want) {
		t.Errorf("%d episodes, want %d", i, len(want))
	}
}
