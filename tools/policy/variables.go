package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// restore takes back what was assigned for one command alone.
func (j *judge) restore(before map[string]binding) {
	for name, was := range before {
		if was == nil {
			delete(j.vars, name)
		} else {
			j.vars[name] = was
		}
	}
}

func (j *judge) assign(a *syntax.Assign) {
	if a.Name == nil || a.Naked {
		return
	}
	name := a.Name.Value
	if a.Array != nil {
		var elems []*syntax.Word
		for _, elem := range a.Array.Elems {
			if elem.Value != nil {
				elems = append(elems, elem.Value)
			}
		}
		words := j.fields(elems)
		if a.Append {
			v, _ := j.get(name)
			words = append(append([]string{}, v.words...), words...)
		}
		j.set(name, binding{{words: words, array: true, taint: j.pinned}}, false)
		return
	}
	text := j.text(a.Value)
	if a.Append {
		if v, have := j.get(name); have {
			text = strings.Join(v.words, " ") + text
		}
	}
	if a.Index != nil {
		j.visit(a.Index)
		j.set(name, binding{{words: []string{text}, array: true, taint: j.pinned}}, true)
		return
	}
	j.setText(name, text, j.pinned)
}

// declare is export, declare, local and readonly.
func (j *judge) declare(cmd *syntax.DeclClause) {
	for _, arg := range cmd.Args {
		if arg.Naked && arg.Value != nil {
			word := j.text(arg.Value) // export "$x"
			if name, text, ok := strings.Cut(word, "="); ok {
				j.setText(name, text, j.pinned)
			}
			continue
		}
		j.assign(arg)
	}
}
