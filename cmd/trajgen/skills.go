package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run"
	"trajgen/tools/skills"
	"trajgen/tools/skills/hub"
	"trajgen/tools/web/guard"
)

// skillsHub are the flags that all commands about installed skills have.
type skillsHub struct {
	dir, api string
	private  []string
	options  hub.Options
}

func newSkills(std stdio) *cobra.Command {
	h := &skillsHub{}
	cmd := &cobra.Command{
		Use: "skills", Short: "Install and judge skills, which are instructions for agents",
		Long: `Keeps skills, folders with a SKILL.md, in a hub, for runs that say skills: {dirs: [hub]}. What is fetched lies in quarantine
until the guard has looked through it; lock.json says what was installed, with its digest and verdict, and audit.log what was
done. A run uses no skill of a hub whose files are not those of the lock. The guard finds what others have tried, and no more
than that: the sandbox is what protects you.`,
	}
	group(cmd, h.install(std), h.list(std), h.check(std), h.audit(std), h.remove(std), h.update(std))
	for _, sub := range cmd.Commands() {
		sub.Flags().StringVar(&h.dir, "hub", "", "folder of the hub (default: in trajgen's state directory)")
	}
	return cmd
}

// fetching adds the flags of commands that fetch.
func (h *skillsHub) fetching(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	flags.BoolVar(&h.options.Force, "force", false, "install a skill that is to be treated with caution, too; never a dangerous one")
	flags.BoolVar(&h.options.Trust, "trust", false, "trust the source: caution is then no reason to refuse")
	flags.StringSliceVar(&h.private, "private", nil, "hosts outside of the public web that may be asked: names, addresses or ranges")
	flags.StringVar(&h.api, "github-api", "", "address of GitHub's API (default https://api.github.com)")
	return cmd
}

func (h *skillsHub) open() (*hub.Hub, error) {
	g, err := guard.New(guard.Config{Private: h.private})
	if err != nil {
		return nil, usage(err)
	}
	opened := &hub.Hub{Dir: h.dir, Now: time.Now, Sources: hub.Sources{Guard: g, GitHub: strings.TrimSuffix(h.api, "/")}}
	if opened.Dir == "" {
		opened.Dir = run.SkillsHub()
	}
	return opened, nil
}

func (h *skillsHub) install(std stdio) *cobra.Command {
	return h.fetching(&cobra.Command{
		Use: "install SOURCE...", Short: "Fetch skills, judge them and install them", Args: cobra.MinimumNArgs(1),
		Long: `Installs a skill of each source:

  ./folder, ./skill.zip, ./skill.tar.gz         on this machine
  https://example.org/skill.zip, .../SKILL.md   an archive, or a skill that is one file
  git+https://example.org/repo.git@tag          a repository
  github:owner/repo/folder@tag                  a folder of one on GitHub
  well-known:https://example.org                what a site offers below /.well-known/skills

Where there is more than one skill, #path or #name behind it says which.`,
		Example: "  trajgen skills install ./my-skill\n  trajgen skills install github:anthropics/skills/skills/pdf",
		RunE: func(cmd *cobra.Command, sources []string) error {
			opened, err := h.open()
			if err != nil {
				return err
			}
			for _, source := range sources {
				name, e, err := opened.Install(cmd.Context(), source, h.options)
				if err != nil {
					return err
				}
				fmt.Fprintf(std.out, "%s: installed; %s (trust: %s), %d files, %s\n", name, e.Verdict, e.Trust, len(e.Files), e.Digest)
			}
			return nil
		},
	})
}

// shown makes a command that shows the state of the hub.
func (h *skillsHub) shown(std stdio, cmd *cobra.Command, show func([]hub.State) error) *cobra.Command {
	var asJSON bool
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(*cobra.Command, []string) error {
		opened, err := h.open()
		if err != nil {
			return err
		}
		states, err := opened.States()
		if err == nil && asJSON {
			err = writeJSON(std.out, states)
		}
		if err != nil || asJSON {
			return errors.Join(err, problems(states))
		}
		return show(states)
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// problems fails where a run would not use an installed skill.
func problems(states []hub.State) error {
	bad := 0
	for _, s := range states {
		if s.Problem != "" {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d skills cannot be used", bad, len(states))
	}
	return nil
}

func (h *skillsHub) list(std stdio) *cobra.Command {
	return h.shown(std, &cobra.Command{Use: "list", Short: "List the installed skills"}, func(states []hub.State) error {
		for _, s := range states {
			fmt.Fprintf(std.out, "%-24s  %-10s %-10s %s\n", s.Name, s.Verdict, s.Trust, s.Source)
		}
		return nil
	})
}

func (h *skillsHub) check(std stdio) *cobra.Command {
	return h.shown(std, &cobra.Command{
		Use: "check", Short: "Compare the installed skills with the lock", Long: "Says which installed skills runs do not use: their files are not those of the lock. The exit code is 1 then.",
	}, func(states []hub.State) error {
		for _, s := range states {
			if s.Problem != "" {
				fmt.Fprintf(std.out, "%s: %s\n", s.Name, s.Problem)
			}
		}
		return problems(states)
	})
}

func (h *skillsHub) audit(std stdio) *cobra.Command {
	return h.shown(std, &cobra.Command{
		Use: "audit", Short: "Let the guard judge the installed skills again", Long: "Judges the installed skills by the guard of this version, and shows what it finds. The exit code is 1 if one is dangerous.",
	}, func(states []hub.State) error {
		for _, s := range states {
			fmt.Fprintf(std.out, "%s: %s\n", s.Name, s.Report.Verdict)
			for _, f := range s.Report.Findings {
				fmt.Fprintf(std.out, "  %s\n", f)
			}
		}
		if slices.ContainsFunc(states, func(s hub.State) bool { return s.Report.Verdict == skills.Dangerous }) {
			return errors.New("an installed skill is dangerous: remove it")
		}
		return nil
	})
}

func (h *skillsHub) remove(std stdio) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME...", Short: "Remove installed skills", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, names []string) error {
			opened, err := h.open()
			if err != nil {
				return err
			}
			for _, name := range names {
				if err := opened.Remove(name); err != nil {
					return err
				}
				fmt.Fprintf(std.out, "%s: removed\n", name)
			}
			return nil
		},
	}
}

func (h *skillsHub) update(std stdio) *cobra.Command {
	return h.fetching(&cobra.Command{
		Use: "update [NAME...]", Short: "Fetch installed skills again, all of them without a name",
		RunE: func(cmd *cobra.Command, names []string) error {
			opened, err := h.open()
			if err != nil {
				return err
			}
			if len(names) == 0 {
				states, err := opened.States()
				if err != nil {
					return err
				}
				for _, s := range states {
					if s.Source != "" {
						names = append(names, s.Name)
					}
				}
			}
			var errs []error
			for _, name := range names {
				changed, err := opened.Update(cmd.Context(), name, h.options)
				if err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", name, err))
					continue
				}
				fmt.Fprintf(std.out, "%s: %s\n", name, map[bool]string{true: "updated", false: "unchanged"}[changed])
			}
			return errors.Join(errs...)
		},
	})
}
