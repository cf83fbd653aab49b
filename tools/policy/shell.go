package policy

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shell is the state of a shell, which a subshell does not change.
type shell struct {
	vars    map[string]binding
	zero    string   // $0
	params  []string // $1 and on
	funcs   map[string]*syntax.Stmt
	aliases map[string]string
	branch  int // above 0 in code that may not run
}

func (s shell) clone() shell {
	s.vars, s.funcs, s.aliases = maps.Clone(s.vars), maps.Clone(s.funcs), maps.Clone(s.aliases)
	return s
}

// binding is the possible values of a variable: several when branches set it differently, none when it is unset.
type binding []value

// value is one word, or those of an array.
type value []string

// choice chooses one value of each variable that a statement reads. The statement is judged once for each combination.
type choice struct {
	turn, turns int
	stride      map[string]int // turns after which a variable gets its next value
}

// subshell runs f like a subshell: f sees all state, and only files outlive it.
func (m *machine) subshell(f func() stream) stream {
	outer := m.shell
	m.shell = outer.clone()
	out := f()
	m.shell = outer
	return out
}

// maybe runs f, which may not run.
func (m *machine) maybe(f func() stream) stream {
	m.branch++
	out := f()
	m.branch--
	return out
}

// eachTurn runs f for every combination of values of the variables that it reads, up to a bound.
func (m *machine) eachTurn(f func() stream) (out stream) {
	outer := m.choice
	m.choice = choice{turns: 1}
	for ; m.turn < min(m.turns, maxTurns); m.turn++ {
		switch printed := f(); {
		case m.turn == 0:
			out = printed
		case printed.text != out.text && len(out.text) < 4096:
			out = stream{strings.TrimRight(out.text, "\n") + "\n", out.set}.and(printed)
		}
	}
	m.choice = outer
	return out
}

// get returns a variable's value in this turn, and whether anything is known of it.
func (m *machine) get(name string) (value, bool) {
	b, ok := m.vars[name]
	switch {
	case !ok:
		text, ok := m.standard(name)
		return value{text}, ok
	case len(b) == 0:
		return nil, true
	case len(b) == 1:
		return b[0], true
	}
	stride, ok := m.stride[name]
	if !ok {
		if m.stride == nil {
			m.stride = map[string]int{}
		}
		stride = m.turns
		m.stride[name] = stride
		m.turns = min(stride*len(b), 1<<20)
	}
	return b[m.turn/stride%len(b)], true
}

// set gives a variable a value; in code that may not run, it keeps the old values, too.
func (m *machine) set(name string, to ...value) {
	if name == unknownName {
		return
	}
	if m.branch > 0 || m.turn > 0 {
		merged := slices.Clone(m.vars[name])
		if _, have := m.vars[name]; !have && name == "PWD" {
			merged = binding{{m.dir}}
		}
		for _, v := range to {
			if !slices.ContainsFunc(merged, func(w value) bool { return slices.Equal(v, w) }) {
				merged = append(merged, v)
			}
		}
		if to = merged; len(merged) > 8 {
			to = append(merged[:7:7], value{unknown + remote})
		}
	}
	m.vars[name] = to
}

// restore returns a function that gives a variable its present value again.
func (m *machine) restore(name string) func() {
	was, have := m.vars[name]
	return func() {
		if m.vars[name] = was; !have {
			delete(m.vars, name)
		}
	}
}

// setText sets a variable to one text.
func (j *judge) setText(name, text string) {
	if len(text) > maxValue {
		text = unknown
	}
	switch {
	case slices.Contains(table().evaluated, name):
		j.aside(text)
	case name == "BASH_ENV" || name == "ENV":
		j.script(text, nil)
	}
	j.set(name, value{text})
}

// standard returns the usual value of a variable in a shell's environment.
func (m *machine) standard(name string) (string, bool) {
	switch name {
	case "HOME":
		return m.home(), true
	case "PWD":
		return m.dir, m.dir != ""
	}
	if text, ok := table().variables[name]; ok {
		return text, true
	}
	return unknown, false
}

// assign follows name=value, name+=value, name[i]=value and name=(values).
func (j *judge) assign(a *syntax.Assign) {
	if a.Naked && a.Value != nil { // export "$x"
		if name, text, ok := strings.Cut(j.text(a.Value), "="); ok {
			j.setText(name, text)
		}
	}
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
		words := slices.Clone(before)
		for _, elem := range a.Array.Elems {
			if elem.Value != nil {
				words = append(words, j.fields(elem.Value)...)
			}
		}
		j.set(name, words)
	case a.Index != nil: // any element may be set, so the index does not matter
		j.visit(a.Index)
		j.branch++
		j.set(name, value{j.text(a.Value)})
		j.branch--
	default:
		j.setText(name, strings.Join(before, " ")+j.text(a.Value))
	}
}
