package journal

import (
	"math"
	"slices"
	"strings"
	"unique"

	"trajgen/pipeline/episode"
)

// index knows every attempt that a journal holds and where: some 190 bytes an attempt, so that a million episodes fit.
type index struct {
	records []record            // in the order of writing, so that a frame ends where the next record of its segment begins
	byID    map[string][]uint32 // numbers of the records of an episode, by attempt; of equal ones the one written last is last
	count   int                 // ids with an attempt that counts
}

// record is an attempt.
type record struct {
	Entry
	offset  int64
	segment uint32
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
		x.byID = make(map[string][]uint32)
	}
	r := record{Entry: e, offset: offset, segment: uint32(segment)}
	r.Outcome = unique.Make(e.Outcome).Value() // and not the whole text that it may be a part of
	attempts, seen := x.byID[e.ID]
	if seen {
		r.ID = x.records[attempts[0]].ID // one text for all attempts
	} else {
		r.ID = strings.Clone(e.ID)
	}
	if !e.Pending && !slices.ContainsFunc(attempts, x.counts) {
		x.count++
	}
	at := len(attempts)
	for at > 0 && x.records[attempts[at-1]].Attempt > e.Attempt {
		at--
	}
	x.byID[r.ID] = slices.Insert(attempts, at, uint32(len(x.records)))
	x.records = append(x.records, r)
}

// counts says whether a record is of an attempt that no other one follows.
func (x *index) counts(number uint32) bool { return !x.records[number].Pending }

// latest is the number of the last attempt of an episode, pending or not; -1 is none.
func (x *index) latest(id string) int {
	if attempts := x.byID[id]; len(attempts) > 0 {
		return int(attempts[len(attempts)-1])
	}
	return -1
}

// counted is the number of the attempt of an episode that counts; -1 is none.
func (x *index) counted(id string) int {
	for _, number := range slices.Backward(x.byID[id]) {
		if x.counts(number) {
			return int(number)
		}
	}
	return -1
}

// at is the entry of a record; -1 is none.
func (x *index) at(n int) (Entry, bool) {
	if n < 0 {
		return Entry{}, false
	}
	return x.records[n].Entry, true
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
	for id := range x.byID {
		if n := x.counted(id); n >= 0 {
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
