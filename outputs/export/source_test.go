package export_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"trajgen/outputs/export"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// exported writes episodes in a format and returns where.
func exported(t *testing.T, format string, episodes []*episode.Episode, options export.Options) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out")
	if format == "jsonl" {
		path += ".jsonl"
	}
	sink, err := export.Open(format, path, options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := export.Write(t.Context(), sinktest.Slice(episodes), sink); err != nil {
		t.Fatal(err)
	}
	return path
}

// readAll reads a source to its end.
func readAll(ctx context.Context, source export.Source) (episodes []*episode.Episode, err error) {
	for ep, err := range source.Episodes(ctx) {
		if err != nil {
			return episodes, err
		}
		episodes = append(episodes, ep)
	}
	return episodes, nil
}

func readFiles(t *testing.T, paths ...string) ([]*episode.Episode, error) {
	t.Helper()
	files, err := export.OpenFiles(paths...)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	return readAll(t.Context(), files)
}

// sameAsRow compares but for what rows.Lost names.
var sameAsRow = cmp.Options{
	cmpopts.EquateEmpty(),
	cmpopts.IgnoreFields(episode.Compaction{}, "Asked"),
	cmpopts.IgnoreFields(episode.Verdict{}, "Usage"),
	cmpopts.IgnoreFields(episode.Episode{}, "Unplayed", "Differed"),
	cmp.Transformer("micros", func(d time.Duration) int64 { return d.Microseconds() }),
	cmp.Comparer(func(a, b time.Time) bool { return a.Truncate(time.Microsecond).Equal(b.Truncate(time.Microsecond)) }),
	cmp.Transformer("reported", func(u episode.Usage) episode.Usage {
		if !u.Reported {
			return episode.Usage{}
		}
		return u
	}),
}

// What a run writes can be read back, and exported again: the same bytes come out.
func TestFilesGiveTheEpisodesBack(t *testing.T) {
	episodes := append(sinktest.Episodes(24), resent())
	sinktest.Plant(episodes[len(episodes)/2:])
	episodes[24].Row, episodes[24].Task.Row, episodes[24].Toolsets = 24, 24, []string{}
	for _, format := range []string{"parquet", "arrow", "hf", "jsonl"} {
		t.Run(format, func(t *testing.T) {
			path := exported(t, format, episodes, export.Options{PartRows: 9, RowGroupRows: 4})
			got, err := readFiles(t, path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(episodes, got, sameAsRow); diff != "" {
				t.Errorf("episodes (-want +got):\n%s", diff)
			}
			again := exported(t, "parquet", got, export.Options{})
			if diff := cmp.Diff(digests(t, exported(t, "parquet", episodes, export.Options{})), digests(t, again)); diff != "" {
				t.Errorf("rows of what was read back (-want +got):\n%s", diff)
			}
		})
	}
}

// digests are the files below a directory.
func digests(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, pattern := range []string{"trajectories/*", "tool_calls/*"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files[strings.TrimPrefix(path, dir)] = string(data)
		}
	}
	return files
}

func TestSeveralFilesAreReadInOneOrder(t *testing.T) {
	episodes := sinktest.Episodes(12)
	var even, odd []*episode.Episode
	for i, ep := range episodes {
		if i%2 == 0 {
			even = append(even, ep)
		} else {
			odd = append(odd, ep)
		}
	}
	a, b := exported(t, "parquet", even, export.Options{}), exported(t, "jsonl", odd, export.Options{})
	got, err := readFiles(t, a, b)
	if err != nil {
		t.Fatal(err)
	}
	for i, ep := range got {
		if ep.ID != episodes[i].ID {
			t.Errorf("episode %d is %s, want %s", i, ep.ID, episodes[i].ID)
		}
	}
	_, err = readFiles(t, a, b, exported(t, "jsonl", odd[2:3], export.Options{}))
	if err == nil || !strings.Contains(err.Error(), "stands twice") || !strings.Contains(err.Error(), odd[2].ID) {
		t.Errorf("an episode in two files: %v", err)
	}
}

func TestFilesSayWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("run/journal/000001.seg", "")
	write("broken/trajectories/part-00000.parquet", "PAR1 no")
	write("broken/tool_calls/part-00000.parquet", "PAR1 no")
	tests := []struct{ path, want string }{
		{"absent", "absent"},
		{write("a.csv", ""), "unknown kind of file"},
		{write("a.parquet", ""), "want the directory"},
		{filepath.Join(dir, "run"), "--run reads the journal"},
		{filepath.Join(dir, "broken"), "damaged or cut off"},
		{write("a.jsonl", "\n{\"id\":\"x\"}\n"), "line 2: episode \"x\": outcome \"\" (want one of"},
		{write("b.jsonl", "{]"), "line 1:"},
		{write("c.jsonl", `{"id":"x","outcome":"success","turns":[{"message":7}],"calls":[{"turn":-1}]}`), "turn 0 is message 7 of 0\ncall 0 is of turn -1 of 1"},
		{write("d.jsonl", `{"id":"x","row":3,"outcome":"success"}`+"\n"+`{"id":"y","row":2,"outcome":"success"}`), "stands behind row 3"},
	}
	for _, tt := range tests {
		_, err := readFiles(t, tt.path)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want an error with %q", tt.path, err, tt.want)
		}
	}
}

// filesIDs reads with the product's own reader; others read the same files elsewhere.
func filesIDs(t *testing.T, path string) (ids []string) {
	t.Helper()
	episodes, err := readFiles(t, path)
	if err != nil {
		t.Fatal(err)
	}
	for _, ep := range episodes {
		ids = append(ids, ep.ID)
	}
	return ids
}
