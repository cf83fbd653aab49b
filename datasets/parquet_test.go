package datasets_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"trajgen/datasets"
)

type parquetCall struct {
	Name      string            `parquet:"name"`
	Arguments map[string]string `parquet:"arguments"`
}

type parquetStep struct {
	Content *string       `parquet:"content,optional"`
	Calls   []parquetCall `parquet:"tool_calls,list"`
}

type parquetRow struct {
	ID     *int64            `parquet:"id,optional"`
	Prompt string            `parquet:"prompt"`
	Files  map[string][]byte `parquet:"files"`
	Gold   []parquetStep     `parquet:"gold,list"`
	Verify string            `parquet:"verify"` // JSON text
	Tags   []string          `parquet:"tags,list"`
	Limits struct {
		Turns *int32 `parquet:"turns,optional"`
	} `parquet:"limits"`

	Score   float32            `parquet:"score"`
	Ratio   float64            `parquet:"ratio"`
	Big     uint64             `parquet:"big"`
	When    time.Time          `parquet:"when,timestamp(microsecond)"`
	Day     int32              `parquet:"day,date"`
	Price   int64              `parquet:"price,decimal(2:18)"`
	Owed    [3]byte            `parquet:"owed,decimal(4:6)"`
	Old     deprecated.Int96   `parquet:"old"`
	Known   bool               `parquet:"known"`
	Key     [16]byte           `parquet:"key,uuid"`
	Nothing *string            `parquet:"nothing,optional"`
	Counts  map[int32]*float64 `parquet:"counts"`
	Bare    []struct {
		A *int64   `parquet:"a,optional"`
		B []string `parquet:"b"`
	} `parquet:"bare"`
}

func parquetRows() []parquetRow {
	number := func(n int64) *int64 { return &n }
	text := func(s string) *string { return &s }
	half := 0.5
	turns := int32(7)
	full := parquetRow{
		ID: number(9007199254740993), Prompt: "Fix it.", Files: map[string][]byte{"a.txt": []byte("text"), "b.bin": {0xff, 0}},
		Gold: []parquetStep{
			{Content: text("I look."), Calls: []parquetCall{{"terminal", map[string]string{"command": "ls"}}, {"todo", nil}}},
			{Content: text("Done.")},
		},
		Verify: `{"command": "true"}`, Tags: []string{"x", "y"}, Score: 0.1, Ratio: math.NaN(), Big: math.MaxUint64,
		When: time.Date(2026, 5, 6, 7, 8, 9, 123456000, time.UTC), Day: -1, Price: -5, Owed: [3]byte{0xff, 0xff, 0x9c},
		Old: deprecated.Int96{1_000_000_000, 0, 2440589}, Known: true, Key: [16]byte{15: 1},
		Counts: map[int32]*float64{3: &half, 4: nil},
	}
	full.Limits.Turns = &turns
	full.Bare = append(full.Bare, struct {
		A *int64   `parquet:"a,optional"`
		B []string `parquet:"b"`
	}{nil, []string{"p", "q"}}, struct {
		A *int64   `parquet:"a,optional"`
		B []string `parquet:"b"`
	}{number(2), nil})
	return []parquetRow{full, {Prompt: "Only a prompt.", When: time.Unix(0, 0), Old: deprecated.Int96{0, 0, 2440588}}}
}

func parquetFile(t *testing.T) string {
	t.Helper()
	return write(t, "tasks.parquet", parquetBytes(t))
}

func parquetBytes(t *testing.T) string {
	t.Helper()
	var buffer bytes.Buffer
	writer := parquet.NewGenericWriter[parquetRow](&buffer, parquet.Compression(&parquet.Zstd))
	for _, row := range parquetRows() { // a row group each
		if _, err := writer.Write([]parquetRow{row}); err != nil {
			t.Fatal(err)
		}
		if err := writer.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.String()
}

// TestParquet holds what each type becomes; the second row is all zeros and nulls.
func TestParquet(t *testing.T) {
	var got bytes.Buffer
	for _, task := range read(t, parquetFile(t), datasets.Options{}) {
		encoder := json.NewEncoder(&got)
		encoder.SetIndent("", " ")
		if err := encoder.Encode(task); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, got.Bytes())
}

// TestParquetNesting covers shapes that no Go struct writes: lists of lists with nulls at each depth, and the older
// forms of lists.
func TestParquetNesting(t *testing.T) {
	item := parquet.Leaf(parquet.Int32Type)
	schema := parquet.NewSchema("rows", parquet.Group{
		"prompt": parquet.String(),
		// optional list of optional lists of optional integers: definition levels up to 5
		"matrix": parquet.Optional(parquet.List(parquet.Optional(parquet.List(parquet.Optional(item))))),
		"bare":   parquet.Repeated(item),
	})
	var buffer bytes.Buffer
	writer := parquet.NewWriter(&buffer, schema)
	type v struct{ value, repetition, definition int }
	columns := [][][]v{ // of each row: bare, matrix
		{{{1, 0, 1}, {2, 1, 1}}, {{1, 0, 5}, {0, 2, 4}, {3, 2, 5}, {0, 1, 3}, {0, 1, 2}, {4, 1, 5}}},
		{{{0, 0, 0}}, {{0, 0, 1}}},
		{{{7, 0, 1}}, {{0, 0, 0}}},
	}
	for _, row := range columns {
		var values parquet.Row
		for column, list := range row {
			for _, v := range list {
				value := parquet.NullValue()
				if v.value != 0 {
					value = parquet.Int32Value(int32(v.value))
				}
				values = append(values, value.Level(v.repetition, v.definition, column))
			}
		}
		values = append(values, parquet.ByteArrayValue([]byte("p")).Level(0, 0, 2))
		if _, err := writer.WriteRows([]parquet.Row{values}); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, task := range read(t, write(t, "a.parquet", buffer.String()), datasets.Options{}) {
		got = append(got, string(task.Metadata))
	}
	want := []string{`{"bare":[1,2],"matrix":[[1,null,3],[],null,[4]]}`, `{"matrix":[]}`, `{"bare":[7]}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestParquetIsLikeJSONL holds that a row has the same content hash in either form.
func TestParquetIsLikeJSONL(t *testing.T) {
	type shape struct {
		Prompt string   `parquet:"prompt"`
		Level  *int32   `parquet:"level,optional"`
		Notes  []string `parquet:"notes,list"`
	}
	path := filepath.Join(t.TempDir(), "a.parquet")
	three := int32(3)
	if err := parquet.WriteFile(path, []shape{{"a", &three, []string{"n"}}, {"b", nil, []string{"m"}}}); err != nil {
		t.Fatal(err)
	}
	lines := write(t, "a.jsonl", `{"level":3,"notes":["n"],"prompt":"a"}`+"\n"+`{"notes":["m"],"prompt":"b","level":null}`)
	if diff := cmp.Diff(read(t, lines, datasets.Options{}), read(t, path, datasets.Options{})); diff != "" {
		t.Errorf("(-JSONL +Parquet):\n%s", diff)
	}
}

func TestParquetRowError(t *testing.T) {
	type shape struct {
		Prompt string `parquet:"prompt"`
		Verify string `parquet:"verify"`
	}
	path := filepath.Join(t.TempDir(), "tasks.bin")
	if err := parquet.WriteFile(path, []shape{{"a", ""}, {"b", "{\"exat\": 1}"}, {"c\xff", ""}, {"d", ""}}); err != nil {
		t.Fatal(err)
	}
	var skipped []string
	tasks := read(t, path, datasets.Options{SkipBadRows: true, OnSkip: func(bad *datasets.RowError) { skipped = append(skipped, bad.Error()) }})
	want := []string{
		path + `: row 2: verify.exat: unknown key, did you mean "exact"? (have after, at_least, case, command, contains, env, exact, home_state, json, match, measure, name, number, outbox, python, regex, relative, reward, similar, site_state, test_timeout, tests, threshold, timeout, tolerance, trim, unicode, unit, verifier, weight); verify: it checks nothing, want one of command, contains, exact, home_state, json, number, outbox, python, regex, similar, site_state`,
		path + ": row 3: column prompt: invalid UTF-8 at byte 2",
	}
	if diff := cmp.Diff(want, skipped); diff != "" || len(tasks) != 2 || tasks[1].Row != 3 {
		t.Errorf("%d tasks, want 2; skipped (-want +got):\n%s", len(tasks), diff)
	}
}

// TestParquetWithoutRows covers the file that is whole but empty.
func TestParquetWithoutRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	if err := parquet.WriteFile(path, []parquetRow{}); err != nil {
		t.Fatal(err)
	}
	for _, err := range open(t, path, datasets.Options{}).Tasks(t.Context()) {
		wantError(t, err, "a.parquet has no rows")
	}
}

// TestDamagedParquet flips and cuts: whatever comes is an error or a task, never a panic and never silence.
func TestDamagedParquet(t *testing.T) {
	whole := parquetBytes(t)
	path := filepath.Join(t.TempDir(), "a.parquet")
	try := func(content []byte) (tasks int, last error) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		source, err := datasets.Open(path, datasets.Options{})
		if err != nil {
			return 0, err
		}
		for _, err := range source.Tasks(t.Context()) {
			tasks++
			last = err
		}
		return tasks, last
	}
	for _, size := range []int{4, 12, len(whole) / 2, len(whole) - 1} {
		if _, err := try([]byte(whole[:size])); err == nil {
			t.Errorf("cut to %d of %d bytes: no error", size, len(whole))
		} else {
			wantError(t, err, "damaged or cut off")
		}
	}
	step := 31
	if testing.Short() {
		step = 301
	}
	for at := 4; at < len(whole); at += step {
		content := []byte(whole)
		content[at] ^= 0x55
		if tasks, err := try(content); err == nil && tasks != 2 {
			t.Errorf("byte %d flipped: %d tasks without an error, want 2", at, tasks)
		}
	}
}
