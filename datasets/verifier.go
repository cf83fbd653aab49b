package datasets

import (
	"encoding/json"
	"fmt"

	"github.com/bmatcuk/doublestar/v4"

	"trajgen/pipeline/episode"
)

// verifierKeys are the keys of verifier: {"sandbox": "fork", "network": "none", "trust": ["conftest.py"]}.
var verifierKeys = keys[episode.Verifier]{
	"sandbox": field(asPlain, func(v *episode.Verifier) *string { return &v.Sandbox }),
	"image":   field(asPlain, func(v *episode.Verifier) *string { return &v.Image }),
	"build": func(p *problems, v *episode.Verifier, at string, value json.RawMessage) {
		v.Build = buildOf(p, at, value)
	},
	"artifacts": field(asNames, func(v *episode.Verifier) *[]string { return &v.Artifacts }),
	"network":   field(asNetwork, func(v *episode.Verifier) *string { return &v.Network }),
	"allow":     field(asNames, func(v *episode.Verifier) *[]string { return &v.Allow }),
	"memory":    field(asSize(16<<20), func(v *episode.Verifier) *int64 { return &v.Memory }),
	"disk":      field(asSize(1<<20), func(v *episode.Verifier) *int64 { return &v.Disk }),
	"cpus":      field(asPositive, func(v *episode.Verifier) *float64 { return &v.CPUs }),
	"trust":     field(asPatterns, func(v *episode.Verifier) *[]string { return &v.Trust }),
}

// verifierOf reads where the commands of a check or a task run.
func verifierOf[T any](of func(*T) **episode.Verifier) reader[T] {
	return func(p *problems, to *T, at string, value json.RawMessage) {
		v := &episode.Verifier{}
		if verifierKeys.whole(p, v, at, value) {
			if err := v.Validate(); err != nil {
				p.addf("%s: %v", at, err)
			}
		}
		*of(to) = v
	}
}

// asPatterns takes patterns of paths.
func asPatterns(value json.RawMessage) ([]string, error) {
	patterns, err := asNames(value)
	for _, pattern := range patterns {
		if !doublestar.ValidatePattern(pattern) {
			return nil, fmt.Errorf("%q cannot be read as a pattern of paths; want one such as \"tests/**/conftest.py\"", pattern)
		}
	}
	return patterns, err
}
