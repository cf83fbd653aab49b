package policy

import (
	"cmp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// param expands a parameter.
func (j *judge) param(b *builder, pe *syntax.ParamExp, q quoting) {
	words, array := j.expand(pe)
	emit := func(text string) {
		if q == unquoted {
			b.split(text, j.separators())
		} else {
			b.add(text)
		}
	}
	if !array {
		emit(strings.Join(words, " "))
		return
	}
	for i, word := range words {
		if i > 0 {
			if q == single {
				b.add(" ")
			} else {
				b.end()
			}
		}
		emit(word)
	}
}

// expand is what a parameter stands for: one text, or the words of an array.
func (j *judge) expand(pe *syntax.ParamExp) (words []string, array bool) {
	if pe.Param == nil || pe.Names != 0 {
		return []string{unknown}, false
	}
	if pe.Index != nil {
		j.visit(pe.Index)
	}
	v, have := j.parameter(pe)
	text := strings.Join(v.words, " ")
	switch {
	case pe.Excl:
		v, have = j.get(text)
		text = strings.Join(v.words, " ")
	case pe.Length:
		if strings.Contains(text, unknown) {
			return []string{unknown}, false
		}
		return []string{strconv.Itoa(len(text))}, false
	}
	switch {
	case pe.Exp != nil:
		return j.expansion(pe, v, have)
	case pe.Slice != nil && v.array:
		return []string{unknown}, true
	case pe.Slice != nil:
		return []string{j.slice(text, pe.Slice)}, false
	case pe.Repl != nil:
		return []string{j.replace(text, pe.Repl)}, false
	}
	if v.array {
		return v.words, true
	}
	return []string{text}, false
}

// parameter looks a parameter up.
func (j *judge) parameter(pe *syntax.ParamExp) (value, bool) {
	name := pe.Param.Value
	switch name {
	case "@", "*":
		return value{words: j.params, array: true}, len(j.params) > 0
	case "?", "$", "!", "-", "_":
		return value{words: []string{unknown}}, true
	case "#":
		return value{words: []string{strconv.Itoa(len(j.params))}}, true
	case "0":
		return value{words: []string{cmp.Or(j.zero, "bash")}}, true
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n > len(j.params) || n < 1 {
			return value{}, false
		}
		return value{words: j.params[n-1 : n]}, true
	}
	v, have := j.get(name)
	if pe.Index == nil {
		if v.array && len(v.words) > 0 {
			return value{words: v.words[:1], taint: v.taint}, have
		}
		return v, have
	}
	word, ok := pe.Index.(*syntax.Word)
	if !ok {
		return value{words: []string{unknown}}, have
	}
	switch index := word.Lit(); {
	case index == "@" || index == "*":
		v.array = true
		return v, have
	default:
		n, err := strconv.Atoi(index)
		if err != nil || n >= len(v.words) || n < 0 {
			return value{words: []string{unknown}}, have
		}
		return value{words: v.words[n : n+1], taint: v.taint}, have
	}
}

// expansion is ${x:-word} and its kin. A variable that nothing is known of counts as unset for a default, and as set
// for what stands in its place.
func (j *judge) expansion(pe *syntax.ParamExp, v value, have bool) ([]string, bool) {
	text := strings.Join(v.words, " ")
	null := text == ""
	same := func() ([]string, bool) {
		if v.array {
			return v.words, true
		}
		return []string{text}, false
	}
	switch pe.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if have && !null {
			return same()
		}
		word := j.text(pe.Exp.Word)
		if pe.Exp.Op == syntax.AssignUnset || pe.Exp.Op == syntax.AssignUnsetOrNull {
			j.setText(pe.Param.Value, word, j.pinned)
		}
		return []string{word}, false
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if !null {
			return []string{j.text(pe.Exp.Word)}, false
		}
		return []string{""}, false
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return same()
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix:
		return []string{j.trim(text, j.text(pe.Exp.Word), pe.Exp.Op)}, false
	case syntax.UpperAll:
		return []string{strings.ToUpper(text)}, false
	case syntax.LowerAll:
		return []string{strings.ToLower(text)}, false
	case syntax.UpperFirst:
		return []string{strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]}, false
	case syntax.LowerFirst:
		return []string{strings.ToLower(text[:min(1, len(text))]) + text[min(1, len(text)):]}, false
	}
	return []string{unknown}, false
}

// trim removes a pattern from an end of a text.
func (j *judge) trim(text, pattern string, op syntax.ParExpOperator) string {
	if strings.Contains(pattern, unknown) || strings.Contains(text, unknown) || len(text) > 4096 {
		return unknown
	}
	// Slashes are ordinary here, and are not to path.Match.
	same := strings.NewReplacer("/", "\x02")
	hidden, wild := same.Replace(text), same.Replace(pattern)
	for i := range len(text) + 1 {
		if !j.spend() {
			return unknown
		}
		switch op {
		case syntax.RemSmallPrefix:
			if glob(wild, hidden[:i]) {
				return text[i:]
			}
		case syntax.RemLargePrefix:
			if glob(wild, hidden[:len(text)-i]) {
				return text[len(text)-i:]
			}
		case syntax.RemSmallSuffix:
			if glob(wild, hidden[len(text)-i:]) {
				return text[:len(text)-i]
			}
		case syntax.RemLargeSuffix:
			if glob(wild, hidden[i:]) {
				return text[:i]
			}
		}
	}
	return text
}

// slice is ${x:offset:length}.
func (j *judge) slice(text string, s *syntax.Slice) string {
	if strings.Contains(text, unknown) {
		return unknown
	}
	number := func(x syntax.ArithmExpr, otherwise int) (int, bool) {
		if x == nil {
			return otherwise, true
		}
		negative := 1
		if u, ok := x.(*syntax.UnaryArithm); ok && u.Op == syntax.Minus {
			negative, x = -1, u.X
		}
		word, ok := x.(*syntax.Word)
		if !ok {
			return 0, false
		}
		n, err := strconv.Atoi(j.text(word))
		return negative * n, err == nil
	}
	from, ok1 := number(s.Offset, 0)
	if from < 0 {
		from += len(text)
	}
	from = min(max(from, 0), len(text))
	length, ok2 := number(s.Length, len(text)-from)
	if !ok1 || !ok2 {
		return unknown
	}
	to := from + length
	if length < 0 {
		to = len(text) + length
	}
	return text[from:min(max(to, from), len(text))]
}

// replace is ${x/old/new} of a plain text; a pattern is left to a run.
func (j *judge) replace(text string, r *syntax.Replace) string {
	old, with := j.text(r.Orig), j.text(r.With)
	if strings.Contains(text, unknown) || strings.ContainsAny(old, unknown+"*?[") || old == "" {
		return unknown
	}
	n := 1
	if r.All {
		n = -1
	}
	if strings.Count(text, old)*len(with) > maxValue {
		return unknown
	}
	switch {
	case old[0] == '#' && len(old) > 1:
		if rest, ok := strings.CutPrefix(text, old[1:]); ok {
			return with + rest
		}
		return text
	case old[0] == '%' && len(old) > 1:
		if rest, ok := strings.CutSuffix(text, old[1:]); ok {
			return rest + with
		}
		return text
	}
	return strings.Replace(text, old, with, n)
}
