package datasets

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp/syntax"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
)

// checkKeys has the kind of check that each key goes with; name and weight go with any. checkKinds are the keys of which a
// check has one.
var (
	checkKeys  = reward.Keys()
	checkKinds = slices.DeleteFunc(slices.Sorted(maps.Keys(checkKeys)), func(key string) bool { return checkKeys[key] != key })
)

// verify takes one check or a list of them.
func (d *decoder) verify(field string, value json.RawMessage) {
	value = structured(value)
	if kindOf(value) != "a list" {
		d.task.Verify = append(d.task.Verify, d.verifier(field, value))
		return
	}
	items, err := elements(value)
	if err != nil || len(items) == 0 {
		d.wrong.addf("%s: an empty list; leave the field out for a task without a verifier", field)
		return
	}
	names := map[string]bool{}
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", field, i)
		check := d.verifier(at, item)
		if names[check.Name] {
			d.wrong.addf("%s: the name %q is taken by an earlier check", at, check.Name)
		}
		names[check.Name] = check.Name != ""
		d.task.Verify = append(d.task.Verify, check)
	}
}

func (d *decoder) verifier(at string, value json.RawMessage) episode.Check {
	var check episode.Check
	var given []string
	is := d.entries(at, value, `such as {"command": "..."} or {"exact": "..."}`, func(at string, entry member) error {
		given = append(given, entry.name)
		return d.checkEntry(&check, at, entry)
	})
	if is {
		d.checkTogether(at, given)
	}
	return check
}

func (d *decoder) checkEntry(check *episode.Check, at string, entry member) (err error) {
	switch entry.name {
	case "name":
		check.Name, _ = d.text(at, entry.value)
	case "command":
		var ok bool
		if check.Command, ok = d.text(at, entry.value); ok && strings.TrimSpace(check.Command) == "" {
			err = fmt.Errorf("it is empty, and would let everything pass")
		}
	case "tests":
		check.Tests = d.fileMap(at, entry.value, cleanTestPath)
	case "reward":
		check.Reward, _ = asString(entry.value)
		if !slices.Contains([]string{"exit", "stdout", "file"}, check.Reward) {
			err = fmt.Errorf("%s, want exit (status 0 is 1), stdout (the last line is a number) or file (/logs/verifier/reward.txt or reward.json)", entry.value)
		}
	case "env":
		check.Env = d.variables(at, entry.value)
	case "weight":
		check.Weight, err = asNumber(entry.value)
		if err == nil && check.Weight <= 0 {
			err = fmt.Errorf("%v, want a number above 0", check.Weight)
		}
	case "timeout":
		check.Timeout, err = asDuration(entry.value)
	case "judge":
		err = fmt.Errorf("judging by a model is not offered yet; use command, exact, number or regex")
	default:
		if checkKeys[entry.name] == "" {
			have := slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(checkKeys)), "name", "weight")))
			return fmt.Errorf("unknown key (have %s)", strings.Join(have, ", "))
		}
		err = reward.Read(check, checkKeys[entry.name], entry.name, checkValue(entry.value))
	}
	return err
}

func expression(value json.RawMessage) (string, error) {
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
func (v checkValue) Number() (float64, error) { return asNumber(json.RawMessage(v)) }
func (v checkValue) Pattern() (string, error) { return expression(json.RawMessage(v)) }

// checkTogether checks that a check is of one kind, and has no keys of another kind, which would be ignored.
func (d *decoder) checkTogether(at string, given []string) {
	if len(given) == 1 && checkKeys[given[0]] == given[0] {
		return
	}
	slices.Sort(given)
	given = slices.Compact(given)
	kinds := slices.DeleteFunc(slices.Clone(given), func(key string) bool { return checkKeys[key] != key && key != "judge" })
	switch {
	case len(kinds) > 1:
		d.wrong.addf("%s: %s are both there, want one of them (a list of checks takes several)", at, strings.Join(kinds, " and "))
	case len(kinds) == 0 && slices.Contains(given, "tests"):
		d.wrong.addf("%s: tests needs a command that runs them", at)
	case len(kinds) == 0:
		d.wrong.addf("%s: it checks nothing, want one of %s", at, strings.Join(checkKinds, ", "))
	}
	for _, key := range given {
		if kind := checkKeys[key]; kind != "" && len(kinds) > 0 && !slices.Contains(kinds, kind) {
			d.wrong.addf("%s: %s only goes with %s", at, key, kind)
		}
	}
}
