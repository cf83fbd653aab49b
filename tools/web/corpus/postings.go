package corpus

import (
	"encoding/binary"
)

// A list of postings has, for each document with the term, the distance to the document before it, shifted by one bit: the bit is
// set where the term occurs once, else the number of occurrences follows.

func appendPosting(list []byte, distance, times uint32) []byte {
	if times == 1 {
		return binary.AppendUvarint(list, uint64(distance)<<1|1)
	}
	return binary.AppendUvarint(binary.AppendUvarint(list, uint64(distance)<<1), uint64(times))
}

// list is one term's while it is built, with the document that is being counted.
type list struct {
	bytes           []byte
	documents, last uint32 // in bytes
	document, times uint32 // not yet
}

// count notes an occurrence of a term in a document, and returns by how much the memory grew. Documents come in order.
func count(lists map[string]*list, term []byte, document uint32) int {
	l := lists[string(term)]
	switch {
	case l == nil:
		lists[string(term)] = &list{document: document, times: 1}
		return len(term) + 128 // of the list and the map
	case l.document == document:
		l.times++
		return 0
	}
	before := cap(l.bytes)
	l.close()
	l.document, l.times = document, 1
	return cap(l.bytes) - before
}

// close adds the document that is being counted.
func (l *list) close() {
	l.bytes = appendPosting(l.bytes, l.document-l.last, l.times)
	l.last = l.document
	l.documents++
}

// part is the list as a run has it: the first distance is the number of the document.
func (l *list) part() []byte {
	l.close()
	head := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(l.documents)), uint64(l.last))
	return append(head, l.bytes...)
}

// joined is the entry of a term, of the parts that the runs have.
func joined(parts [][]byte) ([]byte, error) {
	var list []byte
	var all, before uint64
	for _, part := range parts {
		var documents, last, first uint64
		rest, err := takeNumbers(part, &documents, &last, &first)
		if err != nil {
			return nil, err
		}
		list = binary.AppendUvarint(list, (first>>1-before)<<1|first&1)
		list = append(list, rest...)
		all, before = all+documents, last
	}
	return append(binary.AppendUvarint(nil, all), list...), nil
}

// cursor goes through a list.
type cursor struct {
	list     []byte
	at       int
	weight   float64
	document uint64
	times    uint32
	done     bool
}

// next goes to the next posting of a document below limit.
func (c *cursor) next(limit uint64) error {
	if c.at == len(c.list) {
		c.done = true
		return nil
	}
	code, n := uint64(c.list[c.at]), 1
	if code >= 0x80 {
		if code, n = binary.Uvarint(c.list[c.at:]); n <= 0 {
			return errDamaged
		}
	}
	c.at += n
	c.times = 1
	if code&1 == 0 {
		times, n := binary.Uvarint(c.list[c.at:])
		if n <= 0 || times < 1 || times > MaxDocument {
			return errDamaged
		}
		c.times = uint32(times)
		c.at += n
	}
	distance := code >> 1
	if c.document += distance; distance >= limit || c.document >= limit {
		return errDamaged
	}
	return nil
}
