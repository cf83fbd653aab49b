package policy

import (
	"slices"
	"strings"
)

// binding is what a variable may hold: several values when branches set it differently.
type binding []value

type value struct {
	words []string // one, unless it is an array
	array bool
	taint
}

// choices goes through the combinations of what variables may hold. A command is read once for each.
type choices struct {
	picks []int
	sizes []int
	next  int
	turn  int
}

// choose picks one of n, the first one in the first turn.
func (j *judge) choose(n int) int {
	if n <= 1 {
		return 0
	}
	if j.next == len(j.picks) {
		j.picks, j.sizes = append(j.picks, 0), append(j.sizes, n)
	}
	pick := min(j.picks[j.next], n-1)
	j.next++
	return pick
}

// turns runs f for every combination of choices, up to a bound.
func (j *judge) turns(f func() stream) stream {
	outer, pinned := j.choices, j.pinned
	defer func() { j.choices, j.pinned = outer, pinned }()
	j.choices = choices{}
	var out stream
	for {
		j.next, j.pinned = 0, 0
		printed := f()
		switch {
		case j.turn == 0:
			out = printed
		case printed.text != out.text && len(out.text) < 4096:
			out = stream{strings.TrimRight(out.text, "\n") + "\n" + printed.text, true, true, out.taint | printed.taint}
		}
		last := len(j.picks) - 1
		for last >= 0 && j.picks[last]+1 >= j.sizes[last] {
			last--
		}
		if j.turn++; last < 0 || j.turn >= maxTurns {
			return out
		}
		j.picks, j.sizes = j.picks[:last+1], j.sizes[:last+1]
		j.picks[last]++
	}
}

// set gives a variable a value, next to those that it may have when it is not sure that this code runs.
func (j *judge) set(name string, to binding, add bool) {
	if name == unknownName {
		return
	}
	if j.vars == nil {
		j.vars = map[string]binding{}
	}
	was, have := j.vars[name]
	if name == "PWD" && !have {
		was = binding{{words: []string{j.ctx.Dir}}}
	}
	if add || j.branch > 0 || j.turn > 0 {
		merged := slices.Clone(was)
		for _, v := range to {
			if !slices.ContainsFunc(merged, func(w value) bool { return slices.Equal(v.words, w.words) }) {
				merged = append(merged, v)
			}
		}
		if len(merged) > 8 {
			merged = append(merged[:7:7], value{words: []string{unknown}, taint: remote})
		}
		to = merged
	}
	j.vars[name] = to
}

// setText gives a variable one text.
func (j *judge) setText(name, text string, from taint) {
	if len(text) > maxValue {
		text = unknown
	}
	switch {
	case toldByEnvironment(name):
		j.aside(text)
	case name == "BASH_ENV" || name == "ENV":
		(&call{j: j}).script(text, nil)
	}
	j.set(name, binding{{words: []string{text}, taint: from}}, false)
}

// get is a variable's value in this turn.
func (j *judge) get(name string) (value, bool) {
	if b, ok := j.vars[name]; ok {
		if len(b) == 0 {
			return value{}, true
		}
		v := b[j.choose(len(b))]
		j.pinned |= v.taint
		return v, true
	}
	if text, ok := j.standard(name); ok {
		return value{words: []string{text}}, true
	}
	return value{words: []string{unknown}}, false
}

// standard is what a shell's environment is likely to hold.
func (j *judge) standard(name string) (string, bool) {
	switch name {
	case "HOME":
		return j.home(), true
	case "PWD":
		return orUnknown(j.ctx.Dir), true
	case "IFS":
		return " \t\n", true
	case "SHELL", "BASH":
		return "/bin/bash", true
	case "PATH":
		return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", true
	case "TMPDIR":
		return "/tmp/" + unknown, true
	case "CC", "CXX", "LD", "AR", "GO", "MAKE", "PYTHON", "PIP", "NODE", "NPM", "CARGO", "EDITOR", "VISUAL", "PAGER", "BROWSER", "JAVA":
		return "$" + name, true // a program of the trade; no rule has such a name
	}
	return "", false
}

func orUnknown(text string) string {
	if text == "" {
		return unknown
	}
	return text
}
