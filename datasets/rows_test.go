package datasets_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/datasets"
)

func TestRows(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.jsonl": `{"id": 1, "text": "x", "none": null}` + "\n\n{\n[1]\n" + `{"text": "y"}`, "b.csv": "id,text\n1,x\n2\n", "c.txt": "plain", "d.parquet": "no",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) (said []string) {
		for row, err := range datasets.Rows(filepath.Join(dir, name)) {
			bad, broken := errors.AsType[*datasets.RowError](err)
			switch {
			case broken:
				said = append(said, "broken "+bad.Place())
			case err != nil:
				said = append(said, "error")
			default:
				said = append(said, row.Place+" "+string(row.Fields["id"])+string(row.Fields["text"]))
			}
			if len(row.Fields) > 2 {
				t.Errorf("fields %v", row.Fields)
			}
		}
		return said
	}
	for name, want := range map[string][]string{
		"a.jsonl": {"a.jsonl:1 1\"x\"", "broken a.jsonl:3", "broken a.jsonl:4", "a.jsonl:5 \"y\""},
		"b.csv":   {"b.csv:2 \"1\"\"x\"", "broken b.csv:3"},
		"c.txt":   {"error"}, "d.parquet": {"error"}, "missing.jsonl": {"error"},
	} {
		got := read(name)
		for i := range got {
			got[i] = strings.ReplaceAll(got[i], dir+"/", "")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for row := range datasets.Rows(filepath.Join(dir, "a.jsonl")) {
		if row.Fields == nil {
			t.Error("the first row is broken")
		}
		break // must end the reading
	}
}
