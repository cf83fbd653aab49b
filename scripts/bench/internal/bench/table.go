package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteTable prints the report for people, the targets last.
func (r *Report) WriteTable(w io.Writer) error {
	m := r.Machine
	fmt.Fprintf(w, "%s/%s, %d cores (%s), %.0f MB, %s %s, trajgen %s; load average %.1f before and %.1f after\n",
		m.OS, m.Arch, m.Cores, m.CPU, m.MemoryMB, m.Kernel, m.Go, r.Version, r.Load[0], r.Load[len(r.Load)-1])
	t := &table{tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)}
	if len(r.Parts) > 0 {
		t.head("standard episode", "episodes/s\tCPU ms\tpeak MB\tCPU/limit\trate/limit\tspread")
	}
	for _, s := range r.Parts {
		ratios := "\t"
		if s.Against != "" {
			ratios = fmt.Sprintf("%.2f\t%.2f", s.CPURatio, s.RateRatio)
		}
		t.row(s.About, "%.0f\t%.3f\t%.0f\t%s\t%.2f", s.EpisodesPerS, s.CPUMSPerEpisode, s.PeakMB, ratios, s.CPUSpread)
	}
	t.memory(r.Memory)
	if len(r.Flight) > 0 {
		t.head("in flight, no-op tools", "requests/s\tlimit\tideal\tratio\tfirst 1,000 s\tlimit\tp99 ms\tlimit\tpeak MB\tlimit")
	}
	for _, f := range r.Flight {
		t.row(fmt.Sprintf("%d at %v s", f.InFlight, f.DelayS), "%.0f\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t%.1f\t%.1f\t%.0f\t%.0f", f.Trajgen.RequestsPerS, f.Limit.RequestsPerS,
			f.IdealPS, f.RateRatio, f.Trajgen.First1000S, f.Limit.First1000S, f.Trajgen.SchedP99MS, f.Limit.SchedP99MS, f.Trajgen.PeakMB, f.Limit.PeakMB)
	}
	t.scale(r.Scale)
	if s := r.Start; s != nil {
		t.head(fmt.Sprintf("until the first request, %d rows", s.Rows), "ms")
		for _, backend := range []string{"local", "native"} {
			if ms := s.FirstRequestMS[backend]; ms > 0 {
				t.row("start, "+backend, "%.0f", ms)
			}
		}
		t.row("resume, all but one finished", "%.0f", s.ResumeMS)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, note := range r.NotMeasured {
		fmt.Fprintf(w, "\nnot measured: %s\n", note)
	}
	return r.writeTargets(w)
}

// table writes blocks of aligned columns, the first of which is text.
type table struct{ *tabwriter.Writer }

// head begins a block.
func (t *table) head(first, columns string) {
	_ = t.Flush()
	fmt.Fprintln(t)
	t.row(first, "%s", columns)
}

func (t *table) row(first, columns string, values ...any) {
	fmt.Fprintf(t, "%-40s\t"+columns+"\t\n", append([]any{first}, values...)...)
}

func (t *table) memory(m *MemoryResult) {
	if m == nil {
		return
	}
	t.head("memory", "in flight\tpeak MB\tbase MB\tKB each")
	if l := m.Live; l != nil {
		t.row("live sandboxes", "%d\t%.0f\t%.0f\t%.0f", l.InFlight, l.PeakMB, l.BaseMB, 1024*(l.PeakMB-l.BaseMB)/float64(l.InFlight))
	}
	if w := m.Waiting; w != nil {
		t.row("waiting for a model", "%d\t%.0f\t%.0f\t%.1f", w.InFlight, w.PeakMB, w.BaseMB, w.KBEach)
	}
}

func (t *table) scale(s *ScaleResult) {
	if s == nil {
		return
	}
	if len(s.Workers) > 0 {
		t.head("workers, full", "episodes/s\tCPU ms\tpeak MB")
	}
	for _, w := range s.Workers {
		t.row(fmt.Sprint(w.Workers), "%.0f\t%.2f\t%.0f", w.EpisodesPerS, w.CPUMSPerEpisode, w.PeakMB)
	}
	t.head("episodes in one run", "episodes/s\tCPU ms\tlate/early tenths\tpeak MB")
	for _, g := range s.Growth {
		t.row(fmt.Sprint(g.Rows), "%.0f\t%.3f\t%.2f\t%.0f", g.EpisodesPerS, g.CPUMSPerEpisode, g.LateToEarly, g.PeakMB)
	}
}

// writeTargets prints each target on a line.
func (r *Report) writeTargets(w io.Writer) error {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "target\tmeasured\twanted\t\t")
	for _, one := range r.Targets {
		bound, measured, verdict := "at most", "-", string(one.Verdict)
		if one.AtLeast {
			bound = "at least"
		}
		if one.Measured != nil {
			measured = fmt.Sprintf("%.4g %s", *one.Measured, one.Unit)
		}
		if one.Note != "" {
			verdict += " (" + one.Note + ")"
		}
		fmt.Fprintf(t, "%s\t%s\t%s %g %s\t%s\n", one.Name, measured, bound, one.Wanted, one.Unit, verdict)
	}
	return t.Flush()
}
