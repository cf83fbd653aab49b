package journal_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"trajgen/outputs/journal"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// children are what this test binary does when a test starts it as another process. Their argument is a journal.
var children = map[string]func(dir string) error{}

func TestMain(m *testing.M) {
	if run := children[os.Getenv("OUTPUTS_TEST_CHILD")]; run != nil {
		if err := run(os.Getenv("OUTPUTS_TEST_DIR")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
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

func all(t *testing.T, source *journal.Reader) []*episode.Episode {
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

func entryOf(ep *episode.Episode) journal.Entry {
	return journal.Entry{ID: ep.ID, Row: ep.Row, Sample: ep.Key.Sample, Attempt: ep.Attempt, Outcome: ep.Outcome, Pending: ep.Pending}
}

func TestJournalKeepsWhatWasAppended(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "journal")
	episodes := sinktest.Episodes(40)
	j := open(t, dir, journal.Options{SegmentBytes: 8 << 10})
	// Completion order is not dataset order.
	for i := range episodes {
		fill(t, j, episodes[len(episodes)-1-i:][:1])
	}
	check := func(name string, entries []journal.Entry, length int) {
		t.Helper()
		want := make([]journal.Entry, len(episodes))
		for i, ep := range episodes {
			want[i] = entryOf(ep)
		}
		if diff := cmp.Diff(want, entries); diff != "" {
			t.Errorf("%s: entries (-want +got):\n%s", name, diff)
		}
		if length != len(episodes) {
			t.Errorf("%s: Len() = %d, want %d", name, length, len(episodes))
		}
	}
	check("after appending", j.Entries(), j.Len())
	live := reader(t, dir) // beside the writer
	check("reader beside the writer", live.Entries(), live.Len())
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if segments, _ := filepath.Glob(filepath.Join(dir, "*.seg")); len(segments) < 3 {
		t.Errorf("segments: %v, want several", segments)
	}
	again := open(t, dir, journal.Options{})
	check("after opening again", again.Entries(), again.Len())
	if got, ok := again.Has(episodes[3].ID); !ok || got != entryOf(episodes[3]) {
		t.Errorf("Has = %v, %v, want %v", got, ok, entryOf(episodes[3]))
	}
	if got, ok := again.Has("nobody"); ok {
		t.Errorf("Has(nobody) = %v", got)
	}
	r := reader(t, dir)
	if diff := cmp.Diff(episodes, all(t, r)); diff != "" {
		t.Errorf("episodes (-want +got):\n%s", diff)
	}
	one, err := r.Episode(episodes[7].ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(episodes[7], one); diff != "" {
		t.Errorf("Episode (-want +got):\n%s", diff)
	}
	if _, err := r.Episode("nobody"); !errors.Is(err, journal.ErrNoEpisode) {
		t.Errorf("Episode(nobody): %v, want %v", err, journal.ErrNoEpisode)
	}
}

func TestJournalLatestAttemptCounts(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	play := func(attempt int, outcome episode.Outcome) *episode.Episode {
		ep := sinktest.Episode(0, 0)
		ep.Attempt, ep.Outcome = attempt, outcome
		fill(t, j, []*episode.Episode{ep})
		return ep
	}
	play(1, episode.ModelError)
	want := play(3, episode.Success)
	play(2, episode.Failure) // an older attempt that was written late
	for name, has := range map[string]func() []journal.Entry{"journal": j.Entries, "reader": reader(t, dir).Entries} {
		if diff := cmp.Diff([]journal.Entry{entryOf(want)}, has()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestJournalConcurrentAppends(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{SegmentBytes: 64 << 10})
	const writers, each = 16, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				ep := sinktest.Episode(w, n)
				if err := j.Append(t.Context(), ep); err != nil {
					t.Errorf("Append: %v", err)
				}
				if _, ok := j.Has(ep.ID); !ok {
					t.Errorf("%s was acknowledged and is not there", ep.ID)
				}
			}
		})
	}
	wg.Wait()
	j.Close()
	r := reader(t, dir)
	if got := len(all(t, r)); got != writers*each {
		t.Errorf("%d episodes, want %d", got, writers*each)
	}
	open(t, dir, journal.Options{})
}

func TestJournalCancelledAppends(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	stop := errors.New("stop")
	dead, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if err := j.Append(dead, sinktest.Episode(0, 0)); !errors.Is(err, stop) || j.Len() != 0 {
		t.Errorf("Append with a dead context: %v and %d entries, want %v and none", err, j.Len(), stop)
	}
	// Half of the callers give up while they wait. What was acknowledged must be there; the others must not block.
	var wg sync.WaitGroup
	acknowledged := make([]bool, 200)
	for i := range acknowledged {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			if i%2 == 0 {
				go cancel()
			}
			defer cancel()
			acknowledged[i] = j.Append(ctx, sinktest.Episode(i, 0)) == nil
		})
	}
	wg.Wait()
	for i, ok := range acknowledged {
		if _, has := j.Has(sinktest.Episode(i, 0).ID); ok != has {
			t.Errorf("episode %d: acknowledged %v, in the journal %v", i, ok, has)
		}
	}
	fill(t, j, []*episode.Episode{sinktest.Episode(1000, 0)})
}

func TestJournalRefusesWhatItCannotHold(t *testing.T) {
	j := open(t, t.TempDir(), journal.Options{})
	bad := sinktest.Episode(0, 0)
	zero := 0.0
	bad.Reward = new(zero / zero)
	if err := j.Append(t.Context(), bad); err == nil || !strings.Contains(err.Error(), bad.ID) {
		t.Errorf("Append of a reward that is not a number: %v, want an error that names the episode", err)
	}
	if err := j.Append(t.Context(), &episode.Episode{}); err == nil {
		t.Error("an episode without id was taken")
	}
	fill(t, j, []*episode.Episode{sinktest.Episode(1, 0)}) // such an error is not for good
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(t.Context(), sinktest.Episode(2, 0)); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Append after Close: %v, want %v", err, journal.ErrClosed)
	}
	if err := j.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestJournalRefusesSecondWriter(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	_, err := journal.Open(dir, journal.Options{})
	if !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("second writer: %v, want %v and the process id", err, journal.ErrLocked)
	}
	j.Close()
	open(t, dir, journal.Options{})
}

func TestJournalRefusesImpossibleDirectories(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Open(filepath.Join(file, "journal"), journal.Options{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("below a file: %v, want an error that names %s", err, file)
	}
	if _, err := journal.Open(t.TempDir(), journal.Options{SegmentBytes: -1}); err == nil {
		t.Error("negative segment size was taken")
	}
	if _, err := journal.OpenReader(filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reader of nothing: %v, want %v", err, os.ErrNotExist)
	}
}

// segment returns a journal with one segment of n episodes, as a writer leaves it that died, where each frame begins, and the
// episodes.
func segment(t *testing.T, n int) (dir, path string, starts []int64, episodes []*episode.Episode) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, "000001.seg")
	j := open(t, dir, journal.Options{})
	episodes = sinktest.Episodes(n)
	for _, ep := range episodes {
		var at int64
		if info, err := os.Stat(path); err == nil {
			at = info.Size()
		}
		starts = append(starts, at)
		fill(t, j, []*episode.Episode{ep})
	}
	j.Close()
	if err := os.Remove(filepath.Join(dir, "000001.end")); err != nil {
		t.Fatal(err)
	}
	return dir, path, starts, episodes
}

func TestJournalCutsTornTail(t *testing.T) {
	tests := []struct {
		name string
		tear func(content []byte, last int64) []byte
		keep int // episodes, of 6
	}{
		{"head only", func(c []byte, last int64) []byte { return c[:last+10] }, 5},
		{"half a meta", func(c []byte, last int64) []byte { return c[:last+30] }, 5},
		{"half a payload", func(c []byte, last int64) []byte { return c[:last+200] }, 5},
		{"one byte short", func(c []byte, last int64) []byte { return c[:len(c)-1] }, 5},
		{"zeros behind", func(c []byte, last int64) []byte { return append(c, make([]byte, 4096)...) }, 6},
		{"last payload zeroed", func(c []byte, last int64) []byte { clear(c[last+200:]); return c }, 5},
		{"last frame zeroed", func(c []byte, last int64) []byte { clear(c[last:]); return c }, 5},
		{"garbage behind", func(c []byte, last int64) []byte { return append(c, "tgJ\x01 and no more"...) }, 6},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, path, starts, episodes := segment(t, 6)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			torn := tt.tear(content, starts[5])
			if err := os.WriteFile(path, torn, 0o600); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(episodes[:tt.keep], all(t, reader(t, dir))); diff != "" {
				t.Errorf("reader (-want +got):\n%s", diff)
			}
			var log strings.Builder
			j := open(t, dir, journal.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if j.Len() != tt.keep {
				t.Errorf("%d episodes after opening, want %d", j.Len(), tt.keep)
			}
			if !strings.Contains(log.String(), "torn") {
				t.Errorf("log: %q, want a line about the torn end", log.String())
			}
			kept, _ := filepath.Glob(filepath.Join(dir, "*.torn"))
			if len(kept) != 1 {
				t.Fatalf("kept beside: %v, want one file", kept)
			}
			tail, err := os.ReadFile(kept[0])
			if err != nil {
				t.Fatal(err)
			}
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(whole)+string(tail) != string(torn) {
				t.Error("the segment and what was cut off do not add up to what was there")
			}
			fill(t, j, episodes)
			j.Close()
			if diff := cmp.Diff(episodes, all(t, reader(t, dir))); diff != "" {
				t.Errorf("after playing the rest (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJournalRefusesDamage(t *testing.T) {
	dir, path, starts, episodes := segment(t, 6)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, 5, 9, 17, 21, 30, 120, 400} {
		damaged := append([]byte(nil), content...)
		damaged[starts[2]+at] ^= 0x40
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := journal.Open(dir, journal.Options{})
		damage, ok := errors.AsType[*journal.ErrDamaged](err)
		if !ok {
			t.Errorf("flip at %d: %v, want an *ErrDamaged", at, err)
			continue
		}
		if damage.Segment != path || damage.Offset != starts[2] || damage.Before != episodes[1].ID || damage.After != episodes[3].ID {
			t.Errorf("flip at %d: %+v, want segment %s, offset %d, between %s and %s", at, damage, path, starts[2], episodes[1].ID, episodes[3].ID)
		}
		if _, err := journal.OpenReader(dir); !errors.As(err, &damage) {
			t.Errorf("reader, flip at %d: %v, want an *ErrDamaged", at, err)
		}
	}
	after, err := filepath.Glob(filepath.Join(dir, "*.torn"))
	if err != nil || len(after) > 0 {
		t.Errorf("refused damage was cut: %v, %v", after, err)
	}
}

func TestJournalDamageInFullSegment(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{SegmentBytes: 1})
	episodes := sinktest.Episodes(3)
	fill(t, j, episodes) // one segment each
	j.Close()
	first := filepath.Join(dir, "000001.seg")
	content, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	var damage *journal.ErrDamaged
	for _, at := range []int{2, 5, 13, 21, 40, len(content) / 2, len(content) - 1} {
		flipped := append([]byte(nil), content...)
		flipped[at] ^= 1
		if err := os.WriteFile(first, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		// A journal is opened without reading full segments; whoever reads the episode finds it.
		open(t, dir, journal.Options{}).Close()
		r := reader(t, dir)
		if _, err := r.Episode(episodes[0].ID); !errors.As(err, &damage) || damage.Segment != first || damage.ID != episodes[0].ID {
			t.Errorf("flip at %d: Episode: %v, want damage in %s", at, err, first)
		}
		if _, err := r.Episode(episodes[1].ID); err != nil {
			t.Errorf("Episode of another segment: %v", err)
		}
	}
	if err := os.WriteFile(first, content[:len(content)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Open(dir, journal.Options{}); !errors.As(err, &damage) {
		t.Errorf("a full segment that is cut off: %v, want an *ErrDamaged", err)
	}
	for _, missing := range []string{"000001.seg", "000003.seg"} { // the last one too: the index before it says so
		path := filepath.Join(dir, missing)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := journal.Open(dir, journal.Options{}); !errors.As(err, &damage) || damage.Segment != path {
			t.Errorf("a segment that is gone: %v, want damage in %s", err, path)
		}
		if err := os.WriteFile(first, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// What a writer has closed is all there, or damage by name: no interrupted write explains that the end of it is lost.
func TestJournalLostEnd(t *testing.T) {
	tests := []struct {
		name string
		lose func(content []byte, last int64) []byte // nil: there is no file
	}{
		{"an episode", func(c []byte, last int64) []byte { return c[:last] }},
		{"half an episode", func(c []byte, last int64) []byte { return c[:last+200] }},
		{"its payload", func(c []byte, last int64) []byte { clear(c[last+200:]); return c }},
		{"its head, with something behind it", func(c []byte, last int64) []byte { clear(c[last : last+40]); return append(c, "tgJ"...) }},
		{"all", func([]byte, int64) []byte { return nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, path, starts, episodes := segment(t, 6)
			open(t, dir, journal.Options{}).Close()
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if content = tt.lose(content, starts[5]); content == nil {
				err = os.Remove(path)
			} else {
				err = os.WriteFile(path, content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			var damage *journal.ErrDamaged
			if _, err := journal.OpenReader(dir); !errors.As(err, &damage) || damage.Segment != path {
				t.Errorf("OpenReader: %v, want damage in %s", err, path)
			}
			if _, err := journal.Open(dir, journal.Options{}); !errors.As(err, &damage) || damage.Segment != path {
				t.Errorf("Open: %v, want damage in %s", err, path)
			}
			lost := episodes[5:]
			if content == nil {
				lost = episodes
			}
			damages, _ := inspect(t, dir)
			var named []string
			for _, d := range damages {
				for _, entry := range d.Lost {
					named = append(named, entry.ID)
				}
			}
			slices.Sort(named)
			if !slices.Equal(named, ids(lost)) {
				t.Errorf("Inspect names %v, want %v, in %v", named, ids(lost), damages)
			}
			if _, replayed := repair(t, dir); !slices.Equal(replayed, ids(lost)) {
				t.Errorf("to be played again: %v, want %v", replayed, ids(lost))
			}
			j := open(t, dir, journal.Options{})
			fill(t, j, lost)
			j.Close()
			if diff := cmp.Diff(ids(episodes), ids(all(t, reader(t, dir)))); diff != "" {
				t.Errorf("played again (-want +got):\n%s", diff)
			}
		})
	}
}

// A later writer appends behind the end, and may die like any other.
func TestJournalTornBehindAnEnd(t *testing.T) {
	dir, path, _, episodes := segment(t, 3)
	open(t, dir, journal.Options{}).Close()
	end, err := os.ReadFile(filepath.Join(dir, "000001.end"))
	if err != nil {
		t.Fatal(err)
	}
	j := open(t, dir, journal.Options{})
	more := sinktest.Episodes(5)[3:]
	fill(t, j, more)
	j.Close()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{path: content[:len(content)-1], filepath.Join(dir, "000001.end"): end} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if damages, whole := inspect(t, dir); len(whole) != 4 || len(damages) != 1 || !damages[0].Torn {
		t.Errorf("%d attempts, damage %v, want 4 and a torn end", len(whole), damages)
	}
	if diff := cmp.Diff(ids(append(episodes, more[0])), ids(all(t, reader(t, dir)))); diff != "" {
		t.Errorf("reader (-want +got):\n%s", diff)
	}
	if n := open(t, dir, journal.Options{}).Len(); n != 4 {
		t.Errorf("%d episodes after opening, want 4", n)
	}
}

// The pages of one write may reach the disk in any order before the power fails: the frames of it that did are no
// proof that the damage before them is more than a torn end.
func TestJournalTornInsideOneWrite(t *testing.T) {
	dir, path, starts, episodes := segment(t, 6)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Make the last three frames one write, as group commit would have written them.
	journal.Reseal(content, starts[3], starts[4], starts[5])
	clear(content[starts[3]+100 : starts[4]])
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	j := open(t, dir, journal.Options{})
	if j.Len() != 3 {
		t.Errorf("%d episodes, want the 3 before the write", j.Len())
	}
	// The same damage with a later write behind it is not a torn end.
	binary.LittleEndian.PutUint32(content[starts[5]+12:], 0)
	journal.Reseal(content, starts[5])
	j.Close()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	var damage *journal.ErrDamaged
	if _, err := journal.Open(dir, journal.Options{}); !errors.As(err, &damage) || damage.After != episodes[4].ID {
		t.Errorf("damage before a later write: %v, want an *ErrDamaged before %s", err, episodes[4].ID)
	}
}
