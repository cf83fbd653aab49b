package tools

import "strings"

// newIndentMap learns how the file indents: old and found are the same lines as the model and as the file have them.
// With partial set, the first line begins within a line.
func newIndentMap(old, found []string, partial bool) indentMap {
	m := indentMap{}
	if len(old) != len(found) {
		return m
	}
	for i := range old {
		if i == 0 && partial || strings.TrimSpace(old[i]) == "" {
			continue
		}
		if model := indentOf(old[i]); !m.has(model) && len(m.pairs) < maxIndents {
			m.pairs = append(m.pairs, [2]string{model, indentOf(found[i])})
		}
	}
	return m
}

// apply gives the lines of a new text the indentation of the file where the model wrote another one.
func (m indentMap) apply(text string, partial bool) string {
	if m.same() {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i == 0 && partial || strings.TrimSpace(line) == "" {
			continue
		}
		indent := indentOf(line)
		lines[i] = m.translate(indent) + line[len(indent):]
	}
	return strings.Join(lines, "\n")
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// maxIndents is more than any text has that a person wrote.
const maxIndents = 64

// indentMap holds which indentation of the model is which of the file.
type indentMap struct{ pairs [][2]string }

func (m *indentMap) has(model string) bool {
	for _, pair := range m.pairs {
		if pair[0] == model {
			return true
		}
	}
	return false
}

func (m *indentMap) same() bool {
	for _, pair := range m.pairs {
		if pair[0] != pair[1] {
			return false
		}
	}
	return true
}

// translate finds the nearest known indentation and carries the difference over.
func (m *indentMap) translate(indent string) string {
	var inner, outer *[2]string
	for i, pair := range m.pairs {
		if strings.HasPrefix(indent, pair[0]) && (inner == nil || len(pair[0]) > len(inner[0])) {
			inner = &m.pairs[i]
		}
		if strings.HasPrefix(pair[0], indent) && (outer == nil || len(pair[0]) < len(outer[0])) {
			outer = &m.pairs[i]
		}
	}
	switch {
	case inner != nil:
		return inner[1] + m.unit(indent[len(inner[0]):])
	case outer != nil:
		if less, ok := strings.CutSuffix(outer[1], m.unit(outer[0][len(indent):])); ok {
			return less
		}
	}
	return indent
}

// unit turns further indentation by spaces into tabs when the known pairs say how many spaces a tab is.
func (m *indentMap) unit(more string) string {
	for _, pair := range m.pairs {
		spaces, tabs := len(pair[0]), len(pair[1])
		if spaces == 0 || tabs == 0 || strings.Trim(pair[0], " ") != "" || strings.Trim(pair[1], "\t") != "" || spaces%tabs != 0 {
			continue
		}
		if size := spaces / tabs; strings.Trim(more, " ") == "" && len(more)%size == 0 {
			return strings.Repeat("\t", len(more)/size)
		}
	}
	return more
}
