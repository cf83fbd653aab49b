package scripted

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"trajgen/pipeline/episode"
)

// ofAnswer is what of a check the server keeps, if that looks at the answer alone. Texts are kept in their widest form.
func ofAnswer(check episode.Check) (kept episode.Check, ok bool) {
	kept = episode.Check{Number: check.Number, Tolerance: check.Tolerance, Relative: check.Relative, Unit: strings.Clone(check.Unit), Regex: strings.Clone(check.Regex)}
	for _, text := range check.Exact {
		kept.Exact = append(kept.Exact, widest(text))
	}
	for _, text := range check.Contains {
		kept.Contains = append(kept.Contains, widest(text))
	}
	kept.Similar = widest(check.Similar)
	if check.JSON != nil && check.JSON.File == "" {
		kept.JSON = &episode.JSONCheck{}
	}
	return kept, kept.Number != nil || kept.Regex != "" || kept.Exact != nil || kept.Contains != nil || kept.Similar != "" || kept.JSON != nil
}

// widest is a text in a form in which all are alike that any comparison takes to be alike.
func widest(text string) string {
	return strings.Join(strings.Fields(cases.Fold().String(norm.NFKC.String(text))), " ")
}

var anyNumber = regexp.MustCompile(`-?[0-9][0-9,_]*(\.[0-9]+)?([eE][-+]?[0-9]+)?`)

// couldScore reports whether an answer might satisfy a check; in doubt it might.
func (sc *script) couldScore(answer string) bool {
	text := widest(answer)
	in := func(want string) bool { return strings.Contains(text, want) }
	return slices.ContainsFunc(sc.checks, func(check episode.Check) bool {
		switch {
		case check.Exact != nil:
			return slices.Contains(check.Exact, text)
		case check.Contains != nil: // one of several may be enough
			return slices.ContainsFunc(check.Contains, in)
		case check.Number != nil: // wider than any verifier, and every number counts instead of the last one
			return slices.ContainsFunc(anyNumber.FindAllString(text, -1), func(found string) bool {
				n, err := strconv.ParseFloat(strings.NewReplacer(",", "", "_", "").Replace(found), 64)
				size := math.Abs(*check.Number)
				return err != nil || check.Unit != "" || math.Abs(n-*check.Number) <= check.Tolerance+check.Relative*size+1e-6*max(1, size)
			})
		case check.Similar != "":
			return in(check.Similar)
		case check.JSON != nil:
			return strings.ContainsAny(text, `{["0123456789`) || in("true") || in("false") || in("null")
		}
		re, err := regexp.Compile(check.Regex)
		return err != nil || re.MatchString(answer)
	})
}
