package main

import (
	"bytes"
	little "encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trajgen/outputs/export"
	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/check"
)

// playArgs are a run of a few episodes with several segments.
func playArgs(dir string) []string {
	return []string{"run", "--dataset", "bundled", "--policy", "noisy", "--max-tasks", "6", "--samples", "2", "--workers", "4",
		"--journal-segment", "8K", "--out", dir, "--quiet"}
}

func played(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if got := here(t, playArgs(dir)...); got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.errOut)
	}
	return dir
}

func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func change(t *testing.T, path string, how func([]byte) []byte) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, how(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func segmentsOf(t *testing.T, dir string) []string {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(run.JournalDir(dir), "*.seg"))
	if err != nil || len(segments) < 3 {
		t.Fatalf("segments: %v, %v; want some", segments, err)
	}
	return segments
}

// TestVerifyAndRepair breaks a run in every way and has it named, repaired and played again.
func TestVerifyAndRepair(t *testing.T) {
	t.Parallel()
	whole := played(t)
	want := rows(t, whole)
	if got := here(t, "verify", "--run", whole); got.code != 0 || !strings.Contains(got.out, "12 of 12 episodes in ") || !strings.Contains(got.out, "nothing differs") {
		t.Fatalf("verify of a whole run: exit code %d\n%s%s", got.code, got.out, got.errOut)
	}
	t.Run("verify", func(t *testing.T) { verifyNames(t, whole) })
	t.Run("flipped bits", func(t *testing.T) { flippedBits(t, whole) })
	t.Run("clock set back", func(t *testing.T) { clockSetBack(t, whole) })
	t.Run("a flipped bit stops the export", func(t *testing.T) {
		dir := copied(t, whole)
		segments := segmentsOf(t, dir)
		var id string
		change(t, segments[0], func(content []byte) []byte {
			// The first payload; a full segment's are not read before somebody wants them.
			id = firstID(t, content)
			content[24+little.LittleEndian.Uint32(content[4:])+20] ^= 1
			return content
		})
		got := here(t, append(playArgs(dir), "--resume")...)
		for _, part := range []string{segments[0], "damaged at byte 0", "in episode " + id, "trajgen repair --run " + dir} {
			if got.code != 1 || !strings.Contains(got.errOut, part) {
				t.Errorf("resume: exit code %d: %s; want 1 and %q", got.code, got.errOut, part)
			}
		}
	})
	for seed := range 4 {
		t.Run(fmt.Sprint("repair ", seed), func(t *testing.T) {
			dir := copied(t, whole)
			breakJournal(t, dir, rand.New(rand.NewPCG(uint64(seed), 5)), seed)
			if got := here(t, "verify", "--run", dir); got.code != 1 || !strings.Contains(got.out, "trajgen repair") {
				t.Errorf("verify: exit code %d\n%s%s", got.code, got.out, got.errOut)
			}
			before := segmentsOf(t, dir)
			said := here(t, "repair", "--run", dir)
			if said.code != 1 || !strings.Contains(said.out, "nothing was changed") || !strings.Contains(said.out, "trajgen repair --run "+dir+" --yes") {
				t.Errorf("repair: exit code %d\n%s%s", said.code, said.out, said.errOut)
			}
			if after := segmentsOf(t, dir); !slices.Equal(before, after) {
				t.Errorf("repair that only says has made %v of %v", after, before)
			}
			if got := here(t, "repair", "--run", dir, "--yes"); got.code != 0 || !strings.Contains(got.out, "--resume") {
				t.Fatalf("repair --yes: exit code %d\n%s%s", got.code, got.out, got.errOut)
			}
			if got := here(t, append(playArgs(dir), "--resume")...); got.code != 0 {
				t.Fatalf("resume: exit code %d: %s", got.code, got.errOut)
			}
			sameRows(t, want, rows(t, dir))
			if got := here(t, "verify", "--run", dir); got.code != 0 {
				t.Errorf("verify in the end: exit code %d\n%s%s", got.code, got.out, got.errOut)
			}
			if got := here(t, "repair", "--run", dir); got.code != 0 || !strings.Contains(got.out, "nothing is damaged") {
				t.Errorf("repair in the end: exit code %d\n%s%s", got.code, got.out, got.errOut)
			}
		})
	}
}

func firstID(t *testing.T, segment []byte) string {
	t.Helper()
	var entry journal.Entry
	if err := json.Unmarshal(segment[24:24+little.LittleEndian.Uint32(segment[4:])], &entry); err != nil {
		t.Fatal(err)
	}
	return entry.ID
}

// breakJournal flips bits in all segments, takes the second one away, or cuts the first.
func breakJournal(t *testing.T, dir string, rng *rand.Rand, kind int) {
	t.Helper()
	segments := segmentsOf(t, dir)
	switch kind {
	case 0:
		if err := os.Remove(segments[1]); err != nil {
			t.Fatal(err)
		}
		return
	case 1:
		change(t, segments[0], func(content []byte) []byte { return content[:len(content)*2/3] })
		return
	}
	for _, path := range segments[:len(segments)-1] {
		change(t, path, func(content []byte) []byte {
			for range kind {
				content[rng.IntN(len(content))] ^= 1 << rng.IntN(8)
			}
			return content
		})
	}
}

// flippedBits flips one bit at a time in each file that a run leaves.
func flippedBits(t *testing.T, whole string) {
	dir := copied(t, whole)
	files, err := run.MadeFiles(dir)
	if err != nil || len(files) != 4 {
		t.Fatalf("files %v, %v; want two tables and two reports", files, err)
	}
	rng := rand.New(rand.NewPCG(11, 5))
	for _, path := range append(files, segmentsOf(t, dir)...) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 12 {
			at, bit := rng.IntN(len(content)), byte(1)<<rng.IntN(8)
			content[at] ^= bit
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			v, err := check.Verify(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			// What looks as if a write was interrupted is a note, beside what the journal then lacks.
			if said := strings.Join(append(v.Differences, v.Notes...), "\n"); v.OK || !strings.Contains(said, run.Below(dir, path)) {
				t.Errorf("%s, bit %08b of byte %d: %.2000s", run.Below(dir, path), bit, at, said)
			}
			content[at] ^= bit
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := check.Verify(t.Context(), dir); err != nil || !v.OK {
		t.Errorf("in the end: %v, %q", err, v.Differences)
	}
}

// verifyNames changes one thing after another.
func verifyNames(t *testing.T, whole string) {
	rewrite := func(how func([]*episode.Episode)) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			changed := episodes(t, dir)
			how(changed)
			sink, err := export.Open("parquet", dir, export.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, ep := range changed {
				if err := sink.Write(t.Context(), ep); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := sink.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := sink.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	edit := func(name, old, new string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, name), func(content []byte) []byte {
				if !bytes.Contains(content, []byte(old)) {
					t.Fatalf("%s has no %s", name, old)
				}
				return bytes.Replace(content, []byte(old), []byte(new), 1)
			})
		}
	}
	remove := func(pattern string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			paths, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(paths) == 0 {
				t.Fatalf("%s: %v, %v", pattern, paths, err)
			}
			for _, path := range paths {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	tests := []struct {
		name string
		give func(*testing.T, string)
		want string
		code int
	}{
		{"a column", rewrite(func(all []*episode.Episode) { all[3].Answer = "another" }), "trajectories/part-00000.parquet is not what was written", 1},
		{"rows of another journal", func(t *testing.T, dir string) {
			rewrite(func(all []*episode.Episode) { all[3].Answer = "another" })(t, dir)
			if err := run.WriteSums(dir); err != nil {
				t.Fatal(err)
			}
		}, "trajectories/part-00000.parquet: it differs from byte ", 1},
		{"rows of another trajgen", func(t *testing.T, dir string) {
			rewrite(func(all []*episode.Episode) { all[3].Answer = "another" })(t, dir)
			if err := run.WriteSums(dir); err != nil {
				t.Fatal(err)
			}
			edit(run.SumsName, run.SumsHead, run.SumsHead+"0.1 of before, not ")(t, dir)
		}, "1 Parquet files are by trajgen 0.1 of before", 0},
		{"a file too many", func(t *testing.T, dir string) {
			part := filepath.Join(dir, "trajectories", "part-00000.parquet")
			data, err := os.ReadFile(part)
			if err == nil {
				err = os.WriteFile(filepath.Join(filepath.Dir(part), "copy.parquet"), data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "trajectories/copy.parquet: it is one file more", 1},
		{"a segment twice", func(t *testing.T, dir string) {
			segments := segmentsOf(t, dir)
			data, err := os.ReadFile(segments[1])
			if err == nil {
				err = os.WriteFile(filepath.Join(run.JournalDir(dir), journal.SegmentName(len(segments)+1)), data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, " attempts that journal/000002.seg has, too", 1},
		{"a sample", edit("run.json", "\n  \"samples\": 2", "\n  \"samples\": 3"), "journal: 6 of 18 episodes are missing", 1},
		{"a name in run.json", edit("run.json", `"version": "`, `"version": "x`), "run.json is not what was written", 1},
		{"an index file", func(t *testing.T, dir string) {
			change(t, filepath.Join(run.JournalDir(dir), "000001.idx"), func(content []byte) []byte { content[20] ^= 1; return content })
		}, "journal/000001.idx is damaged: it is a copy", 1},
		{"the index of the end", func(t *testing.T, dir string) {
			ends, err := filepath.Glob(filepath.Join(run.JournalDir(dir), "*.end"))
			if err != nil || len(ends) != 1 {
				t.Fatalf("%v, %v", ends, err)
			}
			change(t, ends[0], func(content []byte) []byte { content[20] ^= 1; return content })
		}, ".end is damaged: it is a copy", 1},
		{"the experiment", edit("run.json", `"seed": "`, `"seed": "9`), "run.json: the fingerprint is", 1},
		{"the report", edit("report.json", `"present": 12`, `"present": 13`), "report.json, episodes, present: the journal gives 12, the file has 13", 1},
		{"no report", remove("report.json"), "report.json is missing", 1},
		{"no page", remove("report.md"), "report.md is missing", 1},
		{"no page and no digests", func(t *testing.T, dir string) {
			remove("report.md")(t, dir)
			remove(run.SumsName)(t, dir)
		}, "report.md is missing", 1},
		{"no digests", remove(run.SumsName), "note: there is no SHA256SUMS", 0},
		{"no rows", remove("*/*.parquet"), "trajectories/part-00000.parquet is missing", 1},
		{"nothing made yet", func(t *testing.T, dir string) {
			remove("*/*.parquet")(t, dir)
			remove("report.*")(t, dir)
			remove(run.SumsName)(t, dir)
		}, "note: there are no Parquet files and no report: the run has not ended yet", 0},
		{"a leftover", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, ".tmp-12"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, ".tmp-12: a temporary file", 0},
		{"a torn end", func(t *testing.T, dir string) {
			segments := segmentsOf(t, dir)
			change(t, segments[len(segments)-1], func(content []byte) []byte { return append(content, make([]byte, 100)...) })
		}, "nothing of it was acknowledged", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := copied(t, whole)
			tt.give(t, dir)
			got := here(t, "verify", "--run", dir)
			if got.code != tt.code || !strings.Contains(got.out, tt.want) {
				t.Errorf("exit code %d\n%s%swant %d and %q", got.code, got.out, got.errOut, tt.code, tt.want)
			}
			asJSON := here(t, "verify", "--json", "--run", dir)
			var v check.Verification
			if err := json.Unmarshal([]byte(asJSON.out), &v); err != nil || v.OK != (tt.code == 0) || asJSON.code != tt.code {
				t.Errorf("as JSON: exit code %d, ok %v: %v", asJSON.code, v.OK, err)
			}
		})
	}
	if got := here(t, "verify", "--run", t.TempDir()); got.code != 2 || !strings.Contains(got.errOut, "run.json") {
		t.Errorf("of no run: exit code %d: %s", got.code, got.errOut)
	}
}

// clockSetBack holds that nothing that is kept depends on the time: episodes that began before those that ended before them
// are found, compared and added up like others.
func clockSetBack(t *testing.T, whole string) {
	dir := copied(t, whole)
	if err := os.RemoveAll(run.JournalDir(dir)); err != nil {
		t.Fatal(err)
	}
	all := episodes(t, whole)
	for n, ep := range all {
		if ep.Started.IsZero() || ep.Elapsed < 0 || ep.Phases.Agent < 0 || ep.Phases.Open < 0 || ep.Phases.Close < 0 {
			t.Errorf("episode %s: started %v, elapsed %v, phases %+v", ep.ID, ep.Started, ep.Elapsed, ep.Phases)
		}
		ep.Started = ep.Started.Add(-time.Duration(n) * 24 * time.Hour)
	}
	for range 2 { // the second time, all of them are there
		j, err := journal.Open(run.JournalDir(dir), journal.Options{SegmentBytes: 8 << 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, ep := range all {
			if _, ok := j.Has(ep.ID); ok {
				continue
			}
			if err := j.Append(t.Context(), ep); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := here(t, append(playArgs(dir), "--resume")...); got.code != 0 {
		t.Fatalf("resume: exit code %d: %s", got.code, got.errOut)
	}
	sameRows(t, rows(t, whole), rows(t, dir))
	if got := here(t, "verify", "--run", dir); got.code != 0 {
		t.Errorf("verify: exit code %d\n%s", got.code, got.out)
	}
}

// TestRunnersAtOnce starts two runs of one directory at the same moment: one of them plays, and the other says who does.
// Meanwhile others read the directory.
func TestRunnersAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", "bundled", "--policy", "noisy", "--max-tasks", "10", "--out", dir, "--quiet"}
	var runners [2]*exec.Cmd
	var said [2]bytes.Buffer
	for i := range runners {
		runners[i] = exec.Command(build(t), args...)
		runners[i].Stderr = &said[i]
		if err := runners[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	var codes [2]int
	var wait sync.WaitGroup
	for i, cmd := range runners {
		wait.Go(func() {
			_ = cmd.Wait()
			codes[i] = cmd.ProcessState.ExitCode()
		})
	}
	done := make(chan struct{})
	go func() { wait.Wait(); close(done) }()
	beside := 0
	for going := true; going; {
		select {
		case <-done:
			going = false
		case <-time.After(100 * time.Millisecond):
		}
		if _, err := os.Stat(filepath.Join(dir, "run.json")); err != nil {
			continue
		}
		beside++
		v, err := check.Verify(t.Context(), dir)
		if err != nil || len(v.Damage) > 0 {
			t.Fatalf("verify beside a run: %v, %+v", err, v)
		}
		want := []string{}
		if absent := v.Planned - v.Episodes; absent > 0 {
			want = append(want, fmt.Sprintf("journal: %d of %d episodes are missing", absent, v.Planned))
		}
		if len(v.Differences) != len(want) || len(want) == 1 && !strings.HasPrefix(v.Differences[0], want[0]) || v.Attempts < v.Episodes {
			t.Errorf("verify beside a run: %d of %d episodes in %d attempts and %q", v.Episodes, v.Planned, v.Attempts, v.Differences)
		}
		out := filepath.Join(t.TempDir(), "out.jsonl")
		if got := here(t, "export", "--run", dir, "--to", "jsonl", "--out", out, "--partial"); got.code != 0 {
			t.Fatalf("export beside a run: exit code %d: %s", got.code, got.errOut)
		}
	}
	if beside == 0 {
		t.Error("neither made a run")
	}
	if slices.Sort(codes[:]); codes != [2]int{exitDone, exitLocked} || !strings.Contains(said[0].String()+said[1].String(), "is being written by process") {
		t.Errorf("exit codes %v, said %q and %q", codes, said[0].String(), said[1].String())
	}
	if got := here(t, "verify", "--run", dir); got.code != 0 {
		t.Errorf("verify: exit code %d\n%s", got.code, got.out)
	}
}
