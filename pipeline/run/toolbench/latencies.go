package toolbench

import (
	"encoding/json"
	"fmt"
	"math"
)

// latencies are calls by elapsed time. From 100 µs on, each bucket is 10^(1/40) times as long as the one before: 6 %.
type latencies [256]int

func (l *latencies) add(micros float64) {
	l[min(len(l)-1, max(0, int(40*math.Log10(max(micros, 1)/100))))]++
}

// UnmarshalJSON reads older ledgers, too: over the same times they had fewer buckets, whose calls are spread evenly.
func (l *latencies) UnmarshalJSON(text []byte) error {
	var counts []int
	if err := json.Unmarshal(text, &counts); err != nil {
		return err
	}
	if len(counts) == 0 || len(l)%len(counts) > 0 {
		return fmt.Errorf("%d buckets of latencies; want %d, or a part of that", len(counts), len(l))
	}
	each := len(l) / len(counts)
	for i := range l {
		l[i] = (counts[i/each] + i%each) / each
	}
	return nil
}

// p99 is the 99 % quantile, as if times were spread evenly over their bucket.
func (l *latencies) p99() float64 {
	sum := 0
	for _, n := range l {
		sum += n
	}
	wanted := 0.99 * float64(sum)
	for i, n := range l {
		if wanted <= float64(n) {
			return 100 * math.Pow(10, (float64(i)+wanted/float64(max(1, n)))/40)
		}
		wanted -= float64(n)
	}
	return 0
}
