package tape

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
)

// Info is what a recording has.
type Info struct {
	Counts
	Digest string `json:"digest"`
	Disk   int64  `json:"disk_bytes"` // of its files
	Hosts  []Host `json:"hosts"`      // those that were asked most come first
}

// Host is what a recording has of a host.
type Host struct {
	Host string `json:"host"`
	Counts
}

// Counts count exchanges.
type Counts struct {
	Exchanges int   `json:"exchanges"`
	Requests  int   `json:"requests"` // that differ
	Failed    int   `json:"failed"`   // exchanges whose answer did not come, or broke off
	Bytes     int64 `json:"bytes"`    // of the answers' bodies, as they came
}

// Info counts what the recording has.
func (t *Tape) Info() (Info, error) {
	info := Info{Digest: t.digest, Counts: Counts{Requests: len(t.byKey)}, Hosts: []Host{}}
	hosts, asked := map[string]*Host{}, map[key]bool{}
	for i := range t.exchanges {
		x, err := t.exchange(int32(i))
		if err != nil {
			return info, err
		}
		u, err := url.Parse(x.URL)
		if err != nil {
			return info, unusable(err)
		}
		h := hosts[u.Host]
		if h == nil {
			h = &Host{Host: u.Host}
			hosts[u.Host] = h
		}
		if k := t.exchanges[i].key; !asked[k] {
			asked[k] = true
			h.Requests++
		}
		for _, c := range []*Counts{&info.Counts, &h.Counts} {
			c.Exchanges++
			c.Bytes += int64(x.Bytes)
			if x.Failure != nil {
				c.Failed++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		info.Hosts = append(info.Hosts, *hosts[name])
	}
	slices.SortStableFunc(info.Hosts, func(a, b Host) int { return cmp.Compare(b.Exchanges, a.Exchanges) })
	var err error
	info.Disk, err = t.index.Disk()
	return info, err
}
