package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"trajgen/sandbox"
)

// Script fills a draft without questions.
type Script struct {
	Set     []string // NAME=VALUE
	With    []string // parts of the run file, as YAML
	FromEnv bool     // keep the keys that the environment has
	Try     bool
	Force   bool // replace a run file
}

// Result is what a script brought about.
type Result struct {
	Survey
	Written  []string `json:"written"`
	Warnings []string `json:"warnings"`
}

// Print writes the result as a person reads it, and the warnings where those go.
func (d *Draft) Print(w, warnings io.Writer, r Result) error {
	for _, warning := range r.Warnings {
		fmt.Fprintf(warnings, "trajgen: %s\n", warning)
	}
	err := r.Survey.Print(w)
	d.wrote(w, r.Written)
	return err
}

// Run fills the draft, tries the keys if the script says so, and writes the files. Errors show no values.
func (d *Draft) Run(ctx context.Context, script Script) (Result, error) {
	for _, part := range script.With {
		if err := d.Add(part); err != nil {
			return Result{}, err
		}
	}
	if len(d.Parts) > 0 && d.Exists() && !script.Force {
		return Result{}, fmt.Errorf("%s is there: --force replaces it, --file names another", d.RunFile)
	}
	for _, one := range script.Set {
		name, text, ok := strings.Cut(one, "=")
		if !ok || !sandbox.IsVariable(name) {
			return Result{}, errors.New("--set wants NAME=VALUE, with a NAME of letters, digits and _")
		}
		if err := d.SetKey(name, text); err != nil {
			return Result{}, fmt.Errorf("--set %s: %w", name, err)
		}
	}
	f, err := d.File()
	if err != nil {
		return Result{}, err
	}
	s, err := Examine(f)
	if err != nil {
		return Result{}, err
	}
	if script.FromEnv {
		for _, key := range s.Keys {
			if key.Set {
				if err := d.SetKey(key.Variable, os.Getenv(key.Variable)); err != nil {
					return Result{}, err
				}
			}
		}
	}
	if script.Try {
		s.Try(ctx, func(*Key) {})
	}
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	written, err := d.Write()
	return Result{Survey: s, Written: append([]string{}, written...), Warnings: append([]string{}, d.Warnings(s)...)}, err
}
