package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"trajgen/distributions"
	"trajgen/pipeline/run"
)

// ErrGivenUp says that the person at the terminal ended the dialogue.
var ErrGivenUp = errors.New("given up; no file was changed")

// Terminal asks a person.
type Terminal struct {
	in     *os.File
	out    io.Writer
	reader *term.Terminal
}

// NewTerminal takes the ends of a terminal, which is in its usual mode except while a question waits.
func NewTerminal(in *os.File, out io.Writer) *Terminal {
	t := &Terminal{in: in, out: out, reader: term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, out}, "")}
	if width, height, err := term.GetSize(int(in.Fd())); err == nil {
		_ = t.reader.SetSize(width, height) // it repaints nothing, as nothing is painted
	}
	return t
}

// ask reads an answer. In raw mode Ctrl-C is a character, which the reader takes for the end as it does Ctrl-D: a signal would leave
// the terminal without echo.
func (t *Terminal) ask(read func(string) (string, error), format string, args ...any) (string, error) {
	before, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(t.in.Fd()), before)
	answer, err := read(fmt.Sprintf(format, args...))
	if errors.Is(err, io.EOF) {
		fmt.Fprint(t.out, "\r\n")
		return "", ErrGivenUp
	}
	return strings.TrimSpace(answer), err
}

func (t *Terminal) line(format string, args ...any) (string, error) {
	return t.ask(func(prompt string) (string, error) {
		t.reader.SetPrompt(prompt)
		return t.reader.ReadLine()
	}, format, args...)
}

// secret reads without echo.
func (t *Terminal) secret(format string, args ...any) (string, error) {
	return t.ask(t.reader.ReadPassword, format, args...)
}

func (t *Terminal) yes(usual bool, format string, args ...any) (bool, error) {
	for {
		answer, err := t.line(format+map[bool]string{true: " [Y/n] ", false: " [y/N] "}[usual], args...)
		switch strings.ToLower(answer) {
		case "":
			return usual, err
		case "y", "yes":
			return true, err
		case "n", "no":
			return false, err
		}
	}
}

// Ask fills the draft with a person's answers, tries the keys, and writes the files if the person wants that.
func (d *Draft) Ask(ctx context.Context, t *Terminal, force bool) (err error) {
	fmt.Fprintf(t.out, "This writes keys to %s and an experiment to %s, at the end. Enter takes what stands in brackets; Ctrl-C changes nothing.\n\n",
		d.EnvFile, d.RunFile)
	anew := force || !d.Exists()
	if !anew {
		if anew, err = t.yes(false, "%s is there. Replace it?", d.RunFile); err != nil {
			return err
		}
	}
	if anew {
		if err := d.askRun(t); err != nil {
			return err
		}
	}
	if err := d.askKeys(t, anew); err != nil {
		return err
	}
	f, err := d.File()
	if err != nil {
		return err
	}
	s, err := Examine(f)
	if err != nil {
		return err
	}
	for _, warning := range d.Warnings(s) {
		fmt.Fprintln(t.out, warning)
	}
	try, err := t.yes(true, "Try the keys that are set, with a request each? That of a search may cost something.")
	if err != nil {
		return err
	}
	if try {
		s.Try(ctx, func(key *Key) {
			fmt.Fprintf(t.out, "  %s (%s): %s\n", cmp.Or(key.Variable, "no key"), key.Service, key.Outcome())
		})
	}
	if len(d.Keys)+len(d.Parts) == 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if write, err := t.yes(true, "Write?"); err != nil || !write {
		return err
	}
	written, err := d.Write()
	d.wrote(t.out, written)
	return err
}

// wrote says what was written.
func (d *Draft) wrote(w io.Writer, paths []string) {
	for _, path := range paths {
		fmt.Fprintf(w, "wrote %s\n", path)
	}
	if slices.Contains(paths, d.RunFile) {
		fmt.Fprintf(w, "next: trajgen run -f %s\n", d.RunFile)
	}
}

// askRun asks what is played, until that is a run file.
func (d *Draft) askRun(t *Terminal) error {
	for {
		if err := d.askModel(t); err != nil {
			return err
		}
		dataset, err := t.line("Dataset: a path, or what comes along [bundled]: ")
		if err != nil {
			return err
		}
		d.Set("dataset.path", cmp.Or(dataset, "bundled"))
		toolsets, err := t.line("Toolsets with commas between, or a distribution [all]: ")
		if err != nil {
			return err
		}
		names := words(cmp.Or(toolsets, "all"))
		if len(names) == 1 && slices.Contains(distributions.Names(), names[0]) {
			d.Set("tools.distribution", names[0])
		} else {
			d.Set("tools.toolsets", names)
		}
		if _, err = d.File(); err == nil {
			return nil
		}
		fmt.Fprintf(t.out, "%v\nOnce more, then.\n", err)
		d.Parts = nil
	}
}

func (d *Draft) askModel(t *Terminal) error {
	name, err := t.line("Model [none: a scripted one plays, for free]: ")
	if err != nil {
		return err
	}
	if name == "" {
		d.Set("scripted.policy", "oracle")
		return nil
	}
	d.Set("model.name", name)
	base, err := t.line("Its base URL [%s]: ", run.DefaultBaseURL)
	if err != nil {
		return err
	}
	usual := "OPENAI_API_KEY"
	if base != "" && base != run.DefaultBaseURL {
		d.Set("model.base_url", base)
		usual = ""
	}
	variable, err := t.line("Variable that holds its key [%s]: ", cmp.Or(usual, "it wants none"))
	if err != nil {
		return err
	}
	if variable != "" {
		d.Set("model.api_key_env", variable)
	}
	if variable = cmp.Or(variable, usual); variable == "" {
		return nil
	}
	return d.askKey(variable, t.secret)
}

// askKey asks for the value of a variable.
func (d *Draft) askKey(variable string, ask func(string, ...any) (string, error)) error {
	kept := "not set"
	if os.Getenv(variable) != "" {
		kept = "as it is"
	}
	text, err := ask("%s [%s]: ", variable, kept)
	if err != nil || text == "" {
		return err
	}
	return d.SetKey(variable, text)
}

// askKeys shows what toolsets can use, and asks for what the person chooses. A run file that stays is not changed.
func (d *Draft) askKeys(t *Terminal, anew bool) error {
	f, err := d.File()
	if err != nil {
		return err
	}
	s, err := Examine(f)
	if err != nil {
		return err
	}
	fmt.Fprintln(t.out)
	if err := s.Print(t.out); err != nil {
		return err
	}
	chosen, err := t.chosen(s.Keys)
	if err != nil {
		return err
	}
	for _, key := range chosen {
		ask := t.secret
		if key.declared.Public {
			ask = t.line
		}
		if key.Variable != "" {
			if err := d.askKey(key.Variable, ask); err != nil {
				return err
			}
		}
		if key.RunFile == "" {
			continue
		}
		if !anew {
			fmt.Fprintf(t.out, "  put into %s: %s\n", d.RunFile, key.RunFile)
			continue
		}
		answer := ""
		if key.declared.Ask != "" {
			if answer, err = t.line("  %s [leave %s out]: ", key.declared.Ask, key.Service); err != nil {
				return err
			}
			if answer == "" {
				continue
			}
		}
		if err := d.use(key, answer); err != nil {
			return err
		}
	}
	return nil
}

// chosen are the keys whose numbers the person names.
func (t *Terminal) chosen(keys []*Key) (chosen []*Key, err error) {
	for {
		answer, err := t.line("Numbers of those to use, with spaces between [none]: ")
		if err != nil {
			return nil, err
		}
		chosen = nil
		for _, word := range words(answer) {
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 || n > len(keys) || keys[n-1].Variable+keys[n-1].RunFile == "" {
				fmt.Fprintf(t.out, "%s is not the number of one\n", word)
				chosen = nil
				break
			}
			chosen = append(chosen, keys[n-1])
		}
		if len(chosen) > 0 || answer == "" {
			return chosen, nil
		}
	}
}

func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// Outcome is the result of a try, with what is known of it.
func (k *Key) Outcome() string {
	if k.Detail == "" {
		return k.Result
	}
	return k.Result + ": " + k.Detail
}

// State says whether the variable is set.
func (k *Key) State() string {
	switch {
	case k.Variable == "" && k.RunFile != "":
		return ""
	case k.Variable == "":
		return "needs no key"
	case k.Set:
		return "set"
	}
	return "not set"
}

// Print writes the survey as a numbered table.
func (s Survey) Print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, key := range s.Keys {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", i+1, key.Toolset, key.Service, cmp.Or(key.Variable, "-"), key.State(), cmp.Or(key.Outcome(), key.RunFile))
	}
	err := table.Flush()
	for _, l := range s.Lacking {
		fmt.Fprintf(w, "%s: %s: %s\n", l.Toolset, strings.Join(l.Tools, ", "), l.Why)
	}
	fmt.Fprintf(w, "need neither a key nor a section of the run file: %s\n", strings.Join(s.Free, ", "))
	return err
}
