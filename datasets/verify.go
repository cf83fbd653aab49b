package datasets

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp/syntax"
	"slices"
	"strings"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
)

// checkKinds has the kinds of checks that each key goes with; name and weight go with any. One key of a check is a kind itself.
var checkKinds = reward.Keys()

// checkKeys are the keys of a check. Those that look at the answer are read in package reward.
var checkKeys = withRewardKeys(keys[episode.Check]{
	"name":    field(asPlain, func(c *episode.Check) *string { return &c.Name }),
	"command": field(asCommand, func(c *episode.Check) *string { return &c.Command }),
	"python":  field(asScorer, func(c *episode.Check) *string { return &c.Python }),
	"tests": func(p *problems, check *episode.Check, at string, value json.RawMessage) {
		check.Tests = fileMap(p, at, value, cleanTestPath)
	},
	"reward": field(asRewardPlace, func(c *episode.Check) *string { return &c.Reward }),
	"env": func(p *problems, check *episode.Check, at string, value json.RawMessage) {
		check.Env = variables(p, at, value)
	},
	"after":        field(asCount, func(c *episode.Check) *int { return &c.After }),
	"at_least":     field(asNumber, func(c *episode.Check) *float64 { return &c.AtLeast }),
	"weight":       field(asPositive, func(c *episode.Check) *float64 { return &c.Weight }),
	"test_timeout": field(asDuration, func(c *episode.Check) *time.Duration { return &c.TestTimeout }),
	"timeout":      field(asDuration, func(c *episode.Check) *time.Duration { return &c.Timeout }),
	"verifier":     verifierOf(func(c *episode.Check) **episode.Verifier { return &c.Verifier }),

	"site_state": readState,
})

func withRewardKeys(k keys[episode.Check]) keys[episode.Check] {
	for key := range checkKinds {
		if _, here := k[key]; here {
			continue
		}
		k[key] = func(p *problems, check *episode.Check, at string, value json.RawMessage) {
			if err := reward.Read(check, key, checkValue(value)); err != nil {
				p.addf("%s: %v", at, err)
			}
		}
	}
	return k
}

// readVerify takes one check or a list of them.
func readVerify(p *problems, t *episode.Task, at string, value json.RawMessage) {
	value = structured(value)
	if kindOf(value) != "a list" {
		t.Verify = append(t.Verify, readCheck(p, at, value))
		return
	}
	items := p.list(at, value, "checks")
	if len(items) == 0 {
		p.addf("%s: an empty list; leave the field out for a task without a verifier", at)
	}
	names := map[string]bool{}
	for i, value := range items {
		check := readCheck(p, item(at, i), value)
		if names[check.Name] {
			p.addf("%s: the name %q is taken by an earlier check", item(at, i), check.Name)
		}
		names[check.Name] = check.Name != ""
		t.Verify = append(t.Verify, check)
	}
}

// readCheck checks, too, that a check is of one kind and has no keys of another kind, which would be ignored.
func readCheck(p *problems, at string, value json.RawMessage) (check episode.Check) {
	given, is := checkKeys.read(p, &check, at, value)
	slices.Sort(given)
	kinds := slices.DeleteFunc(slices.Clone(given), func(key string) bool { return !slices.Contains(checkKinds[key], key) })
	switch {
	case !is:
		return check
	case len(kinds) > 1:
		p.addf("%s: %s are both there, want one of them (a list of checks takes several)", at, strings.Join(kinds, " and "))
	case len(kinds) == 0 && slices.Contains(given, "tests"):
		p.addf("%s: tests needs a command that runs them", at)
	case len(kinds) == 0:
		all := slices.Sorted(maps.Keys(checkKinds))
		all = slices.DeleteFunc(all, func(key string) bool { return !slices.Contains(checkKinds[key], key) })
		p.addf("%s: it checks nothing, want one of %s", at, strings.Join(all, ", "))
	}
	for _, key := range given {
		with := checkKinds[key]
		if len(with) > 0 && len(kinds) > 0 && !slices.ContainsFunc(kinds, func(kind string) bool { return slices.Contains(with, kind) }) {
			p.addf("%s: %s only goes with %s", at, key, strings.Join(with, ", "))
		}
	}
	return check
}

func asCommand(value json.RawMessage) (string, error) {
	command, err := asPlain(value)
	if err == nil && strings.TrimSpace(command) == "" {
		err = errors.New("it is empty, and would let everything pass")
	}
	return command, err
}

func asRewardPlace(value json.RawMessage) (string, error) {
	place, _ := asString(value)
	if parsers := reward.Parsers(); !slices.Contains(append([]string{"exit", "stdout", "file"}, parsers...), place) {
		return place, fmt.Errorf("%s, want exit (status 0 is 1), stdout (the last line is a number), file (/logs/verifier/reward.txt or reward.json) or what reads the output of tests (%s)", value, strings.Join(parsers, ", "))
	}
	return place, nil
}

// asPattern takes a regular expression.
func asPattern(value json.RawMessage) (string, error) {
	text, ok := asString(value)
	if !ok || text == "" {
		return "", fmt.Errorf("%s, want a regular expression (RE2)", value)
	}
	_, err := syntax.Parse(text, syntax.Perl) // regexp.Compile refuses nothing else
	return text, err
}

// checkValue is a reward.Value.
type checkValue json.RawMessage

func (v checkValue) Text() (string, error)    { return asText(json.RawMessage(v)) }
func (v checkValue) JSON() json.RawMessage    { return structured(json.RawMessage(v)) }
func (v checkValue) Number() (float64, error) { return asNumber(json.RawMessage(v)) }
func (v checkValue) Pattern() (string, error) { return asPattern(json.RawMessage(v)) }

// Texts does not look through strings: a text can be one that reads as a list.
func (v checkValue) Texts() ([]string, error) {
	items, err := elements(json.RawMessage(v))
	if err != nil {
		text, err := v.Text()
		return []string{text}, err
	}
	texts := make([]string, len(items))
	for i := 0; i < len(items) && err == nil; i++ {
		texts[i], err = asText(items[i])
	}
	return texts, err
}
