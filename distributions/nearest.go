package distributions

import "fmt"

func unknownToolset(distribution, toolset string, known func(string) bool) error {
	if near, ok := nearestKnown(toolset, known); ok {
		return fmt.Errorf("distribution %q: unknown toolset %q, did you mean %q?", distribution, toolset, near)
	}
	return fmt.Errorf("distribution %q: unknown toolset %q", distribution, toolset)
}

// nearestKnown finds a known toolset within two slips of one of the reference's toolsets, or one slip of any other:
// known only answers questions, so every spelling that is one slip away is asked for.
func nearestKnown(toolset string, known func(string) bool) (string, bool) {
	var candidates []string
	for _, d := range reference {
		for _, share := range d.Toolsets {
			if known(share.Toolset) {
				candidates = append(candidates, share.Toolset)
			}
		}
	}
	if len(toolset) <= 40 {
		for _, spelling := range oneSlip(toolset) {
			if known(spelling) {
				candidates = append(candidates, spelling)
			}
		}
	}
	return nearest(toolset, candidates)
}

// oneSlip lists the spellings with one letter dropped, swapped with its neighbour, replaced or put in.
func oneSlip(word string) []string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789_-"
	var list []string
	for i := range len(word) + 1 {
		head, tail := word[:i], word[i:]
		if len(tail) > 0 {
			list = append(list, head+tail[1:])
		}
		if len(tail) > 1 {
			list = append(list, head+string(tail[1])+string(tail[0])+tail[2:])
		}
		for _, letter := range letters {
			list = append(list, head+string(letter)+tail)
			if len(tail) > 0 {
				list = append(list, head+string(letter)+tail[1:])
			}
		}
	}
	return list
}

// nearest is the candidate with the fewest slips from word, at most two, and fewer than the word has letters.
func nearest(word string, candidates []string) (string, bool) {
	best, bestDistance := "", min(3, len(word))
	for _, candidate := range candidates {
		if distance := slips(word, candidate); distance < bestDistance {
			best, bestDistance = candidate, distance
		}
	}
	return best, best != ""
}

// slips is the optimal string alignment distance: drops, insertions, replacements and swaps of neighbours.
func slips(a, b string) int {
	before, previous := []int(nil), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(previous[j]+1, row[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, previous = previous, row
	}
	return previous[len(b)]
}
