package policy

import (
	"fmt"
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

// braces expands {a,b} and {1..3} into as many lists of parts.
func (j *judge) braces(word *syntax.Word) [][]syntax.WordPart {
	if !syntax.SplitBraces(word) && !slices.ContainsFunc(word.Parts, isBrace) {
		return [][]syntax.WordPart{word.Parts}
	}
	return j.expandBraces(word.Parts)
}

func isBrace(part syntax.WordPart) bool {
	_, ok := part.(*syntax.BraceExp)
	return ok
}

func (j *judge) expandBraces(parts []syntax.WordPart) [][]syntax.WordPart {
	all := [][]syntax.WordPart{nil}
	defer func() { j.depth-- }()
	if !j.enter() {
		return all
	}
	n := 0
	for _, part := range parts {
		if isBrace(part) {
			n++
		}
	}
	if n > 12 {
		return [][]syntax.WordPart{{&syntax.Lit{Value: unknown}}}
	}
	for _, part := range parts {
		brace, ok := part.(*syntax.BraceExp)
		if !ok {
			for i := range all {
				all[i] = append(all[i], part)
			}
			continue
		}
		var next [][]syntax.WordPart
		for _, option := range j.options(brace) {
			for _, head := range all {
				if len(next) < maxWords {
					next = append(next, append(slices.Clip(slices.Clone(head)), option...))
				}
			}
		}
		all = next
	}
	return all
}

// options are what a brace expression stands for.
func (j *judge) options(brace *syntax.BraceExp) [][]syntax.WordPart {
	var all [][]syntax.WordPart
	if !brace.Sequence {
		for _, elem := range brace.Elems {
			all = append(all, j.expandBraces(elem.Parts)...)
		}
		return all[:min(len(all), maxWords)]
	}
	from, to := brace.Elems[0].Lit(), brace.Elems[1].Lit()
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	letters := err1 != nil && err2 != nil && len(from) == 1 && len(to) == 1
	if letters {
		first, last = int(from[0]), int(to[0])
	} else if err1 != nil || err2 != nil {
		return [][]syntax.WordPart{{&syntax.Lit{Value: fmt.Sprintf("{%s..%s}", from, to)}}}
	}
	step := 1
	if last < first {
		step = -1
	}
	for n := first; len(all) < maxTurns; n += step {
		text := strconv.Itoa(n)
		if letters {
			text = string(rune(n))
		}
		all = append(all, []syntax.WordPart{&syntax.Lit{Value: text}})
		if n == last {
			break
		}
	}
	return all
}
