package reward

import "math/bits"

// The functions below compare two lists, 64 entries of the first at a time, in memory that grows with their lengths: see H. Hyyrö,
// "A bit-vector algorithm for computing Levenshtein and Damerau edit distances", 2003, and "Bit-parallel LCS-length computation
// revisited", 2004.

// entry is what lists are of.
type entry interface{ rune | string }

// positions has where each entry of a list is, as bits.
type positions[T entry] struct {
	few    map[T][]int
	many   map[T][]uint64 // of entries that are more often there than the bits take words: 64 at most
	bits   []uint64
	marked []int
}

func positionsOf[T entry](list []T) *positions[T] {
	p := &positions[T]{few: map[T][]int{}, many: map[T][]uint64{}, bits: make([]uint64, (len(list)+63)/64)}
	for i, each := range list {
		p.few[each] = append(p.few[each], i)
	}
	for each, at := range p.few {
		if len(at) > len(p.bits) {
			p.many[each] = make([]uint64, len(p.bits))
			mark(p.many[each], at)
			delete(p.few, each)
		}
	}
	return p
}

// of is valid until it is called again.
func (p *positions[T]) of(each T) []uint64 {
	for _, i := range p.marked {
		p.bits[i/64] = 0
	}
	p.marked = p.few[each]
	mark(p.bits, p.marked)
	if many, ok := p.many[each]; ok {
		return many
	}
	return p.bits
}

func mark(set []uint64, at []int) {
	for _, i := range at {
		set[i/64] |= 1 << (i % 64)
	}
}

// longest is the length of the longest common subsequence.
func longest[T entry](a, b []T) (n int) {
	at, row := positionsOf(a), make([]uint64, (len(a)+63)/64)
	for i := range row {
		row[i] = ^uint64(0)
	}
	for _, each := range b {
		var carry, sum uint64
		for i, match := range at.of(each) {
			sum, carry = bits.Add64(row[i], row[i]&match, carry)
			row[i] = sum | row[i]&^match
		}
	}
	for i := range a {
		if row[i/64]>>(i%64)&1 == 0 {
			n++
		}
	}
	return n
}

// edits is the Levenshtein distance.
func edits[T entry](a, b []T) int {
	if len(a) == 0 {
		return len(b)
	}
	at, size, last := positionsOf(a), (len(a)+63)/64, (len(a)-1)%64
	up, down := make([]uint64, size), make([]uint64, size) // where a column grows and falls by one
	for i := range up {
		up[i] = ^uint64(0)
	}
	distance := len(a)
	for _, each := range b {
		var carry, sum, grows, falls uint64 = 0, 0, 1, 0
		for i, match := range at.of(each) {
			vp, vn := up[i], down[i]
			sum, carry = bits.Add64(match&vp, vp, carry)
			same := sum ^ vp | match | vn
			hp, hn := vn|^(same|vp), same&vp
			if i == size-1 {
				distance += int(hp>>last&1) - int(hn>>last&1)
			}
			hp, grows = hp<<1|grows, hp>>63
			hn, falls = hn<<1|falls, hn>>63
			up[i], down[i] = hn|^(same|hp), hp&same
		}
	}
	return distance
}
