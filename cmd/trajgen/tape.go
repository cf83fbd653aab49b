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
	}, printTape)
}

func printTape(w io.Writer, info check.TapeInfo) error {
	if r := info.Recording; r != nil {
		fmt.Fprintf(w, "%d exchanges of %d requests, %d without an answer; %.1f MB, %.1f MB on the disk\ndigest: %s\n",
			r.Exchanges, r.Requests, r.Failed, float64(r.Bytes)/1e6, float64(r.Disk)/1e6, r.Digest)
		if info.Damage != "" {
			fmt.Fprintf(w, "damaged: %s\n", info.Damage)
		}
		fmt.Fprintf(w, "\n%9s %8s %6s %9s  %s\n", "exchanges", "requests", "failed", "kB", "host")
		for _, h := range r.Hosts {
			fmt.Fprintf(w, "%9d %8d %6d %9.1f  %s\n", h.Exchanges, h.Requests, h.Failed, float64(h.Bytes)/1e3, h.Host)
		}
		return nil
	}
	fmt.Fprintf(w, "answered from the recording of %s\n\n%7s %7s %7s  %s\n", info.Replayed, "hits", "loose", "misses", "host or provider")
	for _, c := range info.Coverage {
		fmt.Fprintf(w, "%7d %7d %7d  %s\n", c.Hits, c.Loose, c.Misses, c.Of)
	}
	return nil
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
