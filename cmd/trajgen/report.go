package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trajgen/outputs/export"
	"trajgen/outputs/journal"
	"trajgen/outputs/report"
)

func newReport(std stdio) *cobra.Command {
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "report --run DIR",
		Short: "Outcomes, rewards, tools and costs of a run",
		Long:  "Reads the journal of a run, also of one that is still going on, and prints the report.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			m, reader, err := openFinished(dir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, reader.Close()) }()
			report, err := buildReport(cmd.Context(), reader, dir, m)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, report)
			}
			width, color := paper(std.out)
			return report.WriteTerminal(std.out, width, color)
		},
	}
	cmd.Flags().StringVar(&dir, "run", "", "run directory")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	_ = cmd.MarkFlagRequired("run")
	return cmd
}

// openFinished opens a run directory for reading.
func openFinished(dir string) (manifest, *journal.Reader, error) {
	m, err := readManifest(dir)
	if err != nil {
		return m, nil, err
	}
	reader, err := journal.OpenReader(journalDir(dir))
	return m, reader, err
}

// beginReport is a report without episodes. wall is how long the run took that has just played so many; 0 when that is
// not known.
func beginReport(dir string, m manifest, wall time.Duration, played int) (*report.Builder, error) {
	if played == 0 {
		wall = 0 // the time of a run that played nothing is no rate
	}
	spent, err := spending(dir, m)
	if err != nil {
		return nil, err
	}
	return report.New(report.Meta{
		Name: m.RunFile.Name, Dataset: m.RunFile.Dataset.String(), Distribution: m.RunFile.Distribution, Model: cmp.Or(m.RunFile.Model, strings.Join(m.RunFile.Sweep.names(), ", ")),
		Digest: m.Experiment["dataset"], Seed: m.Experiment["seed"], Fingerprint: m.Fingerprint, Version: m.Version,
		TokenIDs: m.RunFile.tokenServer() != "", Planned: m.Tasks * m.Samples, Wall: wall, Played: played, Prices: m.RunFile.Prices, Budget: spent,
	}), nil
}

// buildReport reads every episode once.
func buildReport(ctx context.Context, reader *journal.Reader, dir string, m manifest) (*report.Report, error) {
	builder, err := beginReport(dir, m, 0, 0)
	if err != nil {
		return nil, err
	}
	for ep, err := range export.Ahead(reader, runtime.GOMAXPROCS(0)).Episodes(ctx) {
		if err != nil {
			return nil, err
		}
		builder.Add(ep)
	}
	return builder.Finish(), nil
}

// writeReport puts report.json and report.md into a run directory, and the digests of all that was made there.
func writeReport(dir string, report *report.Report) error {
	var data, page bytes.Buffer
	if err := errors.Join(report.WriteJSON(&data), report.WriteMarkdown(&page)); err != nil {
		return err
	}
	err := errors.Join(writeFile(filepath.Join(dir, "report.json"), data.Bytes()), writeFile(filepath.Join(dir, "report.md"), page.Bytes()))
	if err != nil {
		return err
	}
	return writeSums(dir)
}
