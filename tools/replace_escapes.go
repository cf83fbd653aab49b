package tools

import (
	"regexp"
	"strings"
)

// escapes are characters that a model escaped once too often.
type escapes uint8

const (
	lineEscapes  escapes = 1 << iota // \n, \t, \r
	quoteEscapes                     // \" and \'
	slashEscapes                     // \\
	allEscapes   = lineEscapes | quoteEscapes | slashEscapes
)

// findUnescaped finds old after undoing its escapes. It undoes those of new in the same way, unless new shows that it is not
// escaped. Kinds of escape that old does not contain stay open: if they would make different texts of new, the edit is unclear.
func findUnescaped(text, old, new string, work *budget) places {
	var found places
	read := ""
	for how := escapes(1); how <= allEscapes; how++ {
		plain, ok := how.undo(old, true)
		if !ok || plain == old || !work.spend(len(text)/8) || !strings.Contains(text, plain) {
			continue
		}
		at := findExact(text, plain, "", work)
		candidate, ok := how.undo(new, strings.Contains(old, `\\`))
		if how.plainIn(new) {
			candidate, ok = new, true
		}
		if !ok && how&slashEscapes == 0 && doubled.MatchString(new) { // another reading would not ask
			return places{unclear: true}
		}
		// A tab, or the source's own \t: old shows which, if it has one.
		whichTab := how&lineEscapes != 0 && candidate != new && how.innerTab(new) && !how.innerTab(old)
		if !ok || whichTab || escapedOutside(candidate, lineBefore(text, at.edits[0].start), missing(candidate)) {
			found.unclear = true
			continue
		}
		if found.edits != nil && (candidate != read || at.edits[0] != found.edits[0]) {
			return places{unclear: true}
		}
		found.edits, found.overlap, read = at.edits, at.overlap, candidate
	}
	found.unclear = found.unclear && found.edits == nil
	for i := range found.edits {
		found.edits[i].text = read
	}
	return found
}

// doubled matches what escaping makes of \n in a source, and of a line end after a backslash.
var doubled = regexp.MustCompile(`\\\\[ntr]`)

// innerTab reports whether a text with escaped line ends has a \t after the indentation of a line.
func (e escapes) innerTab(text string) bool {
	if e&slashEscapes != 0 {
		text = strings.ReplaceAll(text, `\\`, "") // in \\t there is none
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\n", `\n`), `\n`) {
		for trimmed := ""; trimmed != line; {
			trimmed, line = line, strings.TrimPrefix(strings.TrimLeft(line, " \t"), `\t`)
		}
		if strings.Contains(line, `\t`) {
			return true
		}
	}
	return false
}

// plainIn reports whether a text has characters unescaped that would have been escaped.
func (e escapes) plainIn(text string) bool {
	has := bare(text)
	return e&lineEscapes != 0 && strings.Contains(has, "n") || e&quoteEscapes != 0 && strings.Contains(has, `"`)
}

// undo undoes the escapes of a text. It returns false for a text with such characters unescaped. If backslashes are not
// escaped, a \n within quotes is the source's own; with sure set, the quotes must be unambiguous.
func (e escapes) undo(text string, sure bool) (string, bool) {
	var b strings.Builder
	var q lineQuote
	escaped, plain := 0, 0 // apostrophes, which some models do not escape
	for at := 0; at < len(text); at++ {
		next, size := text[at], 1
		if next == '\\' && at+1 < len(text) {
			next, size = text[at+1], 2
		}
		line := strings.IndexByte("ntr", next)
		switch kept := text[at : at+size]; {
		case line >= 0 && e&lineEscapes != 0 && size == 2 && q != 0 && !sure:
			return "", false
		case size == 1 && next == '\\':
			if e&slashEscapes != 0 {
				return "", false
			}
			b.WriteString(kept)
		case size == 1:
			if next == '\n' && e&lineEscapes != 0 || next == '"' && e&quoteEscapes != 0 {
				return "", false
			}
			if next == '\'' {
				plain++
			}
			q.step(text, at)
			b.WriteString(kept)
		case line >= 0 && size == 2 && e&lineEscapes != 0 && (q == 0 || e&slashEscapes != 0):
			if b.WriteByte("\n\t\r"[line]); next == 'n' {
				q = 0
			}
		case (next == '"' || next == '\'') && e&quoteEscapes != 0:
			if next == '\'' {
				escaped++
			}
			q.step(text, at+1)
			b.WriteByte(next)
		case next == '\\' && e&slashEscapes != 0:
			b.WriteByte(next)
		case next == '\\' && e&quoteEscapes != 0 && at+2 < len(text) && (text[at+2] == '"' || text[at+2] == '\''):
			b.WriteByte(next) // the source's own, before a quote
			size = 1
		case e&slashEscapes != 0, next == '\\' && e&lineEscapes != 0 && at+2 < len(text) && strings.IndexByte("ntr", text[at+2]) >= 0:
			return "", false // a single backslash; or one at the end of a line, or of a \n
		default:
			b.WriteString(kept)
		}
		at += size - 1
	}
	return b.String(), (escaped == 0 || plain == 0) && (q == 0 || e&lineEscapes == 0 || e&slashEscapes != 0)
}

// escapedAnew reports whether new, which replaces old as it is in a file, escapes too much: characters that old has unescaped,
// or characters outside of all quotes that old does not escape there.
func escapedAnew(file, old, new, before string) bool {
	for _, c := range missing(new) {
		char := string(c)
		switch {
		case strings.ContainsRune("nt", c) && strings.Contains(file, `\begin{`): // TeX has \nabla and \textbf
		case c != 'n' && strings.Contains(bare(old), char) && strings.Contains(new, `\`+char),
			escapedOutside(new, before, char) && !escapedOutside(old, before, char):
			return true
		}
	}
	return false
}

// bare returns the quotes and line ends, as n, that a text has without a backslash.
func bare(text string) string {
	const chars = "\"'\n"
	var found [len(chars)]bool
	for at := range len(text) {
		if i := strings.IndexByte(chars, text[at]); i >= 0 && (text[at] == '\n' || at == 0 || text[at-1] != '\\') {
			found[i] = true
		}
	}
	has := ""
	for i := range found {
		if found[i] {
			has += `"'n`[i : i+1]
		}
	}
	return has
}

// missing returns the quotes and line ends that a text does not have, and the tabs, as t.
func missing(text string) string {
	has := bare(text)
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(has, r) {
			return -1
		}
		return r
	}, `"'nt`)
}

// escapedOutside reports whether one of the characters is escaped outside of quotes, which few languages allow, or a tab at the
// beginning of a line. before is the beginning of the text's first line. Where quotes do not pair, every place may be outside.
func escapedOutside(text, before, chars string) bool {
	var q lineQuote
	line, blank, within := before+text, true, false
	for at := 0; at < len(line); at++ {
		if q.step(line, at); line[at] != '\\' {
			blank = line[at] == '\n' || blank && (line[at] == ' ' || line[at] == '\t')
			continue
		}
		if at++; at == len(line) {
			break
		}
		c := line[at]
		if c == '\\' && at+1 < len(line) && line[at+1] == 'n' { // the line continues after an escaped end
			c = 'n'
		}
		if at > len(before) && strings.IndexByte(chars, c) >= 0 && (c != 't' || blank) {
			if q == 0 || (c == '"' || c == '\'') && q != lineQuote(c) {
				return true
			}
			within = true
		}
		blank = blank && (c == 't' || c == 'n')
	}
	return within && q != 0
}

// lineQuote is the quote that encloses a place in a line; 0 outside of all.
type lineQuote byte

func (q *lineQuote) step(text string, at int) {
	switch c := lineQuote(text[at]); {
	case c == '\n':
		*q = 0
	case c != '"' && c != '\'' || c == '\'' && at > 1 && at+1 < len(text) && isWord(rune(text[at-2])) && isWord(rune(text[at-1])) && isWord(rune(text[at+1])):
	case *q == 0:
		*q = c
	case *q == c:
		*q = 0
	}
}

// lineBefore returns the beginning of the line that contains an offset.
func lineBefore(text string, at int) string {
	return text[strings.LastIndexByte(text[:at], '\n')+1 : at]
}
