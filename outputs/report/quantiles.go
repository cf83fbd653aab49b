package report

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"time"
)

// reservoirSize bounds the values that quantiles are taken from.
const reservoirSize = 10_000

// durations collects times in bounded memory. Beyond reservoirSize it keeps those whose name has the smallest hash:
// a fair choice that depends neither on the order of the values nor on a random stream.
type durations struct {
	seen int
	kept []keptTime // twice as many at most
}

type keptTime struct {
	hash  uint64
	value time.Duration
}

func (d *durations) add(hash uint64, value time.Duration) {
	d.seen++
	d.kept = append(d.kept, keptTime{hash, value})
	if len(d.kept) == 2*reservoirSize {
		d.choose()
	}
}

func (d *durations) choose() {
	slices.SortStableFunc(d.kept, func(a, b keptTime) int { return cmp.Compare(a.hash, b.hash) })
	d.kept = d.kept[:min(len(d.kept), reservoirSize)]
}

func (d *durations) quantiles() Duration {
	if len(d.kept) == 0 {
		return Duration{}
	}
	d.choose()
	values := make([]time.Duration, len(d.kept))
	for i, k := range d.kept {
		values[i] = k.value
	}
	slices.Sort(values)
	at := func(q float64) *int64 { return new(values[rank(q, len(values))].Microseconds()) }
	return Duration{P50US: at(0.5), P95US: at(0.95), Sampled: d.seen > len(d.kept)}
}

// rank is the index of the nearest-rank quantile of n sorted values: the least value that a share q does not exceed.
func rank(q float64, n int) int {
	return max(0, int(math.Ceil(q*float64(n)))-1)
}

// hashOf names a value for durations.
func hashOf(id string, numbers ...int) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	for _, n := range numbers {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	}
	// FNV leaves neighbours together; this spreads them (the finaliser of splitmix64).
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// counts is a histogram of small numbers.
type counts map[int]int

func (c counts) spread() Spread {
	if len(c) == 0 {
		return Spread{}
	}
	keys := slices.Sorted(maps.Keys(c))
	n, sum := 0, 0
	for _, k := range keys {
		n += c[k]
		sum += k * c[k]
	}
	at := func(q float64) *int {
		left := rank(q, n)
		return &keys[slices.IndexFunc(keys, func(k int) bool {
			left -= c[k]
			return left < 0
		})]
	}
	return Spread{Mean: new(float64(sum) / float64(n)), P50: at(0.5), P95: at(0.95), Max: &keys[len(keys)-1]}
}
