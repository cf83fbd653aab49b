package proof_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/run/proof"
)

func task() *episode.Task {
	return &episode.Task{
		ID: "a", Row: 3, Prompt: []episode.Message{{Role: "user", Content: "write it"}}, Files: episode.Files{"in.txt": episode.File("x")},
		Verify: []episode.Check{{Command: "test -f out.txt", Verifier: &episode.Verifier{Build: &episode.Build{Dir: "/here", Digest: "v"}}}}, Gold: []episode.Step{{Content: "done"}}, Labels: episode.Labels{Tags: []string{"easy"}},
		Build: &episode.Build{Dir: "/here", Digest: "d"},
	}
}

func digest(t *testing.T, conditions string, task *episode.Task) string {
	t.Helper()
	sum, err := proof.Digest(conditions, task)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestDigest holds that a task has the same digest wherever it lies, and another one where a verdict could differ.
func TestDigest(t *testing.T) {
	tests := []struct {
		name       string
		conditions string
		change     func(*episode.Task)
		same       bool
	}{
		{"nothing", "c", func(*episode.Task) {}, true},
		{"its name and place", "c", func(t *episode.Task) {
			t.ID, t.Row, t.Tags, t.Build.Dir, t.Verify[0].Verifier.Build.Dir = "b", 4, nil, "/there", "/there"
		}, true},
		{"conditions", "d", func(*episode.Task) {}, false},
		{"prompt", "c", func(t *episode.Task) { t.Prompt[0].Content = "read it" }, false},
		{"files", "c", func(t *episode.Task) { t.Files["in.txt"] = episode.File("y") }, false},
		{"setup", "c", func(t *episode.Task) { t.Setup = "true" }, false},
		{"the verifier's build", "c", func(t *episode.Task) { t.Verify[0].Verifier.Build.Digest = "w" }, false},
		{"build", "c", func(t *episode.Task) { t.Build.Digest = "e" }, false},
		{"tests", "c", func(t *episode.Task) { t.Verify[0].Tests = episode.Files{"t.py": episode.File("1")} }, false},
		{"gold", "c", func(t *episode.Task) { t.Gold[0].Content = "well" }, false},
		{"limits", "c", func(t *episode.Task) { t.Limits.Turns = 1 }, false},
	}
	for _, tt := range tests {
		changed := task()
		tt.change(changed)
		if same := digest(t, "c", task()) == digest(t, tt.conditions, changed); same != tt.same {
			t.Errorf("after a change of %s the digest is the same: %v, want %v", tt.name, same, tt.same)
		}
	}
}

// TestDigestKnowsEveryField holds that no field of a task or of a check is forgotten, but for those that change no verdict.
func TestDigestKnowsEveryField(t *testing.T) {
	names := []string{"ID", "Row", "Labels", "Metadata"}
	base := digest(t, "c", &episode.Task{Verify: []episode.Check{{}}})
	for _, of := range []func(*episode.Task) any{
		func(task *episode.Task) any { return task },
		func(task *episode.Task) any { return &task.Verify[0] },
	} {
		kind := reflect.TypeOf(of(&episode.Task{Verify: []episode.Check{{}}})).Elem()
		for i := range kind.NumField() {
			task := &episode.Task{Verify: []episode.Check{{}}}
			set(reflect.ValueOf(of(task)).Elem().Field(i))
			want := slices.Contains(names, kind.Field(i).Name)
			if same := digest(t, "c", task) == base; same != want {
				t.Errorf("with another %s.%s the digest is the same: %v, want %v", kind, kind.Field(i).Name, same, want)
			}
		}
	}
}

// set gives a value that is not zero.
func set(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"x":1}`))
	case v.Kind() == reflect.String:
		v.SetString("x")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	case v.CanFloat():
		v.SetFloat(1)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2)) // of which one may be there already
		set(v.Index(0))
	case v.Kind() == reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		set(key)
		set(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			set(v.Field(i))
		}
	}
}

func ptr(v float64) *float64 { return &v }

func TestStore(t *testing.T) {
	store := proof.Store{Dir: filepath.Join(t.TempDir(), "deep", "proofs")}
	sum := digest(t, "c", task())
	if got, err := store.Get(sum); got != nil || err != nil || !store.Empty() {
		t.Fatalf("Get of nothing = %v, %v, and Empty is %v", got, err, store.Empty())
	}
	for _, p := range []episode.Proof{
		{Digest: sum},
		{Digest: sum, Faults: map[string]string{"gold": "timeout", "noop": "timeout"}},
		{Digest: sum, Gold: ptr(1), Noop: ptr(0)},
		{Digest: sum, Attacks: map[string]*float64{"preload": ptr(0), "reward-file": nil}},
		{Digest: sum, Attacks: map[string]*float64{"preload": ptr(1)}},
	} {
		for range 2 { // what is known is not written again
			if err := store.Put(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := &episode.Proof{Digest: sum, Gold: ptr(1), Noop: ptr(0), Attacks: map[string]*float64{"preload": ptr(1), "reward-file": nil}}
	got, err := store.Get(sum)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Get (-want +got), %v:\n%s", err, diff)
	}
	if lines := strings.Count(strings.ReplaceAll(read(t, store, sum), "\n\n", "\n"), "\n") - 1; lines != 4 {
		t.Errorf("the file has %d lines, want 4", lines)
	}
	if other, err := store.Get(sum[:60] + "0000"); other != nil || err != nil {
		t.Errorf("Get of another digest = %v, %v", other, err)
	}
}

func read(t *testing.T, store proof.Store, sum string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(store.Dir, sum[:3]+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestGarbage holds that what a killed process left, and garbage, says nothing and hides nothing.
func TestGarbage(t *testing.T) {
	sum := digest(t, "c", task())
	for name, garbage := range map[string]string{
		"torn":          `{"digest":"` + sum + `","gold":1,"no`,
		"bytes":         "\x00\xff\x00{{{",
		"other kind":    `["` + sum + `"]` + "\n",
		"other content": `{"digest":"x","gold":0,"note":"` + sum + `"}` + "\n",
	} {
		store := proof.Store{Dir: t.TempDir()}
		if err := os.WriteFile(filepath.Join(store.Dir, sum[:3]+".jsonl"), []byte(garbage), 0o666); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Get(sum); got != nil || err != nil {
			t.Errorf("%s: Get = %v, %v, want nothing", name, got, err)
		}
		if err := store.Put(episode.Proof{Digest: sum, Gold: ptr(1)}); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Get(sum); err != nil || got == nil || got.Gold == nil || *got.Gold != 1 {
			t.Errorf("%s: Get after Put = %v, %v", name, got, err)
		}
	}
}

// TestConcurrent holds that several writers, of several processes as far as the store can tell, lose nothing.
func TestConcurrent(t *testing.T) {
	dir, sum := t.TempDir(), digest(t, "c", task())
	var writers sync.WaitGroup
	for i := range 50 {
		writers.Go(func() {
			err := proof.Store{Dir: dir}.Put(episode.Proof{Digest: sum, Attacks: map[string]*float64{fmt.Sprint(i): ptr(0)}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if got, err := (proof.Store{Dir: dir}).Get(sum); err != nil || len(got.Attacks) != 50 {
		t.Errorf("%d attacks of 50, %v", len(got.Attacks), err)
	}
}
