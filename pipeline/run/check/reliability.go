package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"trajgen/outputs/journal"
	"trajgen/outputs/log/disk"
	"trajgen/outputs/reliability"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/tools/faults"
)

// Reliability says what agents of a run did and lost when tools failed, also compared with another run unless versus is "". Unless out
// is "", it writes the report as files into that folder, too.
func Reliability(ctx context.Context, dir, versus, out string) (*reliability.Report, error) {
	r, err := reliabilityOf(ctx, dir)
	if err != nil {
		return nil, err
	}
	if versus != "" {
		other, err := reliabilityOf(ctx, versus)
		if err != nil {
			return nil, err
		}
		r.Compare(other)
	}
	if out != "" {
		err = writeReliability(r, out)
	}
	return r, err
}

func reliabilityOf(ctx context.Context, dir string) (_ *reliability.Report, err error) {
	file, err := run.Resumed(dir) // its paths as they are from here
	if err != nil {
		return nil, err
	}
	m, reader, err := run.OpenFinished(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	faults := file.Faults
	builder := reliability.Builder{
		Prices: m.RunFile.Budget.Prices, Asked: m.RunFile.Model.Name, Limits: reliability.LimitsOf(faults.Limits), Positions: faults.Position == "ordinal",
	}
	readers := []*journal.Reader{reader}
	if faults.Clean != "" {
		clean, err := journal.OpenReader(run.JournalDir(faults.Clean))
		if err != nil {
			return nil, fmt.Errorf("the clean episodes of %s: %w", dir, err)
		}
		defer func() { err = errors.Join(err, clean.Close()) }()
		readers = append(readers, clean)
	}
	for _, reader := range readers {
		for ep, err := range reader.Episodes(ctx) {
			if err != nil {
				return nil, err
			}
			if reader != readers[0] && ep.Twin != nil {
				continue // those of the other run are no twins of this one
			}
			if err := builder.Add(ep); err != nil {
				return nil, err
			}
		}
	}
	r := builder.Finish()
	return r, r.Tell(func(id string) (*episode.Episode, error) {
		if _, ok := readers[0].LastEntry(id); !ok {
			return readers[len(readers)-1].Last(id)
		}
		return readers[0].Last(id)
	})
}

// PlanTwins says which twins a run would have with settings of faults, and plays nothing. w gets the warnings.
func PlanTwins(ctx context.Context, dir string, settings faults.Settings, w io.Writer) (_ *run.TwinPlan, err error) {
	if !settings.Twins {
		return nil, run.AsMistake(errors.New("a plan is of twins: say twins: true in the file of faults"))
	}
	file, err := run.Resumed(dir)
	if err != nil {
		return nil, err
	}
	m, reader, err := run.OpenFinished(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	if file, err = Provable(file); err != nil {
		return nil, run.AsMistake(err)
	}
	file.Faults = settings
	exp, err := file.Open(ctx, w, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, exp.Close()) }()
	exp.File.Model.Name = m.RunFile.Model.Name // of the prices
	return exp.PlanTwins(ctx, reader)
}

// writeReliability writes report.md, report.json and report.html.
func writeReliability(r *reliability.Report, out string) error {
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer) error{
		"report.md": r.WriteMarkdown, "report.html": r.WriteHTML, "report.json": func(w io.Writer) error {
			encoder := json.NewEncoder(w)
			encoder.SetIndent("", "  ")
			return encoder.Encode(r)
		},
	} {
		var page bytes.Buffer
		if err := write(&page); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := disk.WriteFile(disk.Real{}, filepath.Join(out, name), disk.Bytes(page.Bytes())); err != nil {
			return err
		}
	}
	return nil
}
