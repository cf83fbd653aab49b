package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"trajgen/outputs"
)

func newExport(std stdio) *cobra.Command {
	var dir, format, out string
	cmd := &cobra.Command{
		Use:   "export --run DIR --to FORMAT --out PATH",
		Short: "Write a run's episodes in another format",
		Long: `Writes what the journal holds, in dataset order. It may be done at any time and again: the same journal gives the same
bytes. Formats: ` + strings.Join(outputs.SinkNames(), ", ") + ".",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			_, reader, err := openFinished(dir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, reader.Close()) }()
			sink, err := outputs.OpenSink(format, out, outputs.SinkOptions{})
			if err != nil {
				return usage(err)
			}
			files, err := outputs.Export(cmd.Context(), reader, sink)
			if err != nil {
				return err
			}
			for _, file := range files {
				fmt.Fprintln(std.out, file.Path)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&dir, "run", "", "run directory")
	flags.StringVar(&format, "to", "", "format: "+strings.Join(outputs.SinkNames(), ", "))
	flags.StringVar(&out, "out", "", "file or directory to write")
	for _, name := range []string{"run", "to", "out"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}
