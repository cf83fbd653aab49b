package corpus

import (
	"strings"
	"unicode/utf8"

	"trajgen/tools/internal/chars"
)

const (
	maxPassage = 300     // characters of a passage
	span       = 240     // bytes in which words of a query count together
	maxLooked  = 1 << 18 // bytes of a text that are looked through for a passage
	lead       = 60      // bytes before the first word in which the passage may begin
	ellipsis   = "…"
	sentence   = ".!?\n。" // what a passage begins after
)

// passage is the part of a text with the most, and the rarest, terms of a query; the beginning of the text where it has none.
func passage(a *analyser, text string, terms []*term) string {
	if len(text) > maxLooked {
		text = strings.ToValidUTF8(text[:maxLooked], "") // without the half of a character
	}
	number := make(map[string]int, len(terms))
	for n, one := range terms {
		number[one.text] = n
	}
	type place struct{ start, end, term int }
	var places []place
	a.each(text, func(text []byte, start, end int) {
		if n, ok := number[string(text)]; ok {
			places = append(places, place{start, min(end, start+span), n})
		}
	})
	from, most := 0, 0.0
	inside := make([]int, len(terms)) // how often each term is in the span
	weight, last := 0.0, 0            // of the span, and the first place behind it
	for _, first := range places {
		for ; last < len(places) && places[last].end-first.start <= span; last++ {
			if inside[places[last].term]++; inside[places[last].term] == 1 {
				weight += terms[places[last].term].weight
			}
		}
		if weight > most+1e-9 {
			from, most = first.start, weight
		}
		if inside[first.term]--; inside[first.term] == 0 {
			weight -= terms[first.term].weight
		}
	}
	return excerpt(text, from)
}

// excerpt is what stands around a place, on one line, from the beginning of a sentence or a word.
func excerpt(text string, at int) string {
	from := 0
	if before := text[max(0, at-lead):at]; at > lead {
		from = at
		if n := strings.LastIndexAny(before, sentence); n >= 0 {
			_, size := utf8.DecodeRuneInString(before[n:])
			from = at - len(before) + n + size
		} else if n := strings.IndexAny(before, " \t"); n >= 0 {
			from = at - len(before) + n + 1
		}
	}
	rest := text[from:]
	shown := strings.Join(strings.Fields(chars.First(rest, 4*maxPassage, "")), " ")
	if from > 0 {
		shown = ellipsis + shown
	}
	if cut := chars.First(shown, maxPassage-1, ""); cut != shown {
		if n := strings.LastIndexByte(cut, ' '); n > len(cut)/2 {
			cut = cut[:n]
		}
		return cut + ellipsis
	}
	return shown
}
