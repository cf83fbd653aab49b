//go:build ignore

// weigh PROGRAM: prints what a program is made of, and the packages with the most code.
package main

import (
	"cmp"
	"debug/elf"
	"debug/gosym"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
)

const shown = 25

func main() {
	if err := weigh(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "weigh:", err)
		os.Exit(1)
	}
}

func weigh(path string) error {
	program, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer program.Close()
	code, lines := program.Section(".text"), program.Section(".gopclntab")
	if code == nil || lines == nil {
		return fmt.Errorf("%s holds no code of Go's (want a program that scripts/build made)", path)
	}
	for _, part := range []struct{ name, section string }{
		{"code", ".text"}, {"constants, types, what is embedded", ".rodata"}, {"tables of functions and lines", ".gopclntab"},
	} {
		if s := program.Section(part.section); s != nil {
			fmt.Printf("%12d  %s\n", s.FileSize, part.name)
		}
	}
	// Stripping leaves these tables: a program needs them for its stack traces.
	content, err := lines.Data()
	if err != nil {
		return err
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(content, code.Addr))
	if err != nil {
		return err
	}
	packages := map[string]uint64{}
	for _, f := range table.Funcs {
		packages[packageOf(f.Sym)] += f.End - f.Entry
	}
	heaviest := slices.SortedFunc(maps.Keys(packages), func(a, b string) int {
		return cmp.Or(cmp.Compare(packages[b], packages[a]), strings.Compare(a, b))
	})
	fmt.Printf("of %d packages, those with the most code:\n", len(heaviest))
	for _, name := range heaviest[:min(shown, len(heaviest))] {
		fmt.Printf("%12d  %s\n", packages[name], name)
	}
	return nil
}

// packageOf is what a symbol belongs to; what the linker makes has no package.
func packageOf(s *gosym.Sym) string {
	name, err := url.PathUnescape(s.PackageName())
	if err != nil || name == "" {
		return "(made by the linker)"
	}
	return name
}
