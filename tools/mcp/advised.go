package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"trajgen/tools/mcp/osv"
)

// unpack finds out which packages the server's files are made of.
func (s *server) unpack() error {
	for _, text := range s.cfg.Packages {
		p, err := osv.Parse(text)
		if err != nil {
			return err
		}
		s.packages = append(s.packages, p)
	}
	for _, file := range s.files {
		installed, err := osv.Installed(file.Path, file.Data)
		if err != nil {
			return fmt.Errorf("files: %w", err)
		}
		s.packages = append(s.packages, installed...)
	}
	slices.SortFunc(s.packages, osv.Compare)
	s.packages = slices.Compact(s.packages)
	return nil
}

// advised looks for the servers' packages in the lists of advisories: malware is refused, and of others the operator is told.
func (s *Set) advised(ctx context.Context) error {
	var all []osv.Package
	for _, each := range s.servers {
		all = append(all, each.packages...)
	}
	slices.SortFunc(all, osv.Compare)
	all = slices.Compact(all)
	var errs []error
	var told []osv.Finding
	for _, list := range s.settings.Advisories {
		found, err := osv.Look(ctx, list, all)
		if err != nil {
			return fmt.Errorf("mcp: %w", err)
		}
		for _, f := range found {
			if slices.ContainsFunc(told, func(t osv.Finding) bool { return t.ID == f.ID && t.Package == f.Package }) {
				continue
			}
			told = append(told, f)
			for _, each := range s.servers {
				switch {
				case !slices.Contains(each.packages, f.Package):
				case f.Malware:
					errs = append(errs, fmt.Errorf("mcp server %s is refused: %s: it is known malware, so do not start it: take it out, "+
						"or use another version that no advisory names", each.name, f))
				default:
					s.warnings = append(s.warnings, fmt.Sprintf("mcp server %s: %s", each.name, f))
				}
			}
		}
	}
	return errors.Join(errs...)
}
