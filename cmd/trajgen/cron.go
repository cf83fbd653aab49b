package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run"
	"trajgen/tools/cron"
)

func newCron(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cron", Short: "Run commands and prompts at set times",
		Long: `Keeps jobs and runs them when they are due: a command, such as a nightly evaluation, or a prompt, which is played as a task
with a run file. Jobs run while "trajgen cron daemon" does. A time that has passed meanwhile is run late, if it is not later than
the job's --grace, and several of them once. Each time is begun once, however the daemon ends.

Schedules: ` + cron.Forms + `.
Schedules that name hours go by the clock of their time zone: a time that daylight saving leaves out comes when the clock has been
put forward, and one that comes twice counts the first time.`,
		Example: `  trajgen cron add core --schedule '0 2 * * *' --timezone Europe/Berlin -- trajgen run -f core.yaml --out nights/core
  trajgen cron add digest --schedule 'every 6h' --prompt 'Sum up the new issues.' -f digest.yaml
  trajgen cron list
  trajgen cron daemon`,
	}
	var store string
	cmd.PersistentFlags().StringVar(&store, "store", "",
		"directory of the jobs and of what they write (default trajgen/cron in $XDG_STATE_HOME or ~/.local/state)")
	open := func() (*cron.Store, error) {
		dir, err := run.JobsDir(store)
		if err != nil {
			return nil, usage(err)
		}
		return cron.OpenStore(dir)
	}
	return group(cmd, newCronAdd(std, open), newCronList(std, open), newCronRun(std, open),
		newCronChange(std, open, "pause", "Keep a job from running until it is resumed", (*cron.Table).Pause),
		newCronChange(std, open, "resume", "Let a paused job run again", func(t *cron.Table, ref string) (cron.Job, error) {
			return t.Resume(ref, time.Now())
		}),
		newCronChange(std, open, "remove", "Forget a job", (*cron.Table).Remove),
		newCronDaemon(std, open))
}

// opens opens the store that the flags name.
type opens func() (*cron.Store, error)

func newCronAdd(std stdio, open opens) *cobra.Command {
	var j cron.Job
	cmd := &cobra.Command{
		Use:   "add NAME --schedule WHEN (-- COMMAND... | --prompt TEXT -f run.yaml)",
		Short: "Add a job",
		Long: `Adds a job: a command with its arguments, or a prompt, which is played as a task with a run file. It runs in the present
directory. A command finds in ` + cron.Variable + ` the job's name and in ` + cron.TickVariable + ` the time for which it runs, which stays the same however
late it begins. What a job writes is kept until its next run; --deliver hands it on.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if os.Getenv(cron.Variable) != "" {
				return usage(errors.New("a job adds no jobs: this command was started by the job " + os.Getenv(cron.Variable)))
			}
			before := cmd.ArgsLenAtDash()
			if before < 0 {
				before = len(args)
			}
			if before != 1 {
				return usage(errors.New("want one NAME, and the command after --"))
			}
			j.Name, j.Command = args[0], args[1:]
			if err := run.CompleteJob(&j); err != nil {
				return usage(err)
			}
			store, err := open()
			if err != nil {
				return err
			}
			return store.Update(func(t *cron.Table) error {
				if _, err := t.Find(j.Name); !errors.Is(err, cron.ErrUnknown) {
					return usage(fmt.Errorf("there is a job %s: remove it first, or choose another name", j.Name))
				}
				made, err := t.Add(j, time.Now())
				if err == nil {
					fmt.Fprintf(std.out, "%s runs at %s\n", made.Name, made.Next.Format(time.RFC3339))
				}
				return usage(err)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&j.Schedule, "schedule", "", "when it runs: "+cron.Forms)
	flags.StringVar(&j.Zone, "timezone", "Local", "time zone of the schedule, such as Europe/Berlin (default: this machine's)")
	flags.IntVar(&j.Repeat, "repeat", 0, "how often it runs; 0 has no end")
	flags.StringVar(&j.Grace, "grace", "", "how late it may begin, such as 12h (default: half the time to its next run, from 2m to 2h)")
	flags.StringVar(&j.Timeout, "timeout", "", "time after which it is ended with all that it started (default: none)")
	flags.StringVar(&j.Deliver, "deliver", "", "where its output goes: file:PATH; command:LINE, which has it on its standard input; or a channel such as telegram:ID "+
		"that the run file of -f may send messages to (default: it is kept in the store)")
	flags.StringVar(&j.Prompt, "prompt", "", "what an agent is to do")
	flags.StringVarP(&j.RunFile, "file", "f", "", "run file that the prompt is played with, or whose messages: --deliver uses")
	flags.StringSliceVar(&j.Toolsets, "toolsets", nil, "toolsets of the prompt's episode (default: as in the run file)")
	flags.StringSliceVar(&j.ContextFrom, "context-from", nil, "jobs whose last output the prompt begins with")
	_ = cmd.MarkFlagRequired("schedule")
	return cmd
}

func newCronList(std stdio, open opens) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the jobs", Args: cobra.NoArgs}
	return showing(std, cmd, func(*cobra.Command, []string) ([]cron.Job, error) {
		store, err := open()
		if err != nil {
			return nil, err
		}
		t, err := store.Read()
		if err != nil {
			return nil, err
		}
		return append([]cron.Job{}, t.Jobs...), nil
	}, func(w io.Writer, jobs []cron.Job) error {
		if len(jobs) == 0 {
			fmt.Fprintln(std.err, "no jobs yet: trajgen cron add NAME --schedule WHEN -- COMMAND adds one")
		}
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, j := range jobs {
			next, last := j.Times()
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", j.Name, j.Schedule, next, last, cmp.Or(j.Prompt, strings.Join(j.Command, " ")))
		}
		return table.Flush()
	})
}

// newCronChange is a command that changes a job.
func newCronChange(std stdio, open opens, name, short string, change func(t *cron.Table, ref string) (cron.Job, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " NAME", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			store, err := open()
			if err != nil {
				return err
			}
			return store.Update(func(t *cron.Table) error {
				j, err := change(t, args[0])
				if err == nil && j.Next != nil && name != "remove" {
					fmt.Fprintf(std.out, "%s runs at %s\n", j.Name, j.Next.Format(time.RFC3339))
				}
				return usage(err)
			})
		},
	}
}

func newCronRun(std stdio, open opens) *cobra.Command {
	return &cobra.Command{
		Use: "run NAME", Short: "Run a job now, and print what it writes", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := open()
			if err != nil {
				return err
			}
			t, err := store.Read()
			if err != nil {
				return err
			}
			j, err := t.Find(args[0])
			if err != nil {
				return usage(err)
			}
			asked, runner, stop := cronProcesses(cmd.Context(), store)
			defer stop()
			if runner.Busy(j.ID) {
				return withCode(exitLocked, fmt.Errorf("job %s is running", j.Name))
			}
			ended := runner.Run(asked, cron.Tick{Job: j, At: time.Now()})
			if err := store.Update(func(t *cron.Table) error { t.End(j.ID, ended); return nil }); err != nil {
				return err
			}
			output, err := os.Open(store.Output(j.ID))
			if err == nil {
				_, err = io.Copy(std.out, output)
				err = errors.Join(err, output.Close())
			}
			if ended.Status != cron.OK {
				return fmt.Errorf("job %s: %s (exit code %d) %s", j.Name, ended.Status, ended.Exit, ended.Error)
			}
			return err
		},
	}
}
