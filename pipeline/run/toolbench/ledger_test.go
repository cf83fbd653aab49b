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
		{"latency", 1, 1.4, "a", "search_files p99 +57 % since 2026-11-05 (to a bucket of 26 %)", 2},
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
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0].Text, tt.want)) {
				t.Errorf("alarms %v, want %q", got, tt.want)
			}
		})
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
