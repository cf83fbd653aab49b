package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run"
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
	group(cmd, h.search(std), h.browse(std), h.install(std), h.list(std), h.check(std), h.audit(std), h.remove(std), h.update(std),
		h.publish(std))
	for _, sub := range cmd.Commands() {
		sub.Flags().StringVar(&h.dir, "hub", "", "folder of the hub (default: in trajgen's state directory)")
	}
	return cmd
}

// asking adds the flags of commands that ask servers.
func (h *skillsHub) asking(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	flags.StringSliceVar(&h.private, "private", nil, "hosts outside of the public web that may be asked: names, addresses or ranges")
	flags.StringVar(&h.api, "github-api", "", "address of GitHub's API, which gets the token of GITHUB_TOKEN (default https://api.github.com)")
	return cmd
}

// fetching adds the flags of commands that fetch.
func (h *skillsHub) fetching(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&h.options.Trust, "trust", false, "trust the source: caution is then no reason to refuse")
	return h.judging(h.asking(cmd))
}

func (h *skillsHub) judging(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&h.options.Force, "force", false, "take a skill that is to be treated with caution, too; never a dangerous one")
	return cmd
}

func (h *skillsHub) open() (*hub.Hub, error) {
	g, err := guard.New(guard.Config{Private: h.private})
	if err != nil {
		return nil, usage(err)
	}
	return &hub.Hub{Dir: cmp.Or(h.dir, run.SkillsHub()), Now: time.Now, Sources: hub.Sources{
		Guard: g, GitHub: strings.TrimSuffix(h.api, "/"), Token: os.Getenv("GITHUB_TOKEN"),
	}}, nil
}

// each makes a command that does something with each of its arguments, and prints what became of it.
func (h *skillsHub) each(
	std stdio, cmd *cobra.Command, do func(context.Context, *hub.Hub, string) (string, error),
) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		opened, err := h.open()
		if err != nil {
			return err
		}
		if len(args) == 0 {
			if args, err = opened.Names(); err != nil {
				return err
			}
		}
		var errs []error
		for _, arg := range args {
			line, err := do(cmd.Context(), opened, arg)
			if err == nil {
				fmt.Fprintln(std.out, line)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	return cmd
}

func (h *skillsHub) install(std stdio) *cobra.Command {
	return h.fetching(h.each(std, &cobra.Command{
		Use: "install SOURCE...", Short: "Fetch skills, judge them and install them", Args: cobra.MinimumNArgs(1),
		Long:    "Installs a skill of each source:\n\n" + hub.SourcesHelp,
		Example: "  trajgen skills install ./my-skill\n  trajgen skills install github:anthropics/skills/skills/pdf",
	}, func(ctx context.Context, opened *hub.Hub, source string) (string, error) {
		name, e, err := opened.Install(ctx, source, h.options)
		return fmt.Sprintf("%s: installed; %s (trust: %s), %d files, %s", name, e.Verdict, e.Trust, len(e.Files), e.Digest), err
	}))
}

// offers makes a command that shows a page of what places offer.
func (h *skillsHub) offers(std stdio, cmd *cobra.Command) *cobra.Command {
	var from []string
	var asJSON bool
	page, size := 1, 20
	cmd.Long += "\n\n" + hub.PlacesHelp
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		opened, err := h.open()
		if err != nil {
			return err
		}
		if page < 1 || size < 1 {
			return usage(errors.New("--page and --page-size begin with 1"))
		}
		offers, err := opened.Offers(cmd.Context(), from, strings.Join(words, " "))
		pages := max(1, (len(offers)+size-1)/size)
		shown := offers[min((page-1)*size, len(offers)):min(page*size, len(offers))]
		if asJSON {
			return errors.Join(writeJSON(std.out, shown), err)
		}
		for _, o := range shown {
			fmt.Fprintf(std.out, "%-24s  %-10s %s\n    %s\n", o.Name, o.Trust, o.Source, o.Description)
		}
		fmt.Fprintf(std.out, "%d skills, page %d of %d\n", len(offers), page, pages)
		return err
	}
	cmd.Flags().StringSliceVar(&from, "from", nil, "places to ask")
	cmd.Flags().IntVar(&page, "page", page, "which page")
	cmd.Flags().IntVar(&size, "page-size", size, "skills on a page")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return h.asking(cmd)
}

func (h *skillsHub) search(std stdio) *cobra.Command {
	return h.offers(std, &cobra.Command{
		Use: "search WORD...", Short: "Find skills by what they are for", Args: cobra.MinimumNArgs(1),
		Long: "Lists the skills whose name and description have all the words, of these places:",
	})
}

func (h *skillsHub) browse(std stdio) *cobra.Command {
	return h.offers(std, &cobra.Command{
		Use: "browse", Short: "List the skills that there are, a page at a time", Args: cobra.NoArgs,
		Long: "Lists the skills of these places:",
	})
}

func (h *skillsHub) publish(std stdio) *cobra.Command {
	var to string
	cmd := h.each(std, &cobra.Command{
		Use: "publish FOLDER... --to PLACE", Short: "Judge skills of your own and give them to others", Args: cobra.MinimumNArgs(1),
		Long: "Judges a skill by the letter of the standard and by the guard, and puts it where others find it:\n\n" + hub.PublishHelp,
	}, func(ctx context.Context, opened *hub.Hub, folder string) (string, error) {
		at, err := opened.Sources.Publish(ctx, folder, to, h.options.Force)
		return folder + ": published at " + at, err
	})
	cmd.Flags().StringVar(&to, "to", "", "an archive, a folder or a repository")
	_ = cmd.MarkFlagRequired("to")
	return h.judging(h.asking(cmd))
}

// shown makes a command that prints lines about each installed skill, and fails as judge says.
func (h *skillsHub) shown(
	std stdio, cmd *cobra.Command, lines func(hub.State) string, judge func([]hub.State) error,
) *cobra.Command {
	var asJSON bool
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(*cobra.Command, []string) error {
		opened, err := h.open()
		if err != nil {
			return err
		}
		states, err := opened.States()
		if err != nil {
			return err
		}
		if asJSON {
			return errors.Join(writeJSON(std.out, states), hub.Usable(states))
		}
		for _, s := range states {
			fmt.Fprint(std.out, lines(s))
		}
		return judge(states)
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func (h *skillsHub) list(std stdio) *cobra.Command {
	return h.shown(std, &cobra.Command{Use: "list", Short: "List the installed skills"}, func(s hub.State) string {
		return fmt.Sprintf("%-24s  %-10s %-10s %s\n", s.Name, s.Verdict, s.Trust, s.Source)
	}, func(states []hub.State) error {
		if len(states) == 0 {
			fmt.Fprintln(std.err, "no skill is installed: trajgen skills install SOURCE installs one")
		}
		return nil
	})
}

func (h *skillsHub) check(std stdio) *cobra.Command {
	return h.shown(std, &cobra.Command{
		Use: "check", Short: "Compare the installed skills with the lock",
		Long: "Says which installed skills runs do not use: their files are not those of the lock. The exit code is 1 then.",
	}, func(s hub.State) string {
		if s.Problem == "" {
			return ""
		}
		return s.Name + ": " + s.Problem + "\n"
	}, hub.Usable)
}

func (h *skillsHub) audit(std stdio) *cobra.Command {
	return h.shown(std, &cobra.Command{
		Use: "audit", Short: "Let the guard judge the installed skills again",
		Long: "Judges the installed skills by the guard of this version, and shows what it finds. The exit code is 1 if one is dangerous.",
	}, func(s hub.State) string {
		text := s.Name + ": " + s.Report.Verdict + "\n"
		for _, f := range s.Report.Findings {
			text += "  " + f.String() + "\n"
		}
		return text
	}, hub.Harmless)
}

func (h *skillsHub) remove(std stdio) *cobra.Command {
	return h.each(std, &cobra.Command{
		Use: "remove NAME...", Short: "Remove installed skills", Args: cobra.MinimumNArgs(1),
	}, func(_ context.Context, opened *hub.Hub, name string) (string, error) {
		return name + ": removed", opened.Remove(name)
	})
}

func (h *skillsHub) update(std stdio) *cobra.Command {
	return h.fetching(h.each(std, &cobra.Command{
		Use: "update [NAME...]", Short: "Fetch installed skills again, all of them without a name",
	}, func(ctx context.Context, opened *hub.Hub, name string) (string, error) {
		changed, err := opened.Update(ctx, name, h.options)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		return name + ": " + map[bool]string{true: "updated", false: "unchanged"}[changed], nil
	}))
}
