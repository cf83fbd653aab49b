package reward

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestDistances compares with what the definitions say, cell by cell.
func TestDistances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Map(rapid.SliceOfN(rapid.RuneFrom([]rune("abc")), 0, 300), func(r []rune) string { return string(r) })
		a, b := []rune(text.Draw(t, "a")), []rune(text.Draw(t, "b"))
		if got, want := edits(a, b), cells(a, b, true); got != want {
			t.Errorf("edits = %d, want %d", got, want)
		}
		if got, want := longest(a, b), cells(a, b, false); got != want {
			t.Errorf("longest = %d, want %d", got, want)
		}
	})
}

func cells(a, b []rune, distance bool) int {
	row := make([]int, len(b)+1)
	for j := range row {
		if distance {
			row[j] = j
		}
	}
	for i := range a {
		before := row[0]
		if distance {
			row[0] = i + 1
		}
		for j := range b {
			above := row[j+1]
			switch {
			case a[i] == b[j] && distance:
				row[j+1] = before
			case a[i] == b[j]:
				row[j+1] = before + 1
			case distance:
				row[j+1] = 1 + min(before, above, row[j])
			default:
				row[j+1] = max(above, row[j])
			}
			before = above
		}
	}
	return row[len(b)]
}

// BenchmarkLongTexts has the longest texts that are compared, of one letter and of many words.
func BenchmarkLongTexts(b *testing.B) {
	for name, text := range map[string]string{"letter": strings.Repeat("a", mostCompared), "words": strings.Repeat("the quick brown fox; ", mostCompared/21)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				edits([]rune(text), []rune(text[1:]))
			}
		})
	}
}
