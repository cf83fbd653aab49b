package export_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/export"
	"trajgen/outputs/rows"
	"trajgen/outputs/sinktest"
)

// arrowStreamIDs reads with Arrow's own reader.
func arrowStreamIDs(t *testing.T, path string) (ids []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := ipc.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for r.Next() {
		column := r.Record().Column(r.Schema().FieldIndices("episode_id")[0]).(*array.String)
		for i := range column.Len() {
			ids = append(ids, strings.Clone(column.Value(i)))
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// arrowObjects are the rows of an Arrow file as its library prints them.
func arrowObjects(t *testing.T, path string) (rows []object) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := ipc.NewFileReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.NumRecords() {
		record, err := r.Record(i)
		if err != nil {
			t.Fatal(err)
		}
		text, err := record.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var some []object
		decode(t, text, &some)
		rows = append(rows, some...)
	}
	return rows
}

// Arrow's reader finds in an Arrow file what it finds in the Parquet file of the same episodes, which parquet-go wrote.
func TestArrowFilesHoldWhatParquetHolds(t *testing.T) {
	episodes := sinktest.Episodes(32)
	parquetDir := exported(t, "parquet", episodes, export.Options{})
	arrowDir := exported(t, "arrow", episodes, export.Options{RowGroupRows: 5})
	for _, table := range []string{"trajectories", "tool_calls"} {
		if diff := cmp.Diff(arrowRows(t, parquetDir, table), arrowObjects(t, filepath.Join(arrowDir, table+".arrow"))); diff != "" {
			t.Errorf("%s (-Parquet +Arrow):\n%s", table, diff)
		}
	}
}

// The columns are those of Parquet, by name, type and whether they can be null; elements of lists are always nullable in
// what Arrow makes of Parquet.
func TestArrowSchemaIsThatOfParquet(t *testing.T) {
	dir := exported(t, "parquet", nil, export.Options{})
	for table, schema := range map[string]*arrow.Schema{"trajectories": rows.ArrowTrajectories, "tool_calls": rows.ArrowToolCalls} {
		f, err := file.OpenParquetFile(parts(t, dir, table)[0], false)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		parquet, err := r.Schema()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(shapes("", parquet.Fields()), shapes("", schema.Fields())); diff != "" {
			t.Errorf("%s (-Parquet +Arrow):\n%s", table, diff)
		}
	}
}

// shapes says of each field what it is, a line each.
func shapes(prefix string, fields []arrow.Field) (lines []string) {
	for _, f := range fields {
		name := prefix + f.Name
		null := ""
		if f.Nullable {
			null = " or null"
		}
		switch kind := f.Type.(type) {
		case *arrow.StructType:
			lines = append(append(lines, name+": struct"+null), shapes(name+".", kind.Fields())...)
		case *arrow.ListType:
			lines = append(append(lines, name+": list"+null), shapes(name, []arrow.Field{{Name: "[]", Type: kind.Elem()}})...)
		default:
			lines = append(lines, name+": "+f.Type.String()+null)
		}
	}
	return lines
}

func TestArrowStreamOfToolCalls(t *testing.T) {
	episodes := sinktest.Episodes(8)
	write := func(set map[string]string) (string, export.Result) {
		path := filepath.Join(t.TempDir(), "out.arrows")
		sink, err := export.Open("arrow-stream", path, export.Options{Set: set})
		if err != nil {
			t.Fatal(err)
		}
		result, err := export.Write(t.Context(), sinktest.Slice(episodes), sink)
		if err != nil {
			t.Fatal(err)
		}
		return path, result
	}
	_, trajectories := write(nil)
	if len(trajectories.Notes) != 1 || !strings.Contains(trajectories.Notes[0], "table=tool_calls") {
		t.Errorf("notes %q, want one that says where the calls are", trajectories.Notes)
	}
	calls := 0
	for _, ep := range episodes {
		calls += len(ep.Calls)
	}
	_, result := write(map[string]string{"table": "tool_calls"})
	if result.Files[0].Rows != int64(calls) || len(result.Notes) > 0 {
		t.Errorf("%d rows of calls, want %d; notes %q", result.Files[0].Rows, calls, result.Notes)
	}
	if _, err := export.Open("arrow-stream", t.TempDir()+"/x", export.Options{Set: map[string]string{"table": "calls"}}); err == nil {
		t.Error("an unknown table was taken")
	}
}
