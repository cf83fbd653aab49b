package tools_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"trajgen/tools"
)

// TestEscapedHunks edits real files with texts that were escaped once too often, as models do, and with some that were
// not: the file becomes what was meant, or the edit is refused.
func TestEscapedHunks(t *testing.T) {
	quotes := strings.NewReplacer(`"`, `\"`).Replace
	lineEnds := strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace
	same := func(text string) string { return text }
	kinds := []struct {
		name     string
		floor    int // percent that must be exact
		old, new func(string) string
	}{
		{"nothing is", 98, same, same},
		{"all", 95, jsonInside, jsonInside},
		{"all, in old alone", 95, jsonInside, same},
		{"all, in new alone", 0, same, jsonInside},
		{"quotes", 95, quotes, quotes},
		{"quotes, in old alone", 95, quotes, same},
		{"quotes, in new alone", 0, same, quotes},
		{"quotes and apostrophes", 95, strings.NewReplacer(`"`, `\"`, `'`, `\'`).Replace, strings.NewReplacer(`"`, `\"`, `'`, `\'`).Replace},
		{"line ends and tabs", 85, lineEnds, lineEnds},
		{"line ends", 85, strings.NewReplacer("\n", `\n`).Replace, strings.NewReplacer("\n", `\n`).Replace},
		{"line ends, in old alone", 95, lineEnds, same},
		{"line ends and quotes", 85, strings.NewReplacer("\n", `\n`, "\t", `\t`, `"`, `\"`).Replace, strings.NewReplacer("\n", `\n`, "\t", `\t`, `"`, `\"`).Replace},
		{"backslashes", 80, strings.NewReplacer(`\`, `\\`).Replace, strings.NewReplacer(`\`, `\\`).Replace},
	}
	type hunk struct{ text, old, new string }
	var hunks []hunk
	for _, f := range realFiles(t) {
		rng := rand.New(rand.NewPCG(hashOf(f.name), 4)) // which another file does not change
		all := strings.SplitAfter(f.text, "\n")
		for range 4 {
			at := rng.IntN(len(all))
			old := strings.Join(all[at:min(len(all), at+1+rng.IntN(6))], "")
			lines := strings.SplitAfter(old, "\n")
			switch i, other := rng.IntN(len(lines)), all[rng.IntN(len(all))]; rng.IntN(3) {
			case 0:
				lines[i] = other
			case 1:
				lines = slices.Insert(lines, i, other)
			case 2:
				lines = slices.Delete(lines, i, i+1)
			}
			new := strings.Join(lines, "")
			if rng.IntN(2) == 0 {
				old, new = strings.TrimSuffix(old, "\n"), strings.TrimSuffix(new, "\n")
			}
			if strings.TrimSpace(old) != "" && old != new && strings.Count(f.text, old) == 1 && !strings.Contains(f.text, "\r") {
				hunks = append(hunks, hunk{f.text, old, new})
			}
		}
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nhunks\texact\trefused\twrong\tfloor\t  escaped once too often\n")
	for _, kind := range kinds {
		var exact, refused, wrong int
		for _, h := range hunks {
			old, new := kind.old(h.old), kind.new(h.new)
			both := kind.old("\"\n\\") == kind.new("\"\n\\")
			switch {
			case kind.name == "nothing is":
			case kind.old("\"") == "\"" && strings.Contains(h.old, `\"`) && !strings.Contains(strings.ReplaceAll(h.old, `\"`, ""), `"`):
				continue // nothing to notice it by
			case both && old == h.old, old == h.old && strings.ReplaceAll(new, `\\`, `\`) == h.new:
				continue // of new alone; and doubled backslashes alone may be meant
			}
			got, err := tools.Replaced(h.text, old, new)
			switch want := strings.Replace(h.text, h.old, h.new, 1); {
			case err != nil:
				refused++
			case got == want:
				exact++
			default:
				if wrong++; wrong <= 3 {
					t.Errorf("%s: %q by %q made %q of %q", kind.name, old, new, strings.TrimSuffix(strings.TrimPrefix(got, h.text[:strings.Index(h.text, h.old)]), h.text[strings.Index(h.text, h.old)+len(h.old):]), h.old)
				}
			}
		}
		all := exact + refused + wrong
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d %%\t  %s\n", all, exact, refused, wrong, kind.floor, kind.name)
		if 100*exact < kind.floor*all || all < 30 {
			t.Errorf("%s: %d of %d hunks are exact, want %d %%", kind.name, exact, all, kind.floor)
		}
	}
	w.Flush()
	t.Log(table.String())
}
