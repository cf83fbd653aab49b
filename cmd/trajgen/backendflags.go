package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/run"
	"trajgen/sandbox"

	"github.com/spf13/pflag"
)

// backendFlags lets a command choose a backend.
func backendFlags(c *run.Backend, flags *pflag.FlagSet, name string) {
	flags.StringVar(&c.Name, name, "native", "sandbox backend: "+strings.Join(sandbox.Names(), ", "))
	flags.StringVar(&c.ImageDir, "image-dir", "", "where images are unpacked to (default: this user's store)")
	flags.Var((*settingsFlag)(&c.Settings), "sandbox-setting", "NAME=VALUE for the backend; repeat for more (trajgen doctor lists the names)")
}

// settingsFlag is a flag that is given as NAME=VALUE, and again for the next.
type settingsFlag map[string]string

func (f *settingsFlag) String() string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(*f)) {
		pairs = append(pairs, name+"="+(*f)[name])
	}
	return strings.Join(pairs, ",")
}

func (f *settingsFlag) Type() string { return "NAME=VALUE" }

func (f *settingsFlag) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return fmt.Errorf("%q is not NAME=VALUE", text)
	}
	if *f == nil {
		*f = settingsFlag{}
	}
	(*f)[name] = value
	return nil
}
