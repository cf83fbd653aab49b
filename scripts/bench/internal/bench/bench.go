// Package bench measures what episodes cost, beside the least that they can cost.
//
// The standard episode has five model turns: terminal "echo hello > f.txt", write_file, read_file, terminal "cat f.txt"
// and an answer; a command judges it. What is measured is a process of its own, so that its CPU time and its memory are
// told from those of the server, which this process runs. The limit is a tight loop around go-openai that makes the same
// requests and starts the same shells, with no sandbox, no registry and no journal.
//
// Report is what bench.json holds. Units are in the names: cpu_ms is user and system time of the process and of everything
// below it, in milliseconds; MB are 1024·1024 bytes, of memory with a process's share of what it shares. What an episode
// costs is the difference between a large run and one of a tenth, so that starting and ending count for nothing. Values of
// several rounds are medians; the rounds stand beside them.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options say what is measured, and how thoroughly.
type Options struct {
	Itself  string // path of the program that this package is linked into
	Trajgen string // path of the program that is measured
	Version string
	Rounds  int
	Quick   bool      // small sizes, for a first look
	Tiny    bool      // sizes that say nothing, to see whether it works
	Only    []string  // sections; none is all
	Dir     string    // scratch, on the disk that runs are written to
	Log     io.Writer // gets a line about each step
}

// Validate says everything that is wrong.
func (o Options) Validate() error {
	var problems []error
	if o.Rounds < 1 {
		problems = append(problems, fmt.Errorf("rounds is %d; at least 1", o.Rounds))
	}
	var names []string
	for _, s := range Sections {
		names = append(names, s.Name)
	}
	for _, name := range o.Only {
		if !slices.Contains(names, name) {
			problems = append(problems, fmt.Errorf("no section %q (have %s)", name, strings.Join(names, ", ")))
		}
	}
	return errors.Join(problems...)
}

// Section is a part of the benchmark that can be run by itself.
type Section struct {
	Name, About string
	run         func(*driver, context.Context) error
}

// Sections are those there are, in their order.
var Sections = []Section{
	{"parts", "the standard episode, with the parts of trajgen switched on one by one, beside the limit", (*driver).parts},
	{"memory", "runner and broker with live sandboxes, and episodes that wait for a model", (*driver).memory},
	{"flight", "episodes in flight at a server that takes its time, beside the limit", (*driver).flight},
	{"scale", "workers, and episodes in one run", (*driver).scale},
	{"start", "how soon the first request leaves, and how large the program is", (*driver).start},
}

// Run measures. What could not be measured here is said in the report. An error means that something broke; the report
// then has the rest.
func Run(ctx context.Context, options Options) (*Report, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	began := time.Now()
	p, err := newPlayer(options)
	if err != nil {
		return nil, err
	}
	defer p.close()
	d := &driver{p, &Report{
		When: began.UTC().Format(time.RFC3339), Version: options.Version, Machine: thisMachine(), Rounds: options.Rounds,
		Load: []float64{loadAverage()}, Quick: options.Quick || options.Tiny,
	}}
	var errs []error
	for _, section := range Sections {
		if len(options.Only) > 0 && !slices.Contains(options.Only, section.Name) {
			continue
		}
		if err := section.run(d, ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", section.Name, err))
			d.logf("%v", errs[len(errs)-1])
		}
		if ctx.Err() != nil {
			break
		}
		d.report.Load = append(d.report.Load, loadAverage())
	}
	d.report.Seconds = time.Since(began).Seconds()
	d.report.Targets = d.report.judge()
	return d.report, errors.Join(errs...)
}

// Profile plays the whole pipeline at 100 episodes a second, or as many as there can be, and leaves cpu.pprof and heap.pprof in
// a directory.
func Profile(ctx context.Context, options Options, profiles string) error {
	if err := os.MkdirAll(profiles, 0o755); err != nil {
		return err
	}
	profiles, err := filepath.Abs(profiles)
	if err != nil {
		return err
	}
	p, err := newPlayer(options)
	if err != nil {
		return err
	}
	defer p.close()
	_, _, err = p.play(ctx, stage("full"), Setup{Episodes: p.size(3000, 300, 10), InFlight: 64, Rate: 100, Profiles: profiles})
	return err
}

// driver runs the sections.
type driver struct {
	*player
	report *Report
}

// player plays stages, each as a process of its own, and serves the model.
type player struct {
	Options
	dir    string
	server *Server
}

func newPlayer(options Options) (*player, error) {
	dir, err := os.MkdirTemp(options.Dir, "trajgen-bench-")
	if err != nil {
		return nil, err
	}
	p := &player{Options: options, dir: dir}
	if p.server, err = Listen(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, adoptStrays()
}

func (p *player) close() {
	p.server.Close()
	os.RemoveAll(p.dir)
}

// size is a size, a smaller one for a first look, or a tiny one.
func (p *player) size(full, quick, tiny int) int {
	switch {
	case p.Tiny:
		return tiny
	case p.Quick:
		return quick
	}
	return full
}

func (p *player) logf(format string, args ...any) {
	fmt.Fprintf(p.Log, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// missing notes what this machine cannot show.
func (d *driver) missing(format string, args ...any) {
	note := fmt.Sprintf(format, args...)
	d.logf("not measured: %s", note)
	d.report.NotMeasured = append(d.report.NotMeasured, note)
}
