package search

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// automaton decides whether lines match, several times faster than package regexp does: its states are made when they
// are first met, and kept. It knows ASCII; a line with other characters is left to the regexp, unless they lie where no
// match can begin. It belongs to one goroutine.
type automaton struct {
	prog *syntax.Prog
	slow *regexp.Regexp
	starts

	next   []int32 // by state, which is a multiple of 256, and byte: a state, or one of the answers below
	states []set
	ids    map[string]int32
	resets int

	afterWord, afterOther int32 // where nothing has begun to match, beside firstState

	stack, pcs []uint32 // scratch
	seen       []bool
}

// set is a state: the instructions that are to be tried at the next byte, and what was before it.
type set struct {
	pcs  []uint32
	prev rune // of its class: -1 at the beginning of a line, 'a' after a word's character, ' ' after another
}

// What next holds beside states. What is less than they are is a state, negated, in which nothing has begun to match:
// places where nothing can are skipped.
const (
	unknown int32 = 0
	yes     int32 = -1 // the line matches
	alone   int32 = -2 // the line is to be looked at by itself
	back    int32 = -3 // a carriage return, which ends the line together with a newline
)

const (
	firstState  = 1 << 8 // the beginning of a line
	bytesOfNext = 1 << 8
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
	a := &automaton{prog: prog, slow: slow, seen: make([]bool, len(prog.Inst)), starts: startsOf(prog)}
	a.reset()
	return a
}

func (a *automaton) reset() {
	a.next, a.states, a.ids = make([]int32, bytesOfNext), make([]set, 1), map[string]int32{}
	a.begin(-1)
	a.afterWord, a.afterOther = a.begin('a'), a.begin(' ')
}

// state is the number of a set of instructions.
func (a *automaton) state(pcs []uint32, prev rune) int32 {
	if prev == -1 && !a.begins || prev == 'a' && !a.words {
		prev = ' ' // it makes no difference
	}
	slices.Sort(pcs)
	key := make([]byte, 0, 4*len(pcs)+1)
	for _, pc := range pcs {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	key = append(key, byte(prev))
	if id, ok := a.ids[string(key)]; ok {
		return id
	}
	id := int32(len(a.next))
	a.states = append(a.states, set{slices.Clone(pcs), prev})
	row := make([]int32, bytesOfNext)
	for c := utf8.RuneSelf; c < len(row); c++ {
		row[c] = alone
	}
	row['\r'] = back
	a.next = append(a.next, row...)
	a.ids[string(key)] = id
	return id
}

// follow is what follows a state at a character, -1 being the end of the line: a state or yes. Of a line that ends and
// does not match it is the beginning of the next.
func (a *automaton) follow(id int32, c rune) int32 {
	from := a.states[id/bytesOfNext]
	flags := syntax.EmptyOpContext(from.prev, c)
	a.stack, a.pcs = append(a.stack[:0], from.pcs...), a.pcs[:0]
	clear(a.seen)
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
			return yes
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if c >= 0 && inst.MatchRune(c) && !slices.Contains(a.pcs, inst.Out) {
				a.pcs = append(a.pcs, inst.Out)
			}
		}
	}
	if c < 0 {
		return a.begin(-1)
	}
	if len(a.pcs) == 0 {
		return a.begin(c)
	}
	if start := uint32(a.prog.Start); !slices.Contains(a.pcs, start) {
		a.pcs = append(a.pcs, start) // a match may begin anywhere
	}
	return a.state(a.pcs, class(c))
}

// begin is the state in which nothing has begun to match, after a character.
func (a *automaton) begin(c rune) int32 {
	return a.state([]uint32{uint32(a.prog.Start)}, class(c))
}

func class(c rune) rune {
	switch {
	case c < 0:
		return -1
	case syntax.IsWordChar(c):
		return 'a'
	}
	return ' '
}

// find returns where the first line that matches begins, and where the line after it does; -1 when there is none. The
// text consists of whole lines, the last of which may lack its end.
func (a *automaton) find(text []byte) (start, end int) {
	id, next := int32(firstState), a.next
	for i := 0; i < len(text); {
		to := next[id+int32(text[i])]
		if to > 0 {
			id = to
			i++
			continue
		}
		if to == unknown || to == back {
			id, to = a.learn(id, text, i)
			next = a.next
			if a.resets > maxResets {
				return a.findSlowly(text, lineStart(text, i))
			}
		}
		switch {
		case to > 0:
			id = to
			i++
		case to == yes:
			return lineStart(text, i), lineEnd(text, i)
		case to == alone:
			start, end := lineStart(text, i), lineEnd(text, i)
			if a.slow.Match(trimEnd(text[start:end])) {
				return start, end
			}
			if end == len(text) {
				return -1, -1
			}
			id, i = firstState, end
		default:
			i = a.skip(text, i+1)
			id = a.after(text[i-1])
		}
	}
	if n := len(text); n > 0 && text[n-1] != '\n' && a.follow(id, -1) == yes {
		return lineStart(text, n), n
	}
	return -1, -1
}

// after is the state in which nothing has begun to match, after a byte.
func (a *automaton) after(c byte) int32 {
	switch {
	case c == '\n':
		return firstState
	case syntax.IsWordChar(rune(c)):
		return a.afterWord
	}
	return a.afterOther
}

// learn computes what follows a state at an offset, and keeps it but for a carriage return.
func (a *automaton) learn(id int32, text []byte, at int) (from, to int32) {
	if len(a.states) > maxStates {
		current := a.states[id/bytesOfNext]
		a.reset()
		a.resets++
		id = a.state(slices.Clone(current.pcs), current.prev)
	}
	c := text[at]
	switch {
	case c == '\n':
		to = a.follow(id, -1)
	case c == '\r' && (at+1 == len(text) || text[at+1] == '\n'):
		if to = a.follow(id, -1); to != yes {
			to = id // until the newline
		}
		return id, to
	default:
		to = a.follow(id, rune(c))
	}
	if to > 0 && a.nothing(to) {
		to = -to
	}
	if c != '\r' {
		a.next[id+int32(c)] = to
	}
	return id, to
}

// nothing tells whether in a state nothing has begun to match, and it can be told where something may.
func (a *automaton) nothing(id int32) bool {
	if id == firstState {
		return a.first != nil
	}
	return (id == a.afterWord || id == a.afterOther) && (a.first != nil || a.anchored)
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

// lineStart is where the line that holds an offset begins.
func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

// trimEnd takes the end off a line.
func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}
