package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run/check"
	"trajgen/tools/twin"
)

func newTwin(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use: "twin", Short: "Say what a recording of tools has, and which calls it can answer",
		Long: `A run with --twin record keeps what tools answered from outside of the sandbox: the web, plugins. These commands say what
such a recording has and how far it answers further runs.`,
	}
	return group(cmd, newTwinInfo(std), newTwinReport(std))
}

// twinOf opens the recording of tools that a run directory has.
func twinOf(dir string) (*twin.Tape, error) {
	tape, err := twin.OpenTape(twin.RecordingDir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		err = usage(fmt.Errorf("%s has no recording of tools: --twin record makes one", dir))
	}
	return tape, err
}

func newTwinInfo(std stdio) *cobra.Command {
	var damage error
	return showing(std, &cobra.Command{
		Use: "info RUN", Short: "Print what a run recorded of its tools", Args: cobra.ExactArgs(1),
	}, func(_ *cobra.Command, args []string) (twin.Info, error) {
		tape, err := twinOf(args[0])
		if err != nil {
			return twin.Info{}, err
		}
		defer tape.Close()
		damage = tape.Damage()
		return tape.Info()
	}, func(w io.Writer, info twin.Info) error {
		fmt.Fprintf(w, "%d calls of %d episodes; %.1f MB on the disk\ndigest: %s\n",
			info.Calls, info.Episodes, float64(info.Disk)/1e6, info.Digest)
		if len(info.Answers) > 0 {
			fmt.Fprintf(w, "answers for: %s\n", strings.Join(info.Answers, ", "))
		}
		if damage != nil {
			fmt.Fprintf(w, "damaged: %v\n", damage)
		}
		fmt.Fprintf(w, "\n%7s  %s\n", "calls", "tool")
		for _, tool := range slices.Sorted(maps.Keys(info.Tools)) {
			fmt.Fprintf(w, "%7d  %s\n", info.Tools[tool], tool)
		}
		return nil
	})
}

// twinReport is what twin report prints.
type twinReport struct {
	Run       string          `json:"run,omitempty"`
	Recording string          `json:"recording,omitempty"`
	Tools     []twin.Coverage `json:"tools"`
}

func newTwinReport(std stdio) *cobra.Command {
	var replayed, recording, against string
	cmd := &cobra.Command{
		Use:   "report --run RUN | --recording RUN [--against RUN]",
		Short: "Print the share of calls that a recording can answer, by tool and kind of miss",
		Long: `With --run: which calls of a run that replayed a recording it answered. With --recording and --against: which calls of a run
it could answer, of a run that was played without it. With --recording alone: which of its own calls it could answer from other
episodes than the one that made them, which is what it is worth for further ones.

Kinds of misses: new_tool, where the recording has none of the tool; other_digest, where the tool had another schema or
another plugin was behind it; new_arguments; new_history, where the same call came after other ones that may have changed
something.`,
		Example: `  trajgen twin report --run runs/replayed
  trajgen twin report --recording runs/recorded --against runs/live --json`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&replayed, "run", "", "a run that replayed a recording")
	cmd.Flags().StringVar(&recording, "recording", "", "a run that was recorded")
	cmd.Flags().StringVar(&against, "against", "", "a run whose calls the recording is asked for")
	return showing(std, cmd, func(cmd *cobra.Command, _ []string) (r twinReport, err error) {
		if (replayed == "") == (recording == "") || against != "" && recording == "" {
			return r, usage(errors.New("twin report needs --run RUN, or --recording RUN that may have --against RUN"))
		}
		tally, err := tallied(cmd.Context(), replayed, recording, against)
		return twinReport{Run: replayed + against, Recording: recording, Tools: tally.List()}, err
	}, func(w io.Writer, r twinReport) error { return twin.PrintCoverage(w, r.Tools) })
}

func tallied(ctx context.Context, replayed, recording, against string) (twin.Tally, error) {
	switch {
	case replayed != "":
		return check.Twinned(ctx, replayed)
	case against != "":
		return check.TwinAgainst(ctx, recording, against)
	}
	tape, err := twinOf(recording)
	if err != nil {
		return nil, err
	}
	defer tape.Close()
	return tape.Others()
}
