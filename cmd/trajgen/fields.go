package main

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"trajgen/pipeline/run"
	"trajgen/sandbox"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// bindFields makes a flag of every setting of a run file that has a help text. The returned function sets the settings whose flags
// were given; call it after the run file was decoded, so that flags override it.
func bindFields(flags *pflag.FlagSet, file *run.File) (apply func() error) {
	type binding struct {
		flag  *pflag.Flag
		field reflect.Value
		given *given
	}
	var bindings []binding
	for _, s := range file.Settings() {
		if s.Help == "" {
			continue
		}
		held := &given{kind: run.KindOf(s.Value.Type()), shown: shown(s.Value)}
		flag := flags.VarPF(held, s.Flag, "", s.Help)
		flag.Annotations = map[string][]string{flagGroup: {s.Group}}
		if held.kind == "bool" {
			flag.NoOptDefVal = "true"
		}
		bindings = append(bindings, binding{flag, s.Value, held})
	}
	return func() error {
		for _, b := range bindings {
			if !b.flag.Changed {
				continue
			}
			if err := setField(b.field, b.given.texts); err != nil {
				return fmt.Errorf("--%s: %w", b.flag.Name, err)
			}
		}
		return nil
	}
}

// flagGroup is the annotation with a flag's group.
const flagGroup = "group"

// groupHelp shows the flags of a command by group, in the order of their struct.
func groupHelp(cmd *cobra.Command, std stdio) {
	cmd.Flags().SortFlags = false
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		const own = "This command"
		names, groups := []string{}, map[string]*pflag.FlagSet{}
		add := func(name string, flag *pflag.Flag) {
			if groups[name] == nil {
				names = append(names, name)
				groups[name] = pflag.NewFlagSet(name, pflag.ContinueOnError)
				groups[name].SortFlags = false
			}
			groups[name].AddFlag(flag)
		}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if len(flag.Annotations[flagGroup]) == 0 {
				add(own, flag)
			}
		})
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			for _, name := range flag.Annotations[flagGroup] {
				add(name, flag)
			}
		})
		width, isTerminal := terminal(std.out)
		if !isTerminal {
			width = 0 // one line for each flag, for grep
		}
		w := cmd.OutOrStderr()
		fmt.Fprintf(w, "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
		for _, name := range names {
			fmt.Fprintf(w, "\n%s:\n%s", name, groups[name].FlagUsagesWrapped(width))
		}
		return nil
	})
}

// given is a flag's value as it was typed.
type given struct {
	kind  string
	shown string // the default, for the help
	texts []string
}

func (g *given) String() string {
	if len(g.texts) > 0 {
		return strings.Join(g.texts, ",")
	}
	return g.shown
}
func (g *given) Type() string { return g.kind }
func (g *given) Set(text string) error {
	if _, err := parse(g.kind, text); err != nil { // at once, so that the error names the flag
		return err
	}
	g.texts = append(g.texts, text)
	return nil
}

// parse reads a text as a kind of setting; lists and pairs stay texts.
func parse(kind, text string) (value any, err error) {
	switch value = text; kind {
	case "bool":
		value, err = strconv.ParseBool(text)
	case "int":
		value, err = strconv.Atoi(text)
	case "uint":
		value, err = strconv.ParseUint(text, 10, 64)
	case "number":
		value, err = strconv.ParseFloat(text, 64)
	case "duration":
		value, err = time.ParseDuration(text)
	case "size":
		value, err = sandbox.ParseSize(text)
	case "pairs":
		if name, _, ok := strings.Cut(text, "="); !ok || name == "" {
			err = errors.New("no name")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%q is not %s", text, run.KindNames[kind])
	}
	return value, nil
}

func shown(v reflect.Value) string {
	if v.Kind() == reflect.Pointer || v.IsZero() {
		return ""
	}
	if v.Kind() == reflect.Slice {
		return strings.Join(v.Interface().([]string), ",")
	}
	return fmt.Sprint(v.Interface())
}

// setField sets a field from texts that parse has accepted.
func setField(field reflect.Value, texts []string) error {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	switch kind := run.KindOf(field.Type()); kind {
	case "pairs":
		all := reflect.MakeMap(field.Type())
		for _, text := range texts {
			name, value, _ := strings.Cut(text, "=")
			one, err := parse(run.KindOf(field.Type().Elem()), value)
			if err != nil {
				return fmt.Errorf("%w, of %s", err, name)
			}
			all.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(one))
		}
		field.Set(all)
	case "list":
		var all []string
		for _, text := range texts {
			for item := range strings.SplitSeq(text, ",") {
				if item = strings.TrimSpace(item); item != "" {
					all = append(all, item)
				}
			}
		}
		field.Set(reflect.ValueOf(all))
	default:
		value, err := parse(kind, texts[len(texts)-1])
		if err != nil {
			return err
		}
		field.Set(reflect.ValueOf(value).Convert(field.Type()))
	}
	return nil
}
