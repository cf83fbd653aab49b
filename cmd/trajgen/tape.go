package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"trajgen/outputs/log/disk"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/check"
	"trajgen/tools/web/tape"
)

func newTape(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use: "tape", Short: "Look into a run's recording of the web, and write it for other programs",
		Long: `A run with --web record keeps what came from the web in its directory. These commands say what such a recording has and how
far it answered a run that replayed one, and write it as an archive that other programs read.`,
	}
	return group(cmd, newTapeInfo(std), newTapeExport(std))
}

func newTapeInfo(std stdio) *cobra.Command {
	return showing(std, &cobra.Command{
		Use: "info RUN", Short: "Print what a run recorded of the web by host, or what a recording answered in it",
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, args []string) (check.TapeInfo, error) {
		return check.Taped(cmd.Context(), args[0])
	}, func(w io.Writer, info check.TapeInfo) error {
		_, err := io.WriteString(w, info.Text())
		return err
	})
}

func newTapeExport(std stdio) *cobra.Command {
	formats := strings.Join(slices.Sorted(maps.Keys(tape.Archives)), ", ")
	var to, out string
	cmd := &cobra.Command{
		Use: "export RUN --to FORMAT --out FILE", Short: "Write a run's recording of the web as WARC 1.1 or HAR 1.2",
		Long: `Writes each recorded exchange: as a WARC 1.1 file (name it .warc.gz), whose records are packed one by one, or as an HTTP
Archive 1.2, which browsers show. Keys are not in it, as they were never recorded; cookies that sites set are, where a browser got
them. - writes to standard output.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			write, known := tape.Archives[to]
			if !known || out == "" {
				return usage(fmt.Errorf("tape export needs --to FORMAT (one of %s) and --out FILE", formats))
			}
			recording, err := check.Recording(args[0])
			if err != nil {
				return err
			}
			defer recording.Close()
			if out == "-" {
				return write(recording, std.out, "trajgen "+run.Version())
			}
			return disk.WriteFile(disk.Real{}, out, func(file disk.File) error {
				return write(recording, io.NewOffsetWriter(file, 0), "trajgen "+run.Version())
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "format: "+formats)
	cmd.Flags().StringVar(&out, "out", "", "file to write")
	return cmd
}
