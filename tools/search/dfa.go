package search

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"regexp/syntax"
	"slices"
)

// automaton decides whether lines match, several times faster than package regexp does: its states are made when they
// are first met, and kept. It knows ASCII; a line with other characters is left to the regexp. It belongs to one
// goroutine.
type automaton struct {
	prog *syntax.Prog
	slow *regexp.Regexp

	next   []int32 // by state and byte: a state, or one of the answers below
	states []set
	ids    map[string]int32
	resets int

	stack, pcs []uint32 // scratch
	seen       []bool
}

// set is a state: the instructions that are to be tried at the next byte, and what was before it.
type set struct {
	pcs  []uint32
	prev rune // of its class: -1 at the beginning of a line, 'a' after a word's character, ' ' after another
}

// What next holds beside states, which count from 1.
const (
	unknown int32 = 0
	yes     int32 = -1 // the line matches
	no      int32 = -2 // it ended and does not
)

// The bounds of an automaton. What exceeds them is left to the regexp.
const (
	maxProgram = 2000
	maxStates  = 4096
	maxResets  = 8
)

// newAutomaton is nil for a pattern that is too large.
func newAutomaton(pattern *syntax.Regexp, slow *regexp.Regexp) *automaton {
	prog, err := syntax.Compile(pattern.Simplify())
	if err != nil || len(prog.Inst) > maxProgram {
		return nil
	}
	a := &automaton{prog: prog, slow: slow, seen: make([]bool, len(prog.Inst))}
	a.reset()
	return a
}

func (a *automaton) reset() {
	a.next, a.states, a.ids = make([]int32, 128), make([]set, 1), map[string]int32{}
	a.state([]uint32{uint32(a.prog.Start)}, -1) // the first state is the beginning of a line
}

// state is the number of a set of instructions.
func (a *automaton) state(pcs []uint32, prev rune) int32 {
	slices.Sort(pcs)
	key := make([]byte, 0, 4*len(pcs)+1)
	for _, pc := range pcs {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	key = append(key, byte(prev))
	if id, ok := a.ids[string(key)]; ok {
		return id
	}
	id := int32(len(a.states))
	a.states = append(a.states, set{slices.Clone(pcs), prev})
	a.next = append(a.next, make([]int32, 128)...)
	a.ids[string(key)] = id
	return id
}

// step is what follows a state at a character; -1 is the end of the line.
func (a *automaton) step(id int32, c rune) int32 {
	from := a.states[id]
	flags := syntax.EmptyOpContext(from.prev, c)
	a.stack, a.pcs = append(a.stack[:0], from.pcs...), a.pcs[:0]
	clear(a.seen)
	matched := false
	for len(a.stack) > 0 {
		pc := a.stack[len(a.stack)-1]
		a.stack = a.stack[:len(a.stack)-1]
		if a.seen[pc] {
			continue
		}
		a.seen[pc] = true
		inst := &a.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			a.stack = append(a.stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			a.stack = append(a.stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^flags == 0 {
				a.stack = append(a.stack, inst.Out)
			}
		case syntax.InstMatch:
			matched = true
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if c >= 0 && inst.MatchRune(c) && !slices.Contains(a.pcs, inst.Out) {
				a.pcs = append(a.pcs, inst.Out)
			}
		}
	}
	switch {
	case matched:
		return yes
	case c < 0:
		return no
	}
	if start := uint32(a.prog.Start); !slices.Contains(a.pcs, start) {
		a.pcs = append(a.pcs, start) // a match may begin anywhere
	}
	prev := ' '
	if syntax.IsWordChar(c) {
		prev = 'a'
	}
	return a.state(a.pcs, prev)
}

// find returns where the first line that matches begins, and where the line after it does; -1 when there is none. The
// text consists of whole lines, the last of which may lack its end.
func (a *automaton) find(text []byte) (start, end int) {
	for i := 0; i < len(text); {
		if a.resets > maxResets {
			return a.findSlowly(text, i)
		}
		line := i
		matched, at := a.line(text, i)
		i = lineEnd(text, at)
		if matched {
			return line, i
		}
	}
	return -1, -1
}

// line runs over lines from i, and stops at one that matches, or that has to be looked at by itself, which it does.
func (a *automaton) line(text []byte, i int) (matched bool, at int) {
	id := int32(1)
	next := a.next
	begin := i
	for ; i < len(text); i++ {
		c := text[i]
		if c >= 0x80 {
			return a.slow.Match(trimEnd(text[begin:lineEnd(text, i)])), i
		}
		to := next[int(id)<<7|int(c)]
		if to > 0 {
			id = to
			continue
		}
		if to == unknown {
			to = a.learn(id, c, i+1 == len(text) || text[i+1] == '\n')
			next = a.next
		}
		switch {
		case to == yes:
			return true, i
		case to == no:
			return false, i
		}
		id = to
	}
	return a.step(id, -1) == yes, i
}

// learn computes what follows, and keeps it but for a carriage return, which ends the line together with a newline.
func (a *automaton) learn(id int32, c byte, newline bool) int32 {
	if len(a.states) > maxStates {
		current := a.states[id]
		a.reset()
		a.resets++
		id = a.state(current.pcs, current.prev)
	}
	if c == '\r' && newline {
		c = '\n'
		if to := a.next[int(id)<<7|int(c)]; to != unknown {
			return to
		}
	}
	char := rune(c)
	if c == '\n' {
		char = -1
	}
	to := a.step(id, char)
	if c != '\r' {
		a.next[int(id)<<7|int(c)] = to
	}
	return to
}

func (a *automaton) findSlowly(text []byte, i int) (start, end int) {
	for i < len(text) {
		end := lineEnd(text, i)
		if a.slow.Match(trimEnd(text[i:end])) {
			return i, end
		}
		i = end
	}
	return -1, -1
}

// lineEnd is where the line after the one that holds an offset begins.
func lineEnd(text []byte, at int) int {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

// trimEnd takes the end off a line.
func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}
