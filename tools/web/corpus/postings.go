package corpus

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// A list of postings has, for each document with the term, the distance to the document before it, shifted by one bit: the bit is
// set where the term occurs once, else the number of occurrences follows.

func appendPosting(list []byte, distance, times uint32) []byte {
	if times == 1 {
		return binary.AppendUvarint(list, uint64(distance)<<1|1)
	}
	return binary.AppendUvarint(binary.AppendUvarint(list, uint64(distance)<<1), uint64(times))
}

// postings collects lists in memory up to a limit, and then writes them out as a run.
type postings struct {
	runs
	terms map[string]*list
	held  int
	limit int
}

// list is one term's, with the document that is being counted.
type list struct {
	bytes           []byte
	documents, last uint32 // in bytes
	document, times uint32 // not yet
}

// count notes an occurrence of a term. Documents come in order.
func (p *postings) count(term []byte, document uint32) {
	l := p.terms[string(term)]
	switch {
	case l == nil:
		p.terms[string(term)] = &list{document: document, times: 1}
		p.held += len(term) + 128 // of the list and the map
	case l.document == document:
		l.times++
	default:
		p.held += l.close()
		l.document, l.times = document, 1
	}
}

// close adds the document that is being counted, and returns by how much the list's memory grew.
func (l *list) close() int {
	before := cap(l.bytes)
	l.bytes = appendPosting(l.bytes, l.document-l.last, l.times)
	l.last = l.document
	l.documents++
	return cap(l.bytes) - before
}

// spill writes the lists as a run. The first distance of each is the number of the document.
func (p *postings) spill() error {
	var head []byte
	for _, term := range slices.Sorted(maps.Keys(p.terms)) {
		l := p.terms[term]
		l.close()
		head = binary.AppendUvarint(binary.AppendUvarint(head[:0], uint64(l.documents)), uint64(l.last))
		if err := p.put(term, head, l.bytes); err != nil {
			return err
		}
	}
	p.end()
	clear(p.terms)
	p.held = 0
	return nil
}

// part is a list as a run has it.
type part struct {
	documents, last, first uint64
	once                   uint64 // the bit of the first posting
	rest                   []byte // what follows its distance
}

func readPart(value []byte) part {
	var p part
	for _, field := range []*uint64{&p.documents, &p.last, &p.first} {
		number, n := binary.Uvarint(value) // which this process wrote
		*field, value = number, value[n:]
	}
	p.first, p.once, p.rest = p.first>>1, p.first&1, value
	return p
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

var errPostings = errors.New("a list of postings is damaged")

// next goes to the next posting of a document below limit.
func (c *cursor) next(limit uint64) error {
	if c.at == len(c.list) {
		c.done = true
		return nil
	}
	code, n := uint64(c.list[c.at]), 1
	if code >= 0x80 {
		if code, n = binary.Uvarint(c.list[c.at:]); n <= 0 {
			return errPostings
		}
	}
	c.at += n
	c.times = 1
	if code&1 == 0 {
		times, n := binary.Uvarint(c.list[c.at:])
		if n <= 0 || times < 1 || times > MaxDocument {
			return errPostings
		}
		c.times = uint32(times)
		c.at += n
	}
	distance := code >> 1
	if c.document += distance; distance >= limit || c.document >= limit {
		return errPostings
	}
	return nil
}
