package reward

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"trajgen/pipeline/episode"
)

// mostCompared is how many characters, or words, of a text are compared one by one. What an answer has beyond them is different.
const mostCompared = 100_000

var similar = kind{
	keys:   append([]string{"similar", "measure", "threshold"}, compareKeys...),
	given:  func(check episode.Check) bool { return check.Similar != "" },
	read:   readSimilar,
	verify: ofAnswer(verifySimilar),
}

func readSimilar(check *episode.Check, key string, value Value) (err error) {
	switch key {
	case "similar":
		check.Similar, err = value.Text()
		switch {
		case err == nil && len(words(check.Similar)) == 0:
			err = errors.New("it has no words")
		case utf8.RuneCountInString(check.Similar) > mostCompared:
			err = fmt.Errorf("%d characters, over the limit of %d", utf8.RuneCountInString(check.Similar), mostCompared)
		}
		return err
	case "threshold":
		check.Threshold, err = value.Number()
		if err == nil && !(check.Threshold > 0 && check.Threshold <= 1) {
			err = fmt.Errorf("%v, want a number above 0 and up to 1", check.Threshold)
		}
		return err
	}
	return readChoice(check, key, value)
}

// verifySimilar measures how like a text the answer is.
func verifySimilar(check episode.Check, answer string) (float64, string, error) {
	want, got := inForm(check.Comparison, "ends", check.Similar), inForm(check.Comparison, "ends", answer)
	measure, value := cmp.Or(check.Measure, "levenshtein"), 0.0
	switch measure {
	case "f1":
		value = f1(common(words(want), words(got)), len(words(want)), len(words(got)))
	case "rouge_l":
		a, b := words(want), words(got)
		value = f1(longest(a, b[:min(len(b), mostCompared)]), len(a), len(b))
	default:
		a, b := []rune(want), []rune(got)
		beyond := max(0, len(b)-mostCompared)
		if most := max(len(a), len(b)); most > 0 {
			value = 1 - float64(edits(a, b[:len(b)-beyond])+beyond)/float64(most)
		}
	}
	detail := fmt.Sprintf("%s %.4f of answer %q to %q", measure, value, clip(answer), clip(check.Similar))
	if check.Threshold > 0 {
		return verdict(value >= check.Threshold), fmt.Sprintf("%s, want %v", detail, check.Threshold), nil
	}
	return value, detail, nil
}

// words are those of a text in lower case, without articles and punctuation, as SQuAD counts them.
func words(text string) []string {
	var all []string
	plain := strings.Map(func(r rune) rune {
		if unicode.IsPunct(r) || unicode.IsSymbol(r) {
			return -1
		}
		return r
	}, strings.ToLower(text))
	for word := range strings.FieldsSeq(plain) {
		if word != "a" && word != "an" && word != "the" {
			all = append(all, word)
		}
	}
	return all
}

// f1 is the harmonic mean of the shares that the common words have in two texts.
func f1(common, a, b int) float64 {
	if a+b == 0 {
		return 0
	}
	return 2 * float64(common) / float64(a+b)
}

// common counts the words that two texts share, in any order.
func common(a, b []string) (n int) {
	left := map[string]int{}
	for _, word := range a {
		left[word]++
	}
	for _, word := range b {
		if left[word] > 0 {
			left[word]--
			n++
		}
	}
	return n
}
