package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"trajgen/outputs/export"
	"trajgen/outputs/journal"
	"trajgen/outputs/report"
)

// WriteFiles writes the Parquet files and adds up the report in one reading of the journal. It first removes the digests of
// earlier files, which do not match the new ones.
func WriteFiles(ctx context.Context, reader *journal.Reader, builder *report.Builder, dir string) (*report.Report, error) {
	if err := os.Remove(filepath.Join(dir, SumsName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	episodes := export.Seen(export.Ahead(reader), builder.Add)
	if _, err := export.RunFiles(ctx, episodes, dir); err != nil {
		return nil, err
	}
	return builder.Finish(), nil
}

// BeginReport is a report without episodes. wall is the wall time of the run that has just played this many; 0 if unknown.
func BeginReport(dir string, m Manifest, wall time.Duration, played int) (*report.Builder, error) {
	if played == 0 {
		wall = 0 // a rate needs episodes
	}
	spent, err := Spending(dir, m)
	if err != nil {
		return nil, err
	}
	return report.New(report.Meta{
		Origin: report.Origin{
			Name: m.RunFile.Name, Dataset: m.RunFile.Dataset.Path.String(), Digest: m.Experiment["dataset"], Distribution: m.RunFile.Tools.Distribution,
			Model: cmp.Or(m.RunFile.Model.Name, strings.Join(m.RunFile.Sweep.names(), ", ")),
			Seed:  m.Experiment["seed"], Fingerprint: m.Fingerprint, Version: m.Version,
		},
		TokenIDs: m.RunFile.Model.TokenServer() != "", Planned: m.Tasks * m.Samples, Wall: wall, Played: played, Prices: m.RunFile.Budget.Prices, Budget: spent,
	}), nil
}

// BuildReport adds up the episodes for which a condition holds; empty is all.
func BuildReport(ctx context.Context, reader *journal.Reader, dir string, m Manifest, where string) (*report.Report, error) {
	source, err := export.Choose(export.Ahead(reader), export.Choice{Where: where})
	if err != nil {
		return nil, AsMistake(err)
	}
	if where != "" {
		m.Tasks = 0 // how many are to be chosen is not known
	}
	builder, err := BeginReport(dir, m, 0, 0)
	if err != nil {
		return nil, err
	}
	for ep, err := range source.Episodes(ctx) {
		if err != nil {
			return nil, err
		}
		builder.Add(ep)
	}
	report := builder.Finish()
	report.Where = where
	return report, nil
}

// WriteReport puts report.json and report.md into a run directory, and the digests of all files that Finish makes.
func WriteReport(dir string, report *report.Report) error {
	var data, page bytes.Buffer
	if err := errors.Join(report.WriteJSON(&data), report.WriteMarkdown(&page)); err != nil {
		return err
	}
	err := errors.Join(writeFile(filepath.Join(dir, "report.json"), data.Bytes()), writeFile(filepath.Join(dir, "report.md"), page.Bytes()))
	if err != nil {
		return err
	}
	return WriteSums(dir)
}
