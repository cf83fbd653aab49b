package journal_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
)

// files reads the files of a journal.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	names, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = content
	}
	return all
}

func inspect(t *testing.T, dir string) ([]journal.Damage, []journal.Entry) {
	t.Helper()
	var whole []journal.Entry
	damages, err := journal.Inspect(t.Context(), dir, func(_ int, attempt journal.Entry) error {
		whole = append(whole, attempt)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return damages, whole
}

func repair(t *testing.T, dir string) ([]journal.Damage, []string) {
	t.Helper()
	said, would, err := journal.Repair(t.Context(), dir, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	damages, replayed, err := journal.Repair(t.Context(), dir, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(said, would) != fmt.Sprint(damages, replayed) {
		t.Errorf("said %v %v, then did %v %v", said, would, damages, replayed)
	}
	return damages, replayed
}

func ids(episodes []*episode.Episode) []string {
	var ids []string
	for _, ep := range episodes {
		ids = append(ids, ep.ID)
	}
	return slices.Sorted(slices.Values(ids))
}

// Whatever is flipped, cut or gone: what is left opens, holds everything that is not named, and with what is named played
// again it holds all.
func TestRepairOfAnything(t *testing.T) {
	base := scratch(t)
	original := filepath.Join(base, "original")
	var episodes []*episode.Episode
	j := open(t, original, journal.Options{SegmentBytes: 3000, Disk: &faultyDisk{idle: true}})
	for row := range 25 {
		episodes = append(episodes, small(row, 1, false))
	}
	fill(t, j, episodes)
	j.Close()
	whole := files(t, original)
	segments := slices.Sorted(maps.Keys(whole))
	segments = slices.DeleteFunc(segments, func(name string) bool { return !strings.HasSuffix(name, ".seg") })
	if len(segments) < 4 {
		t.Fatalf("segments: %v, want some", segments)
	}
	for seed := range 150 {
		rng := rand.New(rand.NewPCG(uint64(seed), 9))
		dir := filepath.Join(base, fmt.Sprint(seed), "journal")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		left := maps.Clone(whole)
		unindexed := rng.IntN(3) == 0
		if unindexed {
			maps.DeleteFunc(left, func(name string, _ []byte) bool { return !strings.HasSuffix(name, ".seg") })
		}
		for range 1 + rng.IntN(3) {
			name := segments[rng.IntN(len(segments))]
			content := slices.Clone(left[name])
			switch what := rng.IntN(6); {
			case len(content) == 0:
			case what == 0 && (!unindexed || name != segments[len(segments)-1]):
				delete(left, name)
				continue
			case what == 1 && !unindexed:
				content = content[:rng.IntN(len(content))]
			case what == 2:
				from := rng.IntN(len(content))
				clear(content[from:min(len(content), from+rng.IntN(900))])
			default:
				content[rng.IntN(len(content))] ^= 1 << rng.IntN(8)
			}
			left[name] = content
		}
		for name, content := range left {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		damages, replayed := repair(t, dir)
		j, err := journal.Open(dir, journal.Options{SegmentBytes: 3000, Disk: &faultyDisk{idle: true}})
		if err != nil {
			t.Fatalf("seed %d: open what was repaired: %v\n%v", seed, err, damages)
		}
		var again []*episode.Episode
		for _, ep := range episodes {
			if _, ok := j.Has(ep.ID); !ok {
				again = append(again, ep)
			}
		}
		unknown := slices.ContainsFunc(damages, func(d journal.Damage) bool { return d.Unknown || d.Torn })
		if got := ids(again); !unknown && !slices.Equal(got, replayed) {
			t.Errorf("seed %d: played again: %v, named: %v", seed, got, replayed)
		}
		for _, id := range replayed {
			if !slices.Contains(ids(again), id) {
				t.Errorf("seed %d: %s was named and is there", seed, id)
			}
		}
		fill(t, j, again)
		j.Close()
		if diff := cmp.Diff(ids(episodes), ids(all(t, reader(t, dir)))); diff != "" {
			t.Errorf("seed %d: after playing again (-want +got):\n%s", seed, diff)
		}
		if damages, got := inspect(t, dir); len(damages) > 0 || len(got) != len(episodes) {
			t.Errorf("seed %d: after all: %d attempts, damage %v", seed, len(got), damages)
		}
		os.RemoveAll(filepath.Dir(dir))
	}
}

func TestRepairNamesWhatItTakesOut(t *testing.T) {
	dir, path, starts, episodes := segment(t, 6)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[starts[1]] ^= 1    // magic: nobody can say whose it was
	content[starts[3]-1] ^= 1  // payload
	content[starts[4]+30] ^= 1 // meta
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = journal.Open(dir, journal.Options{})
	if want := "trajgen repair --run " + filepath.Dir(dir); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Open: %v, want it to name %q", err, want)
	}
	damages, replayed := repair(t, dir)
	want := []journal.Damage{
		// Of the second the head is whole.
		{Offset: starts[1], Length: starts[3] - starts[1], Unknown: true, Before: episodes[0].ID, Lost: []journal.Entry{entryOf(episodes[2])}},
		{Offset: starts[4], Length: starts[5] - starts[4], Unknown: true, Before: episodes[3].ID},
	}
	if len(damages) != 2 {
		t.Fatalf("damages: %v", damages)
	}
	for i, d := range damages {
		kept, err := filepath.Glob(filepath.Join(dir, "damaged", fmt.Sprintf("000001.seg.%d-%d.1", d.Offset, d.Offset+d.Length)))
		if err != nil || len(kept) != 1 {
			t.Errorf("kept of %v: %v, %v", d, kept, err)
			continue
		}
		if bytes, err := os.ReadFile(kept[0]); err != nil || string(bytes) != string(content[d.Offset:d.Offset+d.Length]) {
			t.Errorf("%s does not have the bytes: %v", kept[0], err)
		}
		w := want[i]
		if d.Offset != w.Offset || d.Length != w.Length || d.Unknown != w.Unknown || d.Before != w.Before || !cmp.Equal(d.Lost, w.Lost) {
			t.Errorf("damage %d = %+v, want %+v", i, d, w)
		}
	}
	if !slices.Equal(replayed, []string{episodes[2].ID}) {
		t.Errorf("known to be played again: %v, want %s", replayed, episodes[2].ID)
	}
	if diff := cmp.Diff(ids([]*episode.Episode{episodes[0], episodes[3], episodes[5]}), ids(all(t, reader(t, dir)))); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// A repair that is killed or refused after any operation is done again, and has lost nothing that was whole.
func TestRepairSurvivesEveryFault(t *testing.T) {
	base := scratch(t)
	source := filepath.Join(base, "source")
	j := open(t, source, journal.Options{SegmentBytes: 2000, Disk: &faultyDisk{idle: true}})
	var episodes []*episode.Episode
	for row := range 9 {
		episodes = append(episodes, small(row, 1, false))
	}
	fill(t, j, episodes)
	j.Close()
	content := files(t, source)
	content["000001.seg"][len(content["000001.seg"])/2] ^= 4
	delete(content, "000002.seg")
	damaged := func(name string) string {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, content := range content {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	clean := &faultyDisk{idle: true}
	dir := damaged("clean")
	if _, _, err := journal.Repair(t.Context(), dir, true, clean); err != nil {
		t.Fatal(err)
	}
	want := ids(all(t, reader(t, dir)))
	for at := range clean.log {
		dir := damaged(fmt.Sprint(at))
		count := 0
		killed := errors.New("killed")
		_, _, err := journal.Repair(t.Context(), dir, true, &faultyDisk{idle: true, fail: func(op operation) (int, error) {
			if count++; count > at {
				return len(op.data) / 2, killed
			}
			return len(op.data), nil
		}})
		if !errors.Is(err, killed) {
			t.Fatalf("operation %d: %v, want %v", at, err, killed)
		}
		if _, _, err := journal.Repair(t.Context(), dir, true, &faultyDisk{idle: true}); err != nil {
			t.Fatalf("again after operation %d: %v", at, err)
		}
		if diff := cmp.Diff(want, ids(all(t, reader(t, dir)))); diff != "" {
			t.Errorf("again after operation %d (-want +got):\n%s", at, diff)
		}
	}
}

func TestRepairRefuses(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	if _, _, err := journal.Repair(t.Context(), dir, true, nil); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("beside a writer: %v, want %v", err, journal.ErrLocked)
	}
	j.Close()
	if _, _, err := journal.Repair(t.Context(), filepath.Join(dir, "nothing"), true, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of nothing: %v, want %v", err, os.ErrNotExist)
	}
	j = open(t, dir, journal.Options{})
	fill(t, j, []*episode.Episode{small(1, 1, false)})
	j.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	if _, _, err := journal.Repair(ctx, dir, true, nil); !errors.Is(err, stop) {
		t.Errorf("after a cancel: %v, want %v", err, stop)
	}
}

// Heads that all claim the rest of the segment must not make a search read it again and again.
func TestSearchIsBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "000001.seg")
	if err := os.WriteFile(path, journal.Hollow(1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	damages, whole := inspect(t, dir)
	if len(whole) != 0 || len(damages) == 0 {
		t.Errorf("%d attempts, damage %v", len(whole), damages)
	}
	open(t, dir, journal.Options{})
}
