package toolbench_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"trajgen/pipeline/run/toolbench"
)

// night adds a night to a ledger: 500 calls that take 1 to 1.5 ms, times slower.
func night(t *testing.T, dir string, n, failing int, slower float64, schema string) []toolbench.Alarm {
	t.Helper()
	micros := make([]float64, 500)
	for i := range micros {
		micros[i] = (1000 + float64(i)) * slower
	}
	alarms, err := toolbench.Remembered(t.Context(), dir, fmt.Sprintf("2026-11-%02d", n), schema, micros, failing)
	if err != nil {
		t.Fatal(err)
	}
	return alarms
}

func TestWhatGotWorse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		failing int
		slower  float64
		schema  string
		want    string // the alarm
		within  int    // nights
	}{
		{"nothing", 1, 1, "a", "", 10},
		{"errors", 25, 1, "a", "search_files errors 5.0 % since 2026-11-05, usually 0.2 %", 3},
		{"latency", 1, 1.4, "a", "search_files p99 +41 % since 2026-11-05", 2},
		{"schema", 1, 1, "b", "search_files schema changed since 2026-11-04: b, was a", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for n := range 4 { // what is usual
				if alarms := night(t, dir, n+1, 1, 1, "a"); len(alarms) > 0 {
					t.Fatalf("night %d: %v", n+1, alarms)
				}
			}
			var got []toolbench.Alarm
			for n := 5; n < 5+tt.within && len(got) == 0; n++ {
				got = night(t, dir, n, tt.failing, tt.slower, tt.schema)
			}
			drift, err := toolbench.ReadDrift(dir)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, drift.Alarms, cmpopts.IgnoreUnexported(toolbench.Alarm{}), cmpopts.EquateEmpty()); diff != "" || drift.Tools != 1 {
				t.Errorf("the ledger says of %d tools: -when it was written +now\n%s", drift.Tools, diff)
			}
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0].Text, tt.want)) {
				t.Errorf("alarms %v, want %q", got, tt.want)
			}
		})
	}
}

// TestDriftGoesOn holds that a drift is told since it began, also nights after its first alarm, by all nights since then.
func TestDriftGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for n, failing := range []int{1, 1, 1, 1, 1, 25, 25, 35, 35} {
		night(t, dir, n+1, failing, 1, "a")
	}
	drift, err := toolbench.ReadDrift(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(drift.Alarms) != 1 || drift.Alarms[0].Text != "search_files errors 6.0 % since 2026-11-06, usually 0.2 %" {
		t.Errorf("%+v", drift.Alarms)
	}
}

// TestOlderLedger reads lines with a quarter of the buckets.
func TestOlderLedger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lat := make([]int, 64)
	lat[10], lat[11] = 402, 98 // from 1 ms, from 1.26 ms to 1.58 ms
	for n := range 6 {
		line, err := json.Marshal(map[string]any{
			"night": fmt.Sprintf("2026-11-%02d", n+1), "tool": "search_files", "backend": "native", "workers": 1, "calls": 500, "schema_digest": "a", "lat": lat,
		})
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(filepath.Join(dir, "tools.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := night(t, dir, 7, 0, 1, "a"); len(got) > 0 {
		t.Errorf("alarms %v for what is as it was", got)
	}
	if got := night(t, dir, 8, 0, 1.4, "a"); len(got) != 1 || got[0].Text != "search_files p99 +34 % since 2026-11-08" {
		t.Errorf("alarms %v, want one", got)
	}
}

// TestTornLedger holds that a writer that was killed in the middle of a line costs this line alone.
func TestTornLedger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	night(t, dir, 1, 0, 1, "a")
	path := filepath.Join(dir, "tools.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < len(whole); cut += 97 {
		torn := append(bytes.Clone(whole), whole[:cut]...)
		if err := os.WriteFile(path, torn, 0o666); err != nil {
			t.Fatal(err)
		}
		night(t, dir, 2, 0, 1, "a")
		if got := nightsOf(t, path); got != "2026-11-01 2026-11-02" {
			t.Fatalf("cut at %d: nights %s", cut, got)
		}
	}
}

func TestTwoWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var writing sync.WaitGroup
	for n := range 8 {
		writing.Go(func() { night(t, dir, n+1, 0, 1, "a") })
	}
	writing.Wait()
	if got := strings.Fields(nightsOf(t, filepath.Join(dir, "tools.jsonl"))); len(got) != 8 {
		t.Errorf("nights %v, want 8", got)
	}
}

func nightsOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var nights []string
	for line := range bytes.Lines(data) {
		var entry toolbench.Entry
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		nights = append(nights, entry.Night)
	}
	return strings.Join(nights, " ")
}
