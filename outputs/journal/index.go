package journal

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unique"

	"trajgen/pipeline/episode"
)

// index knows every attempt that a journal holds and where: some 160 bytes an attempt, so that a million episodes fit.
type index struct {
	records []record // in the order of writing, so that a frame ends where the next record of its segment begins
	byID    map[string]heads
	count   int // ids with an attempt that counts
}

// record is an attempt.
type record struct {
	Entry
	offset  int64
	segment uint32
	before  uint32 // 1 + number of another record of the episode; 0 ends the chain
}

// heads are 1 + numbers of records of one episode; 0 is none.
type heads struct {
	latest uint32 // pending or not
	counts uint32 // the latest that is not pending
}

// strange says what in an entry no journal of ours has.
func (e Entry) strange() string {
	if e.ID == "" {
		return "it names no episode"
	}
	if e.Row < 0 || e.Sample < 0 || e.Sample > math.MaxInt32 || e.Attempt < 0 || e.Attempt > math.MaxInt32 {
		return "its row, sample or attempt is out of range"
	}
	if e.Outcome != "" && !slices.Contains(episode.Outcomes(), e.Outcome) {
		return "its outcome is none that this version knows"
	}
	return ""
}

// add takes an attempt that is at a place. The entry is not strange.
func (x *index) add(e Entry, segment int, offset int64) {
	if x.byID == nil {
		x.byID = make(map[string]heads)
	}
	r := record{Entry: e, offset: offset, segment: uint32(segment)}
	r.Outcome = unique.Make(e.Outcome).Value() // and not the whole text that it may be a part of
	number := uint32(len(x.records) + 1)
	h, seen := x.byID[e.ID]
	if seen {
		r.ID = x.records[h.latest-1].ID // one text for all attempts
	} else {
		r.ID = strings.Clone(e.ID)
	}
	if h.latest == 0 || r.Attempt >= x.records[h.latest-1].Attempt {
		r.before, h.latest = h.latest, number
	} else { // the chain begins with the latest and is otherwise in no order
		latest := &x.records[h.latest-1]
		r.before, latest.before = latest.before, number
	}
	if !e.Pending {
		if h.counts == 0 {
			x.count++
		}
		if h.counts == 0 || r.Attempt >= x.records[h.counts-1].Attempt {
			h.counts = number
		}
	}
	x.byID[r.ID] = h
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
	return x.records[n].Entry, true
}

// attempts returns the numbers of all records of an id, by attempt; of equal ones the one written last is last.
func (x *index) attempts(id string) []int {
	latest, _ := x.find(id)
	var numbers []int
	for n := latest; n >= 0; n = int(x.records[n].before) - 1 {
		numbers = append(numbers, n)
	}
	slices.SortFunc(numbers, func(a, b int) int {
		return cmp.Or(cmp.Compare(x.records[a].Attempt, x.records[b].Attempt), cmp.Compare(a, b))
	})
	return numbers
}

// entries are records as others see them.
func (x *index) entries(numbers []uint32) []Entry {
	entries := make([]Entry, len(numbers))
	for i, n := range numbers {
		entries[i] = x.records[n].Entry
	}
	return entries
}

// ordered returns the numbers of the records that count in dataset order: by row, sample, then id.
func (x *index) ordered() []uint32 {
	order := make([]uint32, 0, x.count)
	for n := range x.records {
		if x.byID[x.records[n].ID].counts == uint32(n+1) {
			order = append(order, uint32(n))
		}
	}
	slices.SortFunc(order, func(i, j uint32) int { return datasetOrder(x.records[i].Entry, x.records[j].Entry) })
	return order
}

// neighbours are the ids of the frames around one in its segment; empty at an end of it.
func (x *index) neighbours(n int) (before, after string) {
	segment := x.records[n].segment
	if n > 0 && x.records[n-1].segment == segment {
		before = x.records[n-1].ID
	}
	if n+1 < len(x.records) && x.records[n+1].segment == segment {
		after = x.records[n+1].ID
	}
	return before, after
}
