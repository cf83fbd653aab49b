package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTable prints the report for people, the targets last.
func (r *Report) WriteTable(w io.Writer) error {
	t := &table{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)}
	m := r.Machine
	fmt.Fprintf(w, "%s, %d cores (%s), %.0f MB, %s %s, trajgen %s; load average %.1f before and %.1f after\n",
		m.OS+"/"+m.Arch, m.Cores, m.CPU, m.MemoryMB, m.Kernel, m.Go, r.Version, r.Load[0], r.Load[len(r.Load)-1])
	t.parts(r.Parts)
	t.memory(r.Memory)
	t.flight(r.Flight)
	t.scale(r.Scale)
	t.start(r.Start)
	t.writing(r.Writing)
	t.end()
	for _, note := range r.NotMeasured {
		fmt.Fprintf(w, "\nnot measured: %s\n", note)
	}
	return r.writeTargets(w)
}

// table writes blocks of aligned columns, the first of which is text.
type table struct {
	w *tabwriter.Writer
}

// head begins a block.
func (t *table) head(columns ...string) {
	t.end()
	fmt.Fprintln(t.w)
	t.row(columns...)
}

func (t *table) row(columns ...string) {
	fmt.Fprintf(t.w, "%-40s\t%s\t\n", columns[0], strings.Join(columns[1:], "\t"))
}

func (t *table) end() { _ = t.w.Flush() }

func (t *table) parts(all []StageResult) {
	if len(all) == 0 {
		return
	}
	t.head("standard episode", "episodes/s", "CPU ms", "by cgroup", "peak MB", "CPU/limit", "rate/limit", "spread")
	for _, s := range all {
		cpu, rate := "", ""
		if s.Against != "" {
			cpu, rate = fmt.Sprintf("%.2f", s.CPURatio), fmt.Sprintf("%.2f", s.RateRatio)
		}
		t.row(s.About, fmt.Sprintf("%.0f", s.EpisodesPerS), fmt.Sprintf("%.3f", s.CPUMSPerEpisode), fmt.Sprintf("%.3f", s.CgroupCPUMS),
			fmt.Sprintf("%.0f", s.PeakMB), cpu, rate, fmt.Sprintf("%.2f", s.CPUSpread))
	}
}

func (t *table) memory(m *MemoryResult) {
	if m == nil {
		return
	}
	t.head("memory", "in flight", "peak MB", "base MB", "KB each")
	if l := m.Live; l != nil {
		t.row("live sandboxes", fmt.Sprint(l.InFlight), fmt.Sprintf("%.0f", l.PeakMB), fmt.Sprintf("%.0f", l.BaseMB), fmt.Sprintf("%.0f", 1024*(l.PeakMB-l.BaseMB)/float64(l.InFlight)))
	}
	if w := m.Waiting; w != nil {
		t.row("waiting for a model", fmt.Sprint(w.InFlight), fmt.Sprintf("%.0f", w.PeakMB), fmt.Sprintf("%.0f", w.BaseMB), fmt.Sprintf("%.1f", w.KBEach))
	}
}

func (t *table) flight(all []Flight) {
	if len(all) == 0 {
		return
	}
	t.head("in flight, no-op tools", "requests/s", "limit", "ideal", "ratio", "first 1,000 s", "limit", "p99 ms", "limit", "peak MB", "limit")
	for _, f := range all {
		t.row(fmt.Sprintf("%d at %v s", f.InFlight, f.DelayS), fmt.Sprintf("%.0f", f.Trajgen.RequestsPerS), fmt.Sprintf("%.0f", f.Limit.RequestsPerS),
			fmt.Sprintf("%.0f", f.IdealPS), fmt.Sprintf("%.2f", f.RateRatio), fmt.Sprintf("%.2f", f.Trajgen.First1000S), fmt.Sprintf("%.2f", f.Limit.First1000S),
			fmt.Sprintf("%.1f", f.Trajgen.P99MS), fmt.Sprintf("%.1f", f.Limit.P99MS), fmt.Sprintf("%.0f", f.Trajgen.PeakMB), fmt.Sprintf("%.0f", f.Limit.PeakMB))
	}
}

func (t *table) scale(s *ScaleResult) {
	if s == nil {
		return
	}
	if len(s.Workers) > 0 {
		t.head("workers, full", "episodes/s", "CPU ms", "peak MB")
	}
	for _, w := range s.Workers {
		t.row(fmt.Sprint(w.Workers), fmt.Sprintf("%.0f", w.EpisodesPerS), fmt.Sprintf("%.2f", w.CPUMSPerEpisode), fmt.Sprintf("%.0f", w.PeakMB))
	}
	t.head("episodes in one run", "episodes/s", "CPU ms", "late/early tenths", "peak MB")
	for _, g := range s.Growth {
		t.row(fmt.Sprint(g.Rows), fmt.Sprintf("%.0f", g.EpisodesPerS), fmt.Sprintf("%.3f", g.CPUMSPerEpisode), fmt.Sprintf("%.2f", g.LateToEarly), fmt.Sprintf("%.0f", g.PeakMB))
	}
	t.head("tools of a registry", "dispatch us", "select us", "first select us")
	for _, r := range s.Registries {
		t.row(fmt.Sprint(r.Tools), fmt.Sprintf("%.1f", r.DispatchUS), fmt.Sprintf("%.2f", r.SelectUS), fmt.Sprintf("%.0f", r.FirstUS))
	}
	if len(s.Sandboxes) > 0 {
		t.head("live sandboxes", "open ms", "exec ms", "MB each")
	}
	for _, a := range s.Sandboxes {
		t.row(fmt.Sprint(a.Alive), fmt.Sprintf("%.2f", a.OpenMS), fmt.Sprintf("%.2f", a.ExecMS), fmt.Sprintf("%.2f", a.MBEach))
	}
}

func (t *table) start(s *StartResult) {
	if s == nil {
		return
	}
	t.head(fmt.Sprintf("until the first request, %d rows", s.Rows), "ms")
	for _, backend := range []string{"local", "native"} {
		if ms := s.FirstRequestMS[backend]; ms > 0 {
			t.row("start, "+backend, fmt.Sprintf("%.0f", ms))
		}
	}
	t.row("resume, all but one finished", fmt.Sprintf("%.0f", s.ResumeMS))
}

func (t *table) writing(all []Writing) {
	if len(all) == 0 {
		return
	}
	t.head("writing", "rows/s", "MB/s", "CPU ms/row", "file/JSON", "peak MB")
	for _, w := range all {
		t.row(w.Format, fmt.Sprintf("%.0f", w.RowsPerS), fmt.Sprintf("%.0f", w.MBPerS), fmt.Sprintf("%.3f", w.CPUMS), fmt.Sprintf("%.2f", w.FileMB/w.JSONMB), fmt.Sprintf("%.0f", w.PeakMB))
	}
}

// writeTargets prints each target on a line.
func (r *Report) writeTargets(w io.Writer) error {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "target\tmeasured\twanted\t\t")
	for _, one := range r.Targets {
		bound, measured := "at most", "-"
		if one.AtLeast {
			bound = "at least"
		}
		if one.Measured != nil {
			measured = fmt.Sprintf("%.4g %s", *one.Measured, one.Unit)
		}
		verdict := string(one.Verdict)
		if one.Note != "" {
			verdict += " (" + one.Note + ")"
		}
		fmt.Fprintf(t, "%s\t%s\t%s %g %s\t%s\n", one.Name, measured, bound, one.Wanted, one.Unit, verdict)
	}
	return t.Flush()
}
