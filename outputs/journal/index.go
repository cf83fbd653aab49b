package journal

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// index knows every attempt that a journal holds and where: some 140 bytes an attempt, so that a million episodes fit.
type index struct {
	records []record // in the order of writing, so that a frame ends where the next record of its segment begins
	byID    map[string]heads
	count   int // ids with an attempt that counts
}

// record is an attempt.
type record struct {
	offset  int64
	row     int64
	segment uint32
	sample  int32
	attempt int32
	before  uint32 // 1 + number of another record of the episode; 0 ends the chain
	id      string
	outcome uint8 // 1 + position in episode.Outcomes(), 0 for none; pending is the highest bit
}

const pendingBit = 1 << 7

// heads are 1 + numbers of records of one episode; 0 is none.
type heads struct {
	latest uint32 // pending or not
	counts uint32 // the latest that is not pending
}

var outcomes = episode.Outcomes()

// outcomeCode is a small number for an outcome.
func outcomeCode(o episode.Outcome) (uint8, bool) {
	if o == "" {
		return 0, true
	}
	i := slices.Index(outcomes, o)
	return uint8(i + 1), i >= 0
}

// strange says what in an entry no journal of ours has.
func (e Entry) strange() string {
	if e.ID == "" {
		return "it names no episode"
	}
	if e.Row < 0 || e.Sample < 0 || e.Sample > math.MaxInt32 || e.Attempt < 0 || e.Attempt > math.MaxInt32 {
		return "its row, sample or attempt is out of range"
	}
	if _, ok := outcomeCode(e.Outcome); !ok {
		return "its outcome is none that this version knows"
	}
	return ""
}

// add takes an attempt that is at a place. The entry is not strange.
func (x *index) add(e Entry, segment int, offset int64) {
	if x.byID == nil {
		x.byID = make(map[string]heads)
	}
	code, _ := outcomeCode(e.Outcome)
	if e.Pending {
		code |= pendingBit
	}
	r := record{offset: offset, row: int64(e.Row), segment: uint32(segment), sample: int32(e.Sample), attempt: int32(e.Attempt), outcome: code}
	number := uint32(len(x.records) + 1)
	h, seen := x.byID[e.ID]
	if seen {
		r.id = x.records[h.latest-1].id // one text for all attempts
	} else {
		r.id = strings.Clone(e.ID) // and not the whole text that it may be a part of
	}
	if h.latest == 0 || r.attempt >= x.records[h.latest-1].attempt {
		r.before, h.latest = h.latest, number
	} else { // the chain begins with the latest and is otherwise in no order
		latest := &x.records[h.latest-1]
		r.before, latest.before = latest.before, number
	}
	if !e.Pending {
		if h.counts == 0 {
			x.count++
		}
		if h.counts == 0 || r.attempt >= x.records[h.counts-1].attempt {
			h.counts = number
		}
	}
	x.byID[r.id] = h
	x.records = append(x.records, r)
}

// find returns the numbers of the records that an id has: the latest attempt, and the latest that counts; -1 is none.
func (x *index) find(id string) (latest, counts int) {
	h := x.byID[id]
	return int(h.latest) - 1, int(h.counts) - 1
}

// latest is the entry of the last attempt of an episode, pending or not.
func (x *index) latest(id string) (Entry, bool) {
	n, _ := x.find(id)
	return x.at(n)
}

// counted is the entry of the attempt of an episode that counts.
func (x *index) counted(id string) (Entry, bool) {
	_, n := x.find(id)
	return x.at(n)
}

func (x *index) at(n int) (Entry, bool) {
	if n < 0 {
		return Entry{}, false
	}
	return x.entry(n), true
}

// attempts returns the numbers of all records of an id, by attempt; of equal ones the one written last is last.
func (x *index) attempts(id string) []int {
	latest, _ := x.find(id)
	var numbers []int
	for n := latest; n >= 0; n = int(x.records[n].before) - 1 {
		numbers = append(numbers, n)
	}
	slices.SortFunc(numbers, func(a, b int) int {
		return cmp.Or(cmp.Compare(x.records[a].attempt, x.records[b].attempt), cmp.Compare(a, b))
	})
	return numbers
}

// entry is a record as others see it.
func (x *index) entry(n int) Entry {
	r := &x.records[n]
	e := Entry{ID: r.id, Row: int(r.row), Sample: int(r.sample), Attempt: int(r.attempt), Pending: r.outcome&pendingBit != 0}
	if code := r.outcome &^ pendingBit; code > 0 {
		e.Outcome = outcomes[code-1]
	}
	return e
}

// entries are records as others see them.
func (x *index) entries(numbers []uint32) []Entry {
	entries := make([]Entry, len(numbers))
	for i, n := range numbers {
		entries[i] = x.entry(int(n))
	}
	return entries
}

// ordered returns the numbers of the records that count in dataset order: by row, sample, then id.
func (x *index) ordered() []uint32 {
	order := make([]uint32, 0, x.count)
	for n := range x.records {
		if x.byID[x.records[n].id].counts == uint32(n+1) {
			order = append(order, uint32(n))
		}
	}
	slices.SortFunc(order, func(i, j uint32) int {
		a, b := &x.records[i], &x.records[j]
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.sample, b.sample), cmp.Compare(a.id, b.id))
	})
	return order
}

// neighbours are the ids of the frames around one in its segment; empty at an end of it.
func (x *index) neighbours(n int) (before, after string) {
	segment := x.records[n].segment
	if n > 0 && x.records[n-1].segment == segment {
		before = x.records[n-1].id
	}
	if n+1 < len(x.records) && x.records[n+1].segment == segment {
		after = x.records[n+1].id
	}
	return before, after
}
