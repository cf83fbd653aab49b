package tools

import (
	"slices"
	"strings"
)

// indentMap maps indentations of the model to those of the file.
type indentMap struct {
	pairs  []indentPair
	begins bool // the first pair is of the first line
}

type indentPair struct {
	model, file string
	torn        bool // the file has several for it
}

// maxIndents is more than a hand-written text has.
const maxIndents = 64

// newIndentMap compares the indentation of the same lines as the model wrote them (old) and as the file has them (found). With
// partial set, the first line begins within a line.
func newIndentMap(old, found []string, partial bool) (m indentMap) {
	if len(old) != len(found) {
		return m
	}
	for i := range old {
		if i == 0 && partial || strings.TrimSpace(old[i]) == "" {
			continue
		}
		m.begins = m.begins || i == 0
		model, file := indentOf(old[i]), indentOf(found[i])
		if known := m.find(model); known >= 0 {
			m.pairs[known].torn = m.pairs[known].torn || m.pairs[known].file != file
		} else if len(m.pairs) < maxIndents {
			m.pairs = append(m.pairs, indentPair{model: model, file: file})
		}
	}
	return m
}

func (m indentMap) find(model string) int {
	return slices.IndexFunc(m.pairs, func(pair indentPair) bool { return pair.model == model })
}

// around adds indentations of another map that this one lacks.
func (m *indentMap) around(other indentMap) {
	for _, pair := range other.pairs {
		if m.find(pair.model) < 0 {
			m.pairs = append(m.pairs, pair)
		}
	}
}

// same reports whether the model's indentation is that of the file.
func (m indentMap) same() bool {
	return !slices.ContainsFunc(m.pairs, func(pair indentPair) bool { return pair.model != pair.file || pair.torn })
}

// apply replaces the model's indentation in a new text by the file's. It returns false when the mapping is ambiguous: lines
// with one indentation of the model have several in the file. For the first line, the first pair decides.
func (m indentMap) apply(text string, partial bool) (string, bool) {
	if m.same() {
		return text, true
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i == 0 && partial || strings.TrimSpace(line) == "" {
			continue
		}
		indent := indentOf(line)
		changed, sure := m.translate(indent)
		if !sure && !(i == 0 && m.begins && indent == m.pairs[0].model) {
			return "", false
		}
		lines[i] = changed + line[len(indent):]
	}
	return strings.Join(lines, "\n"), true
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// translate finds the nearest known indentation and adds the difference.
func (m indentMap) translate(indent string) (file string, sure bool) {
	var inner, outer *indentPair
	for i, pair := range m.pairs {
		if strings.HasPrefix(indent, pair.model) && (inner == nil || len(pair.model) > len(inner.model)) {
			inner = &m.pairs[i]
		}
		if strings.HasPrefix(pair.model, indent) && (outer == nil || len(pair.model) < len(outer.model)) {
			outer = &m.pairs[i]
		}
	}
	switch {
	case inner != nil:
		return inner.file + m.unit(indent[len(inner.model):]), !inner.torn
	case outer != nil:
		if less, ok := strings.CutSuffix(outer.file, m.unit(outer.model[len(indent):])); ok {
			return less, !outer.torn
		}
	}
	return indent, true
}

// unit turns further indentation by spaces into tabs when the known pairs show how many spaces a tab is.
func (m indentMap) unit(more string) string {
	for _, pair := range m.pairs {
		spaces, tabs := len(pair.model), len(pair.file)
		if spaces == 0 || tabs == 0 || strings.Trim(pair.model, " ") != "" || strings.Trim(pair.file, "\t") != "" || spaces%tabs != 0 {
			continue
		}
		if size := spaces / tabs; strings.Trim(more, " ") == "" && len(more)%size == 0 {
			return strings.Repeat("\t", len(more)/size)
		}
	}
	return more
}
