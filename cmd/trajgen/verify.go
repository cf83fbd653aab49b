package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"trajgen/outputs/export"
	"trajgen/pipeline/run/check"
)

func newVerify(std stdio) *cobra.Command {
	var dir, sharegpt string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify --run DIR | --sharegpt FILE",
		Short: "Check every byte and every row of a run directory",
		Long: `Reads everything in a run directory and changes nothing: run.json against the fingerprint of its experiment; every byte of
the journal (checksums, index files, identity and attempts of each episode); how many episodes of tasks times samples are
missing, by name; each byte of trajectories/ and tool_calls/ against what the journal gives, which is made again; report.json
against the journal's totals; all that was made against the digests in SHA256SUMS; the budget's ledger. It may be done while the
run goes on: it sees what was there when it began, and files that are made at the end are not looked at.

Prints a line for each difference (the first 100) and for what is worth knowing. Exit codes: 0 nothing differs and nothing is
missing, 1 otherwise. What is damaged in the journal is taken out by trajgen repair; files that are made of it are written
anew by trajgen run --resume.

--sharegpt reads a file of ShareGPT rows instead, of this program's or another's making: every conversation must parse back
into messages, calls and results, and the statistics must add up.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sharegpt != "" {
				return verifyShareGPT(std, sharegpt)
			}
			v, err := check.Verify(cmd.Context(), dir)
			if err != nil {
				return err
			}
			if asJSON {
				err = writeJSON(std.out, v)
			} else {
				_, err = fmt.Fprint(std.out, v.Text())
			}
			if err == nil && !v.OK {
				err = withCode(exitFailed, errQuiet)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "run", "", "run directory")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().StringVar(&sharegpt, "sharegpt", "", "file of ShareGPT rows")
	cmd.MarkFlagsOneRequired("run", "sharegpt")
	cmd.MarkFlagsMutuallyExclusive("run", "sharegpt")
	cmd.MarkFlagsMutuallyExclusive("json", "sharegpt")
	return cmd
}

// verifyShareGPT says what is wrong with a file, by line.
func verifyShareGPT(std stdio, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return usage(err)
	}
	defer file.Close()
	rows, err := export.CheckShareGPT(file)
	if err != nil {
		fmt.Fprintln(std.out, err)
		return withCode(exitFailed, errQuiet)
	}
	fmt.Fprintf(std.out, "%s: %d rows read back as they should\n", path, rows)
	return nil
}
