package corpus

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	porterstemmer "github.com/blevesearch/go-porterstemmer"
	"golang.org/x/text/unicode/norm"
)

// Plain and English are the analysers, which make terms of a text.
const (
	Plain   = "plain"   // NFKC, lower case, letters and digits
	English = "english" // the same, without stop words, and stemmed as Porter does
)

// Analysers are the names of all.
func Analysers() []string { return []string{Plain, English} }

// stopWords are Lucene's, with what the apostrophes of don't and it's leave.
var stopWords = map[string]bool{}

func init() {
	for _, word := range strings.Fields(`a an and are as at be but by for if in into is it no not of on or such
		that the their then there these they this to was will with s t`) {
		stopWords[word] = true
	}
}

// maxTerm bounds a term in bytes; a longer one is several.
const maxTerm = 256

// analyser makes terms. It is for one goroutine.
type analyser struct {
	english    bool
	yield      func(term []byte, start, end int)
	start, end int // of the word in the text
	word       []byte
	form       []byte
	runes      []rune
}

func newAnalyser(name string) (*analyser, error) {
	switch name {
	case Plain, English:
		return &analyser{english: name == English}, nil
	}
	return nil, fmt.Errorf("unknown analyser %q (have %s)", name, strings.Join(Analysers(), ", "))
}

// lower is the lower case of ASCII's letters and digits, and 0 of its other characters.
var lower = func() (table [utf8.RuneSelf]byte) {
	for c := range table {
		if r := rune(c); unicode.IsLetter(r) || unicode.IsDigit(r) {
			table[c] = byte(unicode.ToLower(r))
		}
	}
	return table
}()

// each yields the terms of a text with the place in the text of the word that they come from. A term is good until the next one.
func (a *analyser) each(text string, yield func(term []byte, start, end int)) {
	a.yield = yield
	for at := 0; at < len(text); {
		start, ascii := at, true
		for at < len(text) {
			if c := text[at]; c < utf8.RuneSelf {
				if lower[c] == 0 {
					break
				}
				at++
				continue
			}
			r, size := utf8.DecodeRuneInString(text[at:])
			if unicode.IsSpace(r) || unicode.IsPunct(r) || r == utf8.RuneError {
				break
			}
			alone := stands(r)
			if alone && at > start {
				break
			}
			ascii = false // a symbol may have letters in its normal form, as ™ has
			at += size
			if alone {
				at += marks(text[at:])
				break
			}
		}
		a.start, a.end = start, at
		switch {
		case at == start:
			_, size := utf8.DecodeRuneInString(text[at:])
			at += size
		case ascii:
			a.ascii(text[start:at])
		default:
			a.beyond(text[start:at])
		}
	}
}

func (a *analyser) ascii(word string) {
	for i := range len(word) {
		if len(a.word) == maxTerm {
			a.emit()
		}
		a.word = append(a.word, lower[word[i]])
	}
	a.emit()
}

// stands says whether a character is a term by itself: an ideograph or a Hiragana, whose languages have no spaces.
func stands(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana) }

// marks is the length of the combining marks that a text begins with.
func marks(text string) int {
	if end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsMark(r) }); end >= 0 {
		return end
	}
	return len(text)
}

// beyond makes terms of a word with characters beyond ASCII, in its normal form.
func (a *analyser) beyond(word string) {
	a.form = norm.NFKC.AppendString(a.form[:0], word)
	for form := a.form; len(form) > 0; {
		r, size := utf8.DecodeRune(form)
		form = form[size:]
		alone := stands(r)
		part := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) && len(a.word) > 0
		if alone || !part || len(a.word)+utf8.UTFMax > maxTerm {
			a.emit()
		}
		if part {
			a.word = utf8.AppendRune(a.word, unicode.ToLower(r))
		}
		if alone {
			a.emit()
		}
	}
	a.emit()
}

// emit yields the word as a term, unless there is none.
func (a *analyser) emit() {
	term := a.word
	a.word = a.word[:0]
	if len(term) == 0 || a.english && stopWords[string(term)] {
		return
	}
	if a.english {
		term = a.stem(term)
	}
	a.yield(term, a.start, a.end)
}

// stem leaves words with letters beyond ASCII as they are, for which Porter has no rules.
func (a *analyser) stem(term []byte) []byte {
	a.runes = a.runes[:0]
	for _, c := range term {
		if c >= utf8.RuneSelf {
			return term
		}
		a.runes = append(a.runes, rune(c))
	}
	stem := porterstemmer.StemWithoutLowerCasing(a.runes)
	term = term[:0]
	for _, r := range stem {
		term = append(term, byte(r))
	}
	return term
}
