package search

import (
	"bytes"
	"regexp/syntax"
	"unicode/utf8"
)

// starts is what a program tells of where its matches begin.
type starts struct {
	words, begins bool        // it asks for the borders of words, for the beginning of lines
	anchored      bool        // every match begins where a line does
	first         *[256]uint8 // not 0 for each byte with which one may begin; nil when it is not worth to look for them
}

// maxFirst is how many characters are worth to be looked for.
const maxFirst = 40

func startsOf(prog *syntax.Prog) starts {
	const words, begins = syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary, syntax.EmptyBeginLine | syntax.EmptyBeginText
	var s starts
	for i := range prog.Inst {
		if inst := &prog.Inst[i]; inst.Op == syntax.InstEmptyWidth {
			s.words = s.words || syntax.EmptyOp(inst.Arg)&words != 0
			s.begins = s.begins || syntax.EmptyOp(inst.Arg)&begins != 0
		}
	}
	unanchored, empty := reached(prog, ^begins)
	s.anchored = len(unanchored) == 0 && !empty
	if found, empty := reached(prog, ^syntax.EmptyOp(0)); !empty && !s.anchored {
		s.first = firstBytes(found)
	}
	return s
}

// reached is what can be tried at the first character when all that is asked for holds, if it is among these, and
// whether nothing need be.
func reached(prog *syntax.Prog, holds syntax.EmptyOp) (found []*syntax.Inst, empty bool) {
	stack, seen := []uint32{uint32(prog.Start)}, make([]bool, len(prog.Inst))
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch inst := &prog.Inst[pc]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^holds == 0 {
				stack = append(stack, inst.Out)
			}
		case syntax.InstMatch:
			empty = true
		case syntax.InstFail:
		default:
			found = append(found, inst)
		}
	}
	return found, empty
}

func firstBytes(found []*syntax.Inst) *[256]uint8 {
	var first [256]uint8
	n := 0
	for c := range rune(utf8.RuneSelf) {
		for _, inst := range found {
			if c != '\n' && inst.MatchRune(c) {
				first[c] = 1
				n++
				break
			}
		}
	}
	if n > maxFirst {
		return nil
	}
	for _, inst := range found {
		if beyondASCII(inst) {
			for c := utf8.RuneSelf; c < len(first); c++ {
				first[c] = 1
			}
		}
	}
	return &first
}

func beyondASCII(inst *syntax.Inst) bool {
	switch {
	case inst.Op == syntax.InstRuneAny, inst.Op == syntax.InstRuneAnyNotNL:
		return true
	case len(inst.Rune) == 1: // with fold K and s have equals
		return inst.Rune[0] >= utf8.RuneSelf || inst.MatchRune('\u212A') || inst.MatchRune('\u017F')
	}
	return len(inst.Rune) > 0 && inst.Rune[len(inst.Rune)-1] >= utf8.RuneSelf
}

// skip is the next offset at which a match may begin where nothing has begun to, or the text's length.
func (s *starts) skip(text []byte, at int) int {
	if s.anchored {
		if at < len(text) && at > 0 && text[at-1] != '\n' {
			return lineEnd(text, at)
		}
		return at
	}
	first := s.first
	for ; at+8 <= len(text); at += 8 {
		b := text[at : at+8 : at+8]
		if first[b[0]]|first[b[1]]|first[b[2]]|first[b[3]]|first[b[4]]|first[b[5]]|first[b[6]]|first[b[7]] != 0 {
			break
		}
	}
	for at < len(text) && first[text[at]] == 0 {
		at++
	}
	return at
}

// lineEnd is where the line after the one that holds an offset begins.
func lineEnd(text []byte, at int) int {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}
