package bench_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/scripts/bench/internal/bench"
)

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		give []float64
		want float64
	}{{nil, 0}, {[]float64{4}, 4}, {[]float64{9, 1, 5}, 5}, {[]float64{8, 2, 4, 6}, 5}} {
		if got := bench.Median(tt.give...); got != tt.want {
			t.Errorf("Median(%v) = %v, want %v", tt.give, got, tt.want)
		}
	}
}

func TestQuantile(t *testing.T) {
	bounds := []float64{0, 1, 2, 3, math.Inf(1)}
	for _, tt := range []struct {
		counts []uint64
		share  float64
		want   float64
	}{
		{[]uint64{0, 0, 0, 0}, 0.99, 0},
		{[]uint64{98, 1, 1, 0}, 0.5, 1},
		{[]uint64{98, 1, 1, 0}, 0.99, 2},
		{[]uint64{98, 1, 0, 1}, 1, 3},
	} {
		if got := bench.Quantile(tt.counts, bounds, tt.share); got != tt.want {
			t.Errorf("Quantile(%v, %v) = %v, want %v", tt.counts, tt.share, got, tt.want)
		}
	}
}

// rounds are those of a stage, by the CPU time and the rate of each.
func rounds(name string, pairs ...[2]float64) bench.StageResult {
	r := bench.StageResult{Stage: bench.StageOf(name)}
	for _, pair := range pairs {
		r.Each = append(r.Each, bench.Round{CPUMSPerEpisode: pair[0], EpisodesPerS: pair[1]})
	}
	return r
}

// report is one with something in every section.
func report() *bench.Report {
	r := &bench.Report{
		Version: "v1", Machine: bench.Machine{OS: "linux", Arch: "amd64", Cores: 2, CPU: "some", MemoryMB: 1024, Go: "go1.26"}, Load: []float64{0.5, 1},
		Parts: []bench.StageResult{
			rounds("limit-noop", [2]float64{1, 100}, [2]float64{4, 50}, [2]float64{2, 80}),
			rounds("noop", [2]float64{1.2, 90}, [2]float64{5.6, 30}, [2]float64{2.6, 60}),
			rounds("limit-fork", [2]float64{10, 100}), rounds("full", [2]float64{30, 40}),
		},
		Memory: &bench.MemoryResult{
			Live:    &bench.Live{InFlight: 1000, PeakMB: 151, BaseMB: 40, AllAlive: true},
			Waiting: &bench.Waiting{InFlight: 10_000, PeakMB: 650, BaseMB: 30, KBEach: 63.5, AllWaiting: true},
		},
		Flight: []bench.Flight{{InFlight: 50_000, DelayS: 2, IdealPS: 25_000, RateRatio: 0.85, Trajgen: bench.Pace{RequestsPerS: 8500, First1000S: 0.3, SchedP99MS: 51}}},
		Scale: &bench.ScaleResult{
			Workers: []bench.Workers{{Workers: 8, Round: bench.Round{EpisodesPerS: 100}}}, Growth: []bench.Growth{{Rows: 1_000_000, LateToEarly: 1.05}},
		},
		Start:       &bench.StartResult{Rows: 100_000, FirstRequestMS: map[string]float64{"local": 100, "native": 1001}, ResumeMS: 900, BinaryMB: 59},
		NotMeasured: []string{"the moon: it is too far"},
	}
	r.Judge()
	return r
}

func TestRatios(t *testing.T) {
	noop := report().Parts[1]
	if noop.CPUMSPerEpisode != 2.6 || noop.EpisodesPerS != 60 {
		t.Errorf("medians %v and %v, want 2.6 and 60", noop.CPUMSPerEpisode, noop.EpisodesPerS)
	}
	// Of each round to the limit of that round: 1.2, 1.4 and 1.3; 0.9, 0.6 and 0.75.
	if math.Abs(noop.CPURatio-1.3) > 1e-9 || math.Abs(noop.RateRatio-0.75) > 1e-9 {
		t.Errorf("ratios %v and %v, want 1.3 and 0.75", noop.CPURatio, noop.RateRatio)
	}
}

// TestNoise has differences that are nothing: what is made of them has to be a number that JSON knows.
func TestNoise(t *testing.T) {
	r := &bench.Report{Load: []float64{0}, Parts: []bench.StageResult{rounds("limit-noop", [2]float64{0, 0}), rounds("noop", [2]float64{1, 1})}}
	r.Judge()
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
	if got := r.Targets[0].Verdict; got != bench.VerdictNone {
		t.Errorf("verdict on a ratio to nothing: %s", got)
	}
}

func TestTargets(t *testing.T) {
	var got []string
	for _, target := range report().Targets {
		got = append(got, string(target.Verdict)+": "+target.Name)
	}
	want := []string{
		"pass: no-op tools: CPU an episode against the limit loop",
		"not measured: local: CPU an episode against the limit loop with shells",
		"fail: native, limits, verifier, journal, Parquet: episodes",
		"fail: the same, against the limit loop with shells",
		"fail: 1,000 live sandboxes: peak of runner and broker",
		"pass: an episode that waits for a model, history of 2 KB",
		"pass: 50,000 in flight, 2 s: rate against what server and CPU allow",
		"pass: the same: until the first 1,000 requests are out",
		"fail: the same: p99 of the scheduler's delay",
		"pass: 1,000,000 episodes in one run: CPU of the last 3 tenths by tenths 2 to 4",
		"fail: start until the first request, 100,000 rows",
		"pass: resume with 100,000 finished episodes",
		"pass: binary",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if missed := report().Missed(); len(missed) != 5 {
		t.Errorf("missed %q, want 5", missed)
	}
	empty := &bench.Report{}
	empty.Judge()
	for _, target := range empty.Targets {
		if target.Verdict != bench.VerdictNone || target.Measured != nil {
			t.Errorf("%s of an empty report: %s", target.Name, target.Verdict)
		}
	}
}

func TestWriteTable(t *testing.T) {
	var b bytes.Buffer
	if err := report().WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"linux/amd64, 2 cores (some)", "trajgen, no-op tools", "50000 at 2 s", "not measured: the moon", "1001 ms", "at most 1000 ms", "fail"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table has no %q:\n%s", want, &b)
		}
	}
	b.Reset()
	if err := (&bench.Report{Load: []float64{0}}).WriteTable(&b); err != nil {
		t.Error(err)
	}
}

// TestReportJSON reads what it wrote.
func TestReportJSON(t *testing.T) {
	want := report()
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := &bench.Report{}
	if err := json.Unmarshal(text, got); err != nil {
		t.Fatal(err)
	}
	for i := range want.Parts { // what plays a stage is not written down
		s := want.Parts[i].Stage
		want.Parts[i].Stage = bench.Stage{Name: s.Name, About: s.About, Against: s.Against}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after JSON (-want +got):\n%s", diff)
	}
}

func TestOptions(t *testing.T) {
	err := bench.Options{Only: []string{"parts", "prats"}}.Validate()
	if err == nil || !strings.Contains(err.Error(), "rounds is 0") || !strings.Contains(err.Error(), `no section "prats" (have parts, memory,`) {
		t.Errorf("error %v, want both mistakes", err)
	}
}

func TestMeter(t *testing.T) {
	halves := 0
	m := bench.NewMeter(20, func() { halves++ })
	for range 20 {
		m.Ended()
	}
	if played := m.Played(); played.Episodes != 20 || len(played.TenthCPUMS) != 11 || halves != 1 {
		t.Errorf("played %+v, half %d times", played, halves)
	}
}
