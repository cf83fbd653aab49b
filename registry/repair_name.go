package registry

import "strings"

// A name that no tool has is taken for the one that it resembles, if there is only one such: models write the names of
// the tools that they were trained with.
const (
	alike    = 0.7  // of the letters in common
	slip     = 0.9  // for a tool that cannot be had anyway: no more than a slip
	clearly  = 0.08 // ahead of the next, as edit_file is as near to read_file as to write_file
	longName = 64   // of OpenAI's API; nobody means more

	shortName = 5 // half of a shorter one is chance
)

// meant finds the name that was meant, "" when none or more than one could be.
func (t *Toolset) meant(name string) string {
	for _, spelling := range spellingsOf(name) {
		if found, ok := t.bare[spelling]; ok {
			return found
		}
	}
	short := bare(cutName(name))
	if found := t.closest(short, alike, func(name string) bool { return t.tools[name] != nil }); found != "" {
		return found
	}
	return t.closest(short, slip, func(name string) bool { return t.missing[name] != "" })
}

// spellingsOf are a name as it is but for case and separators, without what follows it by mistake, and without the word
// tool behind it, which some models write even twice.
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

// cutName drops what a model writes behind a name when it loses its place: a quote, a tag, the arguments.
func cutName(name string) string {
	name = strings.TrimLeft(name, "\"'`<> \n")
	if i := strings.IndexAny(name, "\"'`<>(){}\n|,:"); i >= 0 {
		name = name[:i]
	}
	return name
}

// closest is the bare name's nearest neighbour among some tools, if it is near and the next is not.
func (t *Toolset) closest(short string, least float64, among func(name string) bool) string {
	if len(short) < shortName || len(short) > longName {
		return ""
	}
	best, first, second := "", 0.0, 0.0
	for _, other := range sortedKeys(t.bare) {
		most := 2 * float64(min(len(short), len(other))) / float64(len(short)+len(other))
		if most < second || most < least-clearly || !among(t.bare[other]) {
			continue
		}
		switch likeness := similar(short, other); {
		case likeness > first:
			best, first, second = t.bare[other], likeness, first
		case likeness > second:
			second = likeness
		}
	}
	if first < least || first-second < clearly {
		return ""
	}
	return best
}

// similar is the share of two texts that is in common: the longest run of letters that both have, and what is in common
// before and after it.
func similar(a, b string) float64 {
	return 2 * float64(common(a, b)) / float64(len(a)+len(b))
}

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
