package reward

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/where/nearest"
)

// compareKeys go with the kinds of checks that compare the answer with texts.
var compareKeys = []string{"case", "trim", "unicode"}

// choices are the values of keys that have a few, the default first where it is the same for all kinds.
var choices = map[string][]string{
	"case":    {"keep", "ignore"},
	"trim":    {"ends", "all", "none"},
	"unicode": {"none", "nfc", "nfkc"},
	"match":   {"all", "any"},
	"measure": {"levenshtein", "f1", "rouge_l"},
}

// readChoice takes the value of one of these keys.
func readChoice(check *episode.Check, key string, value Value) error {
	text, err := value.Text()
	if err != nil {
		return err
	}
	if have := choices[key]; !slices.Contains(have, text) {
		return unknown("value", text, have)
	}
	*map[string]*string{"case": &check.Case, "trim": &check.Trim, "unicode": &check.Unicode, "match": &check.Match, "measure": &check.Measure}[key] = text
	return nil
}

// unknown says what was probably meant.
func unknown(what, name string, have []string) error {
	meant := ""
	if near := nearest.To(name, have); near != "" {
		meant = fmt.Sprintf(", did you mean %q?", near)
	}
	return fmt.Errorf("unknown %s %q%s (have %s)", what, name, meant, strings.Join(have, ", "))
}

// readTexts takes a string, or a list of them.
func readTexts(value Value) (episode.Texts, error) {
	texts, err := value.Texts()
	if err == nil && slices.ContainsFunc(texts, func(text string) bool { return strings.TrimSpace(text) == "" }) {
		err = errors.New("it is empty, and would let silence pass")
	}
	if err == nil && len(texts) == 0 {
		err = errors.New("an empty list, want a string or a list of strings")
	}
	return texts, err
}

// inForm is a text in the form in which a check compares it; trim is the kind's default.
func inForm(c episode.Comparison, trim, text string) string {
	switch c.Unicode {
	case "nfc":
		text = norm.NFC.String(text)
	case "nfkc":
		text = norm.NFKC.String(text)
	}
	if c.Case == "ignore" {
		text = cases.Fold().String(text)
	}
	switch cmp.Or(c.Trim, trim) {
	case "ends":
		text = strings.TrimSpace(text)
	case "all":
		text = strings.Join(strings.Fields(text), " ")
	}
	return text
}
