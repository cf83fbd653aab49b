package export_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"trajgen/outputs/export"
	"trajgen/outputs/journal"
	"trajgen/outputs/report"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// What a sink holds does not grow with what it has written. It goes up and down by a row group and by the pooled buffers
// of the compressor, so the low marks of the first and the last third are compared.
func TestExportMemoryIsBounded(t *testing.T) {
	sink, err := export.Open("parquet", t.TempDir(), export.Options{RowGroupBytes: 1 << 20, PartBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	const episodes = 480
	before := live()
	early, late := uint64(math.MaxUint64), uint64(math.MaxUint64)
	for n := range episodes {
		ep := sinktest.Episode(n, 0)
		noise := make([]byte, 50_000) // does not shrink
		for i, rng := 0, ep.Key.Rand("noise"); i < len(noise); i++ {
			noise[i] = byte(rng.Uint32())
		}
		ep.Answer = fmt.Sprintf("%x", noise)
		if err := sink.Write(t.Context(), ep); err != nil {
			t.Fatal(err)
		}
		if n%10 == 9 {
			held := live() - before
			switch n * 3 / episodes {
			case 0:
				early = min(early, held)
			case 2:
				late = min(late, held)
			}
		}
	}
	if _, err := sink.Commit(); err != nil {
		t.Fatal(err)
	}
	t.Logf("live heap: at least %d MB in the first third, %d MB in the last", early>>20, late>>20)
	if late > early+10<<20 {
		t.Errorf("live heap grew from %d MB to %d MB with what was written", early>>20, late>>20)
	}
}

// live is the heap in use.
func live() uint64 {
	runtime.GC()
	runtime.GC() // what lies in pools is given up at the second
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// Reports and differences hold some numbers for each task, and nothing of the episodes: the texts of one that was read are
// parts of one large text.
func TestReportsDoNotHoldTheJournal(t *testing.T) {
	const episodes, size = 120, 200_000
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, journal.Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range episodes {
		ep := sinktest.Episode(n, 0)
		name := fmt.Sprint("of-its-own-", n)
		ep.Key.Task, ep.Task.ID = name, name
		ep.ID = ep.Key.ID()
		ep.Task.Tags, ep.Task.Difficulty, ep.Toolsets, ep.Model = []string{name}, name, []string{name}, name
		ep.Sampling.Model, ep.Stop = name, episode.Stop(name)
		ep.Outcome, ep.Reward = episode.ModelError, nil
		ep.Fault = &episode.Fault{Outcome: ep.Outcome, Class: name, Message: name}
		ep.Earlier = episode.Attempts{{Attempt: 1, Outcome: ep.Outcome, Fault: ep.Fault}}
		ep.Attempt = 2
		ep.Calls = []episode.ToolCall{{Name: name, Status: episode.CallError, ErrorClass: name}}
		if n%2 == 0 {
			ep.Outcome, ep.Reward, ep.Fault = episode.Success, new(1.0), nil
			ep.Calls[0].Status = episode.CallUnknownTool
		}
		noise := make([]byte, size/2)
		for i := range noise {
			noise[i] = byte(rng.Uint32())
		}
		ep.Answer = fmt.Sprintf("%x", noise)
		fill(t, j, []*episode.Episode{ep})
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r := reader(t, dir)
	builder, comparison := report.New(report.Meta{}), report.NewComparison()
	var held []uint64
	for _, add := range []func(*episode.Episode){builder.Add, comparison.AddFrom, comparison.AddTo} {
		before := live()
		for ep, err := range r.Episodes(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			add(ep)
		}
		held = append(held, max(live(), before)-before)
	}
	runtime.KeepAlive(r)
	if text := fmt.Sprint(builder.Finish().Tags) + fmt.Sprint(comparison.Finish("", "", nil).Tasks); !strings.Contains(text, "of-its-own-119") {
		t.Errorf("the report has no tag of the last episode: %.200s", text)
	}
	t.Logf("held of %d MB: report %d KB, both sides of a difference %d and %d KB", episodes*size>>20, held[0]>>10, held[1]>>10, held[2]>>10)
	for _, bytes := range held {
		if bytes > 10*size { // some times what one episode is
			t.Errorf("%d KB are held of %d episodes of %d KB", bytes>>10, episodes, size>>10)
		}
	}
}
