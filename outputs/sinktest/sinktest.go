// Package sinktest is the contract of a sink, executable, with the episodes that it is shown to hold for.
package sinktest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/export"
	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
)

// Format is a sink under test.
type Format struct {
	Name string
	// Path is where the sink writes, relative to an empty directory. It may lie in a directory that is not there yet.
	Path string
	// Set are the sink's own settings.
	Set map[string]string
	// Carries tells the episodes that the format has a place for; nil is all of them.
	Carries func(*episode.Episode) bool
	// IDs reads back the ids of all episodes that stand at path, in the order in which they stand there.
	IDs func(t *testing.T, path string) []string
}

// Run holds a format to the contract.
func Run(t *testing.T, format Format) {
	episodes := Episodes(16)
	tests := []struct {
		name string
		run  func(t *testing.T, s suite)
	}{
		{"writes all in order", testAll},
		{"writes nothing but what is whole", testNoEpisodes},
		{"shows nothing before commit", testInvisible},
		{"keeps the earlier export until commit", testEarlierStands},
		{"removes what an earlier export left", testStale},
		{"gives the same bytes each time", testSameBytes},
		{"stops with the context", testContext},
		{"refuses an episode that it cannot hold, for good", testRefuse},
		{"refuses a second export to the same place", testSecondWriter},
		{"refuses a place that cannot be", testNoPlace},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.run(t, suite{format: format, episodes: episodes, path: filepath.Join(t.TempDir(), format.Path)})
		})
	}
}

type suite struct {
	format   Format
	episodes []*episode.Episode
	path     string
}

// small parts and row groups, so that every boundary is crossed.
var small = export.Options{PartRows: 7, RowGroupRows: 3}

func (s suite) open(t *testing.T) *export.Sink {
	t.Helper()
	sink, err := export.Open(s.format.Name, s.path, s.options())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { sink.Close() })
	return sink
}

func (s suite) options() export.Options {
	options := small
	options.Set = s.format.Set
	return options
}

func (s suite) export(t *testing.T, episodes []*episode.Episode) []export.FileInfo {
	t.Helper()
	result, err := export.Write(t.Context(), Slice(episodes), s.open(t))
	if err != nil {
		t.Fatalf("export: %v", err)
	}
	return result.Files
}

func (s suite) wantIDs(t *testing.T, episodes []*episode.Episode) {
	t.Helper()
	want := []string{}
	for _, ep := range episodes {
		if s.format.Carries == nil || s.format.Carries(ep) {
			want = append(want, ep.ID)
		}
	}
	got := append([]string{}, s.format.IDs(t, s.path)...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids that stand (-want +got):\n%s", diff)
	}
}

func testAll(t *testing.T, s suite) {
	files := s.export(t, s.episodes)
	s.wantIDs(t, s.episodes)
	listed := make(map[string]bool)
	for _, f := range files {
		info, err := os.Stat(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() != f.Bytes {
			t.Errorf("%s has %d bytes, reported as %d", f.Path, info.Size(), f.Bytes)
		}
		listed[f.Path] = true
	}
	for path := range s.files(t) {
		if !listed[path] {
			t.Errorf("%s was left behind and not reported", path)
		}
	}
}

func testNoEpisodes(t *testing.T, s suite) {
	files := s.export(t, nil)
	s.wantIDs(t, nil)
	for _, f := range files {
		if f.Rows != 0 {
			t.Errorf("%s has %d rows, want none", f.Path, f.Rows)
		}
	}
	if len(files) == 0 {
		t.Error("an export of nothing gave no file; want one that a reader can open")
	}
}

func testInvisible(t *testing.T, s suite) {
	sink := s.open(t)
	s.write(t, sink, s.episodes)
	for path := range s.files(t) {
		if below := strings.TrimPrefix(path, filepath.Dir(s.path)); !strings.Contains(below, "/.") {
			t.Errorf("%s can be seen before the commit", path)
		}
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if left := s.files(t); len(left) > 0 {
		t.Errorf("left behind after a close without commit: %v", left)
	}
	if err := sink.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func testEarlierStands(t *testing.T, s suite) {
	s.export(t, s.episodes[:10])
	before := s.files(t)
	sink := s.open(t)
	s.write(t, sink, s.episodes)
	sink.Close()
	if diff := cmp.Diff(before, s.files(t)); diff != "" {
		t.Errorf("an export that was given up changed the earlier one (-before +after):\n%s", diff)
	}
}

func testStale(t *testing.T, s suite) {
	s.export(t, s.episodes)
	files := s.export(t, s.episodes[:2])
	s.wantIDs(t, s.episodes[:2])
	if left := s.files(t); len(left) != len(files) {
		t.Errorf("files after the second export: %v, reported %v", left, files)
	}
}

func testSameBytes(t *testing.T, s suite) {
	s.export(t, s.episodes)
	first := s.files(t)
	s.export(t, s.episodes)
	if diff := cmp.Diff(first, s.files(t)); diff != "" {
		t.Errorf("the same episodes gave other bytes (-first +second):\n%s", diff)
	}
}

func testContext(t *testing.T, s suite) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	if _, err := export.Write(ctx, Slice(s.episodes), s.open(t)); !errors.Is(err, stop) {
		t.Errorf("export with a cancelled context: %v, want %v", err, stop)
	}
	if left := s.files(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func testRefuse(t *testing.T, s suite) {
	sink := s.open(t)
	s.write(t, sink, s.episodes[:3])
	bad := *s.episodes[3]
	bad.Reward = new(math.NaN())
	if err := sink.Write(t.Context(), &bad); err == nil {
		t.Fatal("an episode whose reward is not a number was taken")
	}
	if err := sink.Write(t.Context(), s.episodes[4]); err == nil {
		t.Error("an episode was taken after an error")
	}
	if _, err := sink.Commit(); err == nil {
		t.Error("an export with a hole was committed")
	}
}

func testSecondWriter(t *testing.T, s suite) {
	s.open(t)
	if _, err := export.Open(s.format.Name, s.path, s.options()); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("second export to the same place: %v, want %v", err, journal.ErrLocked)
	}
}

func testNoPlace(t *testing.T, s suite) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(file, s.format.Path)
	_, err := export.Open(s.format.Name, path, s.options())
	if err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("open below a file: %v, want an error that names %s", err, file)
	}
}

func (s suite) write(t *testing.T, sink *export.Sink, episodes []*episode.Episode) {
	t.Helper()
	for _, ep := range episodes {
		err := sink.Write(t.Context(), ep)
		_, refused := errors.AsType[*export.Refusal](err)
		if err != nil && (!refused || s.format.Carries == nil || s.format.Carries(ep)) {
			t.Fatalf("write %s: %v", ep.ID, err)
		}
	}
}

// folderMark lies in each folder that an export wrote, beside what it is asked for.
const folderMark = ".trajgen-export"

// files are the digests of all files near the path.
func (s suite) files(t *testing.T) map[string]string {
	t.Helper()
	root := s.path
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		root = filepath.Dir(root)
	}
	digests := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == folderMark {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil {
			digests[path] = fmt.Sprintf("%x", sha256.Sum256(content))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return digests
}

// Slice is a source of episodes that are in memory.
type Slice []*episode.Episode

// Episodes yields them in their order.
func (s Slice) Episodes(ctx context.Context) iter.Seq2[*episode.Episode, error] {
	return func(yield func(*episode.Episode, error) bool) {
		for _, ep := range s {
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			if !yield(ep, nil) {
				return
			}
		}
	}
}

// Large is a text of n bytes that compresses about as well as a transcript does.
func Large(n int) string {
	var text bytes.Buffer
	for i := 0; text.Len() < n; i++ {
		fmt.Fprintf(&text, "%06d the quick brown fox jumps over the lazy dog — größer als je, %d\n", i, i*i%7919)
	}
	return strings.ToValidUTF8(text.String()[:n], "")
}
