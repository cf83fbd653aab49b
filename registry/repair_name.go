package registry

import (
	"strings"

	"trajgen/pipeline/where/nearest"
)

// The lengths of names that are corrected. A shorter name with a letter more or less may be another name.
const (
	shortName = 5
	longName  = 64 // of OpenAI's API
)

// meant finds the tool whose name differs only in spelling, or by one letter too many or too few after the first; "" if there is
// none or more than one. A similar name is another tool: execute_command is not execute_code. The name of an unavailable tool may
// also have a wrong letter, as no call runs then.
func (t *Toolset) meant(name string) string {
	for _, spelling := range spellingsOf(name) {
		if found, ok := t.bare[spelling]; ok {
			return found
		}
	}
	short, found := bare(cutName(name)), ""
	if len(short) < shortName || len(short) > longName {
		return ""
	}
	for other, tool := range t.bare {
		longer := len(other) - len(short)
		if other == "" || other[0] != short[0] || longer < -1 || longer > 1 || longer == 0 && t.tools[tool] != nil {
			continue
		}
		if nearest.Edits(short, other) > 1 {
			continue
		}
		if found != "" || tool == "" {
			return ""
		}
		found = tool
	}
	return found
}

// spellingsOf are a name without case and separators, without text that follows it by mistake, and without the suffix tool, which
// some models write even twice.
func spellingsOf(name string) []string {
	all := []string{bare(name)}
	last := bare(cutName(name))
	for range 3 {
		if last != all[len(all)-1] && last != "" {
			all = append(all, last)
		}
		last = strings.TrimSuffix(last, "tool")
	}
	return all
}

// cutName drops text that models write after a name by mistake: a quote, a tag, the arguments.
func cutName(name string) string {
	name = strings.TrimLeft(name, "\"'`<> \n")
	if i := strings.IndexAny(name, "\"'`<>(){}\n|,:"); i >= 0 {
		name = name[:i]
	}
	return name
}

// alike is the share of the letters that a name has in common with the one that is suggested for it.
const alike = 0.6

// suggestion is the name that the model most likely meant, or "" if none is similar.
func suggestion(name string, among []string) string {
	short := bare(cutName(name))
	if len(short) > longName {
		return ""
	}
	best, most := "", alike
	for _, other := range among {
		name := bare(other)
		if share := 2 * float64(common(short, name)) / float64(len(short)+len(name)); share > most {
			best, most = other, share
		}
	}
	return best
}

// common counts what two texts have in common: the longest run of letters that both have, and what is in common before and after it.
func common(a, b string) int {
	at, in, size := 0, 0, 0
	row := make([]int, len(b)+1) // the run that ends here, of the letter of a before
	for i := range len(a) {
		diagonal := 0
		for j := range len(b) {
			above := row[j+1]
			row[j+1] = 0
			if a[i] == b[j] {
				row[j+1] = diagonal + 1
				if row[j+1] > size {
					size = row[j+1]
					at, in = i+1-size, j+1-size
				}
			}
			diagonal = above
		}
	}
	if size == 0 {
		return 0
	}
	return size + common(a[:at], b[:in]) + common(a[at+size:], b[in+size:])
}
