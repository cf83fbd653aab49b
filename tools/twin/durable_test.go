package twin_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/tools/twin"
	"trajgen/tools/web/tape"
)

func indexOf(run string) string { return filepath.Join(twin.RecordingDir(run), "index") }

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// answered is what a replay says to a call.
func answered(t testing.TB, on *twin.Twin, id, call string) string {
	t.Helper()
	got := play(t, (&outer{}).toolset(t), on, id, []string{call})[0]
	if got.Status != episode.CallOK {
		return got.ErrorClass
	}
	var result struct{ N json.Number }
	if err := json.Unmarshal([]byte(got.Result), &result); err != nil {
		t.Fatal(err)
	}
	return result.N.String()
}

// TestKilled cuts the index after each byte: what was whole before is answered, and a recorder goes on behind it, whose calls of the
// same attempt count.
func TestKilled(t *testing.T) {
	run := t.TempDir()
	on, o := recorder(t, run, false), &outer{}
	set := o.toolset(t)
	var ends []int
	for _, id := range []string{"a", "b"} {
		play(t, set, on, id, []string{`look {"text":"` + id + `"}`})
		ends = append(ends, len(read(t, indexOf(run))))
	}
	closed(t, on)
	whole := read(t, indexOf(run))
	for cut := range len(whole) {
		write(t, indexOf(run), whole[:cut])
		played := replay(t, run)
		for i, id := range []string{"a", "b"} {
			want := "twin_miss"
			if ends[i] <= cut {
				want = []string{"1", "2"}[i]
			}
			if cut%37 == 0 || cut == ends[i] || cut == ends[i]-1 {
				if got := answered(t, played, id, `look {"text":"`+id+`"}`); got != want {
					t.Fatalf("cut at %d: %s is answered %s, want %s", cut, id, got, want)
				}
			}
		}
		if cut%100 != 0 {
			continue
		}
		more := recorder(t, run, true)
		play(t, (&outer{}).toolset(t), more, "a", []string{`look {"text":"other"}`}, []string{`look {"text":"a"}`})
		closed(t, more)
		if got := answered(t, replay(t, run), "a", `look {"text":"a"}`); got != "2" {
			t.Fatalf("gone on at %d: %s, want what the last session got", cut, got)
		}
	}
}

// TestGoesOn holds that a recording is another run's until it is resumed, and has one writer.
func TestGoesOn(t *testing.T) {
	run := t.TempDir()
	record(t, run, map[string][][]string{"a": {{`add {}`}}})
	refused := func(want string) {
		t.Helper()
		on, err := twin.Open(twin.Settings{Mode: twin.Record})
		if err == nil {
			err = on.Record(run, false, nil)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Record: %v, want %s", err, want)
		}
	}
	refused("holds 1 calls of another run: --resume goes on")
	on := recorder(t, run, true)
	refused("is being written by")
	closed(t, on)
}

// TestHostile holds what becomes of recordings that are none, or are damaged.
func TestHostile(t *testing.T) {
	good := t.TempDir()
	record(t, good, map[string][][]string{"a": {{`look {"text":"1"}`}, {`look {"text":"2"}`}, {`long {}`}}})
	index := read(t, indexOf(good))
	foreign := t.TempDir()
	other, err := tape.Create(twin.RecordingDir(foreign), tape.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, other)
	flipped := bytes.Clone(index)
	flipped[bytes.Index(flipped, []byte(`"look"`))+2] ^= 1
	for _, tt := range []struct {
		name  string
		index []byte
		want  string
	}{
		{"of the web", read(t, indexOf(foreign)), "is not a recording of tools"},
		{"garbage", []byte(strings.Repeat("garbage", 1000)), "is not a recording of tools"},
		{"damaged", flipped, "is damaged from byte"},
	} {
		run := t.TempDir()
		write(t, indexOf(run), tt.index)
		if on, err := twin.Open(twin.Settings{Mode: twin.Replay, Recording: run}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v %v, want %s", tt.name, on, err, tt.want)
		}
		if err := twin.VerifyRecording(run); err == nil {
			t.Errorf("%s: VerifyRecording finds nothing", tt.name)
		}
	}
	if _, err := twin.Open(twin.Settings{Mode: twin.Replay, Recording: t.TempDir()}); err == nil {
		t.Error("a recording that is not there is opened")
	}
	contents, err := filepath.Glob(filepath.Join(twin.RecordingDir(good), "blobs", "*", "*"))
	if err != nil || len(contents) != 1 {
		t.Fatalf("%d contents, %v", len(contents), err)
	}
	write(t, contents[0], []byte("nonsense"))
	if got := answered(t, replay(t, good), "a", `look {"text":"1"}`); got != "1" {
		t.Errorf("what is whole: %s", got)
	}
	on := replay(t, good)
	calls := play(t, (&outer{}).toolset(t), on, "a", []string{`look {"text":"1"}`, `look {"text":"2"}`}, []string{`long {}`})
	if got := calls[2]; got.ErrorClass != "recording" || !strings.Contains(got.Result, "is damaged") {
		t.Errorf("a damaged body: %s %s", got.ErrorClass, got.Result)
	}
	if err := twin.VerifyRecording(good); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("VerifyRecording: %v", err)
	}
}

// TestDiskFull holds that a recorder that cannot write lets no call be made any more.
func TestDiskFull(t *testing.T) {
	run := t.TempDir()
	on, o := recorder(t, run, false), &outer{}
	write(t, filepath.Join(twin.RecordingDir(run), "blobs"), nil) // where a directory should be
	for _, call := range play(t, o.toolset(t), on, "a", []string{`long {}`}, []string{`look {}`}) {
		if call.ErrorClass != "recording" {
			t.Errorf("%s: %s %s", call.Name, call.ErrorClass, call.Result)
		}
	}
	if n := o.said.Load(); n != 1 {
		t.Errorf("%d calls were made", n)
	}
	if err := on.Close(); err == nil {
		t.Error("Close says nothing")
	}
}

// TestMerge merges recordings: of an episode that both have, the last counts.
func TestMerge(t *testing.T) {
	first, second, merged := t.TempDir(), t.TempDir(), t.TempDir()
	record(t, first, map[string][][]string{"a": {{`look {"text":"1"}`}, {`shows {}`}}, "b": {{`look {"text":"2"}`}}})
	record(t, second, map[string][][]string{"b": {{`look {}`, `look {}`}, {`look {"text":"2"}`}, {`long {}`}}})
	if err := twin.MergeRecordings(merged, []string{first, t.TempDir(), second}); err != nil {
		t.Fatal(err)
	}
	if err := twin.VerifyRecording(merged); err != nil {
		t.Fatal(err)
	}
	on := replay(t, merged)
	if a, b := answered(t, on, "a", `look {"text":"1"}`), answered(t, on, "b", `look {"text":"2"}`); a != "1" || b != "3" {
		t.Errorf("answers %s and %s, want 1 and 3", a, b)
	}
	if err := twin.MergeRecordings(t.TempDir(), []string{t.TempDir()}); err != nil {
		t.Error(err)
	}
}

// TestDescriptions holds that a recording knows who answered, and is of one each.
func TestDescriptions(t *testing.T) {
	describe := func(run, text string, resumed bool) error {
		on, err := twin.Open(twin.Settings{Mode: twin.Record})
		if err == nil {
			err = on.Record(run, resumed, map[string]json.RawMessage{"plugin p": json.RawMessage(text)})
		}
		if err != nil {
			return err
		}
		return on.Close()
	}
	long := `{"b":1,"a":"<` + strings.Repeat("x", 1<<20) + `>"}`
	first, second := t.TempDir(), t.TempDir()
	for i, err := range []error{describe(first, long, false), describe(first, long, true), describe(second, `{}`, false)} {
		if err != nil {
			t.Fatal(i, err)
		}
	}
	got, found, err := replay(t, first).Description("plugin p")
	if string(got) != long || !found || err != nil {
		t.Errorf("description of %d bytes, found %v, %v", len(got), found, err)
	}
	if err := describe(first, `{}`, true); err == nil || !strings.Contains(err.Error(), "plugin p says something else") {
		t.Errorf("another description: %v", err)
	}
	if err := twin.MergeRecordings(t.TempDir(), []string{first, second}); err == nil || !strings.Contains(err.Error(), "plugin p says something else") {
		t.Errorf("merged: %v", err)
	}
}

// TestDigest holds that a recording is identified by its calls, and not by their order.
func TestDigest(t *testing.T) {
	of := func(order ...string) string {
		t.Helper()
		run := t.TempDir()
		on := recorder(t, run, false)
		for _, each := range order {
			play(t, (&outer{}).toolset(t), on, each[:1], []string{`look {"text":"` + each[1:] + `"}`})
		}
		closed(t, on)
		return replay(t, run).Fingerprint()
	}
	first := of("a1", "b2")
	if again := of("b2", "a1"); again != first {
		t.Errorf("%s and %s", first, again)
	}
	for _, other := range [][]string{{"a1"}, {"a1", "b1"}, {"a1", "c2"}} {
		if of(other...) == first {
			t.Errorf("%v has the same digest", other)
		}
	}
}

// FuzzOpenTwin has the index of a recording be anything.
func FuzzOpenTwin(f *testing.F) {
	run := f.TempDir()
	record(f, run, map[string][][]string{"a": {{`look {"text":"1"}`, `add {}`}, {`fails {"text":"x"}`}, {`shows {}`}}})
	seed := read(f, indexOf(run))
	f.Add(seed)
	f.Add(seed[:len(seed)/2])
	f.Add(bytes.ReplaceAll(seed, []byte(`"ep"`), []byte(`"at"`)))
	set := (&outer{}).toolset(f)
	f.Fuzz(func(t *testing.T, index []byte) {
		run := t.TempDir()
		write(t, indexOf(run), index)
		_ = twin.VerifyRecording(run)
		on, err := twin.Open(twin.Settings{Mode: twin.Replay, Recording: run})
		if err != nil {
			return
		}
		defer closed(t, on)
		for _, call := range play(t, set, on, "a", []string{`look {"text":"1"}`, `add {}`}, []string{`fails {"text":"x"}`}, []string{`shows {}`}) {
			if !json.Valid([]byte(call.Result)) || len(call.Source) > 0 && !json.Valid(call.Source) {
				t.Errorf("%s: %q, source %q", call.Name, call.Result, call.Source)
			}
		}
	})
}
