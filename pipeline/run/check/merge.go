package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"trajgen/outputs/export"
	"trajgen/outputs/journal"
	"trajgen/pipeline/run"
	"trajgen/tools/twin"
	"trajgen/tools/web"
)

// Merged is the result of a merge, as `trajgen merge --json` prints it.
type Merged struct {
	Out      string          `json:"out"`
	Episodes int             `json:"episodes"`
	Runs     []run.MergedRun `json:"runs"`
	Same     int             `json:"same"`    // episodes that several runs had in the same form
	Settled  int             `json:"settled"` // episodes that several runs had in different forms: the better one was taken
}

// partOf are the settings in which merged runs may differ: which of the experiment's episodes they played.
var partOf = []string{"seed", "shuffle", "max_tasks", "subset", "split", "where", "parts", "use_part", "stratify", "slice"}

// Merge makes one run directory of several that played parts of the same experiment. The directory appears when it is complete.
// A Mistake says which runs cannot be merged.
func Merge(ctx context.Context, dirs []string, out string) (result Merged, err error) {
	manifests, readers, err := openMerged(dirs)
	defer func() {
		for _, reader := range readers {
			err = errors.Join(err, reader.Close())
		}
	}()
	if err != nil {
		return result, run.AsMistake(err)
	}
	err = export.WholeDir(out, func(dir string) error {
		into, err := journal.Open(run.JournalDir(dir), journal.Options{})
		if err != nil {
			return err
		}
		merged, err := journal.Merge(ctx, into, readers)
		result = Merged{Out: out, Episodes: into.Len(), Same: merged.Same, Settled: merged.Settled}
		if err = errors.Join(err, into.Close()); err != nil {
			return named(err, dirs)
		}
		for i, m := range manifests {
			result.Runs = append(result.Runs, run.MergedRun{
				Name: filepath.Base(dirs[i]), Fingerprint: m.Fingerprint, Version: m.Version, Seed: m.RunFile.Seed, Episodes: merged.Episodes[i], Of: m.Of(),
			})
		}
		if err := errors.Join(web.MergeRecordings(dir, dirs, time.Now), twin.MergeRecordings(dir, dirs)); err != nil {
			return err
		}
		m := mergeManifests(manifests)
		m.Merged = result.Runs
		if err := m.Write(dir); err != nil {
			return err
		}
		return writeMerged(ctx, m, dirs, dir)
	})
	return result, err
}

// openMerged opens the runs and reports all errors at once.
func openMerged(dirs []string) (manifests []run.Manifest, readers []*journal.Reader, err error) {
	var errs []error
	for i, dir := range dirs {
		if full, err := filepath.Abs(dir); err == nil {
			dirs[i] = full
		}
		if slices.Contains(dirs[:i], dirs[i]) {
			errs = append(errs, fmt.Errorf("%s is given twice", dir))
			continue
		}
		m, reader, err := run.OpenFinished(dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		manifests, readers = append(manifests, m), append(readers, reader)
		if lines := run.Difference(shared(manifests[0].Experiment), shared(m.Experiment)); len(lines) > 0 {
			errs = append(errs, fmt.Errorf("%s holds another experiment than %s:\n  %s", dir, dirs[0], strings.Join(lines, "\n  ")))
		}
	}
	return manifests, readers, errors.Join(errs...)
}

// shared is the part of the experiment that merged runs must have in common.
func shared(experiment map[string]string) map[string]string {
	common := maps.Clone(experiment)
	for _, key := range partOf {
		delete(common, key)
	}
	return common
}

// mergeManifests is the run.json of the merged run: that of the first run, with the differing settings of all. The merged run
// cannot be resumed, as no run file describes it.
func mergeManifests(runs []run.Manifest) run.Manifest {
	m := runs[0]
	m.Experiment = maps.Clone(m.Experiment)
	for _, key := range partOf {
		var values []string
		for _, other := range runs {
			if value := run.QuoteEmpty(other.Experiment[key]); !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
		if len(values) > 1 {
			m.Experiment[key] = strings.Join(values, " and ")
			m.Tasks = 0 // the number of planned tasks is unknown
		}
	}
	for _, other := range runs {
		m.Samples = max(m.Samples, other.Samples)
	}
	m.RunFile.Samples = m.Samples
	m.RunFile.Out, m.RunFile.Budget.USD, m.RunFile.Budget.Tokens = "", 0, 0 // the merged runs keep their spending
	m.Fingerprint = run.Fingerprint(m.Experiment)
	return m
}

// writeMerged takes over images and writes the Parquet files and the report.
func writeMerged(ctx context.Context, m run.Manifest, from []string, dir string) error {
	reader, err := journal.OpenReader(run.JournalDir(dir))
	if err != nil {
		return err
	}
	defer reader.Close()
	if err := mergeImages(ctx, reader, from, dir); err != nil {
		return err
	}
	builder, err := run.BeginReport(dir, m, 0, 0)
	if err != nil {
		return err
	}
	merged, err := run.WriteFiles(ctx, reader, builder, dir)
	if err != nil {
		return err
	}
	return run.WriteReport(dir, merged)
}

// named adds to conflicts which runs they are between.
func named(err error, dirs []string) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if conflict, ok := errors.AsType[*journal.ErrConflict](err); ok {
			return fmt.Errorf("%w (%s and %s); export one of the two with --where, or merge the runs without the other", conflict, dirs[conflict.First], dirs[conflict.Second])
		}
		return err
	}
	var errs []error
	for _, err := range joined.Unwrap() {
		errs = append(errs, named(err, dirs))
	}
	return errors.Join(errs...)
}
