package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// binding is the possible values of a variable: several when branches set it differently, none when it is unset.
type binding []value

type value struct {
	words []string // one, unless it is an array
	array bool
	taint
}

func textValue(text string, from taint) value { return value{words: []string{text}, taint: from} }

// pick chooses one value of each variable. A command is judged once for each combination.
type pick struct {
	name    string
	at, all int
}

// turns runs f for every combination of values of the variables that it reads, up to a bound.
func (j *judge) turns(f func() stream) stream {
	picks, turn, pinned := j.picks, j.turn, j.pinned
	defer func() { j.picks, j.turn, j.pinned = picks, turn, pinned }()
	j.picks, j.turn = nil, 0
	var out stream
	for {
		j.pinned = 0
		switch printed := f(); {
		case j.turn == 0:
			out = printed
		case printed.text != out.text && len(out.text) < 4096:
			out = stream{strings.TrimRight(out.text, "\n") + "\n", out.set, out.taint}.and(printed)
		}
		for len(j.picks) > 0 && j.picks[len(j.picks)-1].at+1 == j.picks[len(j.picks)-1].all {
			j.picks = j.picks[:len(j.picks)-1]
		}
		if j.turn++; len(j.picks) == 0 || j.turn >= maxTurns {
			return out
		}
		j.picks[len(j.picks)-1].at++
	}
}

// get returns a variable's value in this turn, and whether anything is known of it.
func (j *judge) get(name string) (value, bool) {
	b, ok := j.vars[name]
	switch {
	case !ok:
		text, ok := j.standard(name)
		return textValue(text, 0), ok
	case len(b) == 0:
		return value{}, true
	case len(b) == 1:
		j.pinned |= b[0].taint
		return b[0], true
	}
	i := slices.IndexFunc(j.picks, func(p pick) bool { return p.name == name })
	if i < 0 {
		i = len(j.picks)
		j.picks = append(j.picks, pick{name, 0, len(b)})
	}
	v := b[min(j.picks[i].at, len(b)-1)]
	j.pinned |= v.taint
	return v, true
}

// set gives a variable a value; in code that may not run, it keeps the old values, too.
func (j *judge) set(name string, to ...value) {
	if name == unknownName {
		return
	}
	if j.branch > 0 || j.turn > 0 {
		merged := slices.Clone(j.vars[name])
		if _, have := j.vars[name]; !have && name == "PWD" {
			merged = binding{textValue(j.ctx.Dir, 0)}
		}
		for _, v := range to {
			if !slices.ContainsFunc(merged, func(w value) bool { return slices.Equal(v.words, w.words) }) {
				merged = append(merged, v)
			}
		}
		if to = merged; len(merged) > 8 {
			to = append(merged[:7:7], textValue(unknown, remote))
		}
	}
	j.vars[name] = to
}

// restore returns a function that gives a variable its present value again.
func (j *judge) restore(name string) func() {
	was, have := j.vars[name]
	return func() {
		if j.vars[name] = was; !have {
			delete(j.vars, name)
		}
	}
}

// setText sets a variable to one text.
func (j *judge) setText(name, text string, from taint) {
	if len(text) > maxValue {
		text = unknown
	}
	switch name {
	case "PAGER", "GIT_PAGER", "MANPAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF",
		"GIT_ASKPASS", "SSH_ASKPASS", "PROMPT_COMMAND", "LESSOPEN", "LESSCLOSE", "RSYNC_RSH", "TAR_OPTIONS", "BROWSER":
		j.aside(text) // programs may run the value as a command
	case "BASH_ENV", "ENV":
		(&call{j: j}).script(text, nil)
	}
	j.set(name, textValue(text, from))
}

// standard returns the usual value of a variable in a shell's environment.
func (j *judge) standard(name string) (string, bool) {
	switch name {
	case "HOME":
		return j.home(), true
	case "PWD":
		return j.ctx.Dir, j.ctx.Dir != ""
	case "IFS":
		return " \t\n", true
	case "SHELL", "BASH":
		return "/bin/bash", true
	case "PATH":
		return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", true
	case "TMPDIR":
		return "/tmp/" + unknown, true
	case "CC", "CXX", "LD", "AR", "GO", "MAKE", "PYTHON", "PIP", "NODE", "NPM", "CARGO", "EDITOR", "VISUAL", "PAGER", "BROWSER", "JAVA":
		return "$" + name, true // stands for some program, which no rule names
	}
	return unknown, false
}

// assign follows name=value, name+=value, name[i]=value and name=(values).
func (j *judge) assign(a *syntax.Assign) {
	if a.Name == nil || a.Naked {
		return
	}
	name := a.Name.Value
	var before value
	if a.Append {
		if v, have := j.get(name); have {
			before = v
		}
	}
	switch {
	case a.Array != nil:
		words := slices.Clone(before.words)
		for _, elem := range a.Array.Elems {
			if elem.Value != nil {
				words = append(words, j.fields(elem.Value)...)
			}
		}
		j.set(name, value{words: words, array: true, taint: j.pinned})
	case a.Index != nil: // any element may be set, so the index does not matter
		j.visit(a.Index)
		j.maybe(func() stream { j.set(name, value{[]string{j.text(a.Value)}, true, j.pinned}); return stream{} })
	default:
		j.setText(name, strings.Join(before.words, " ")+j.text(a.Value), j.pinned)
	}
}

// declare follows export, declare, local and readonly.
func (j *judge) declare(cmd *syntax.DeclClause) {
	for _, arg := range cmd.Args {
		if !arg.Naked || arg.Value == nil {
			j.assign(arg)
		} else if name, text, ok := strings.Cut(j.text(arg.Value), "="); ok { // export "$x"
			j.setText(name, text, j.pinned)
		}
	}
}
