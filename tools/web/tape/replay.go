package tape

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"

	"trajgen/outputs/log/index"
)

// Tape answers requests with what was recorded. It is safe for concurrent use. In memory it has keys and places; bodies stay
// on the disk.
type Tape struct {
	index   *index.Reader
	secrets secrets
	loose   bool

	exchanges []place
	byKey     map[key][]int32 // in recorded order
	byLoose   map[key][]int32 // nil without loose
	plays     map[string]*attempt
	digest    string

	mu    sync.Mutex // guards stats
	stats Stats
}

// place is what is held of an exchange.
type place struct {
	at     int64 // of its frame
	call   string
	key    key
	loose  key
	answer uint64 // hash of what a caller can tell of it
}

// attempt is the exchanges of an episode's last attempt, in the last session that played it.
type attempt struct {
	number, session int
	order           []int32 // of each exchange among the requests
	at              []int32
}

// ReplayOptions say how a tape answers.
type ReplayOptions struct {
	// Loose also answers a request whose URL differs from a recorded one in what caches and trackers read alone.
	Loose bool
	// Secrets are those of the run that replays: the recording does not have them, so that requests are looked up without.
	Secrets []string
}

// Stats says how a replay went.
type Stats struct {
	Hits   int            // requests that the recording answered, with those that needed Loose
	Loose  int            // requests that needed Loose
	Misses map[string]int // requests that it did not answer, by host
}

// Open opens the recording in a directory. Its end may be half-written, and then lacks what was being written.
func Open(dir string, o ReplayOptions) (*Tape, error) {
	t := &Tape{
		secrets: o.Secrets, loose: o.Loose, byKey: map[key][]int32{}, byLoose: map[key][]int32{}, plays: map[string]*attempt{},
		stats: Stats{Misses: map[string]int{}},
	}
	var sums [][sha256.Size]byte
	seed := maphash.MakeSeed()
	var err error
	t.index, err = kind.Open(dir, func(at int64, text []byte) error {
		x := &exchange{}
		if err := json.Unmarshal(text, x); err != nil {
			return err
		}
		t.add(at, x, seed)
		if i := bytes.LastIndex(text, []byte(`,"began_ms":`)); i >= 0 {
			text = text[:i]
		}
		sums = append(sums, sha256.Sum256(text))
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, a := range t.plays {
		a.sort()
	}
	t.digest = index.Digest(sums)
	return t, nil
}

func (t *Tape) add(at int64, x *exchange, seed maphash.Seed) {
	i := int32(len(t.exchanges))
	p := place{at: at, call: x.Call, key: x.key(), answer: x.answer(seed)}
	t.byKey[p.key] = append(t.byKey[p.key], i)
	if t.loose {
		p.loose = x.loosely().key()
		t.byLoose[p.loose] = append(t.byLoose[p.loose], i)
	}
	t.exchanges = append(t.exchanges, p)

	a := t.plays[x.Episode]
	if a == nil || a.number < x.Attempt || a.number == x.Attempt && a.session < x.Session {
		a = &attempt{number: x.Attempt, session: x.Session}
		t.plays[x.Episode] = a
	}
	if a.number == x.Attempt {
		a.at, a.order = append(a.at, i), append(a.order, int32(x.Order))
	}
}

// sort puts the exchanges into the order in which their requests began: that is the one in which a replay makes them.
func (a *attempt) sort() {
	order := make(map[int32]int32, len(a.at))
	for i, at := range a.at {
		order[at] = a.order[i]
	}
	slices.SortStableFunc(a.at, func(x, y int32) int { return cmp.Compare(order[x], order[y]) })
	a.order = nil
}

// answer is equal for exchanges whose answers a caller cannot tell apart.
func (x *exchange) answer(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	fmt.Fprintf(&h, "%d %q %v", x.Status, x.Body, x.Cut)
	for _, name := range []string{"Content-Type", "Location", "Retry-After"} {
		fmt.Fprintf(&h, " %q", x.Header[name])
	}
	if x.Failure != nil {
		fmt.Fprintf(&h, " %+v", *x.Failure)
	}
	return h.Sum64()
}

// Damage says what of the recording cannot be read: requests that were answered there are misses. It is nil for a whole one.
func (t *Tape) Damage() error { return t.index.Damage() }

// Digest identifies the recording: it is equal for the same exchanges in any order, however long they took.
func (t *Tape) Digest() string { return t.digest }

// Size is how many exchanges the recording has, and how many requests that differ.
func (t *Tape) Size() (exchanges, requests int) { return len(t.exchanges), len(t.byKey) }

// Stats says how the replay went until now.
func (t *Tape) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stats.clone()
}

// Verify reads all of the recording, and says what is damaged.
func (t *Tape) Verify() error {
	if err := t.Damage(); err != nil {
		return err
	}
	for i := range t.exchanges {
		if _, _, err := t.read(int32(i)); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the recording.
func (t *Tape) Close() error { return t.index.Close() }

// read reads an exchange and the body of its response.
func (t *Tape) read(i int32) (*exchange, []byte, error) {
	x, err := t.exchange(i)
	if err != nil {
		return nil, nil, err
	}
	body, err := t.body(x.Body)
	return x, body, err
}

// body reads what a request or a response had.
func (t *Tape) body(name string) ([]byte, error) {
	body, err := t.index.Content(name)
	if err != nil {
		return nil, unusable(fmt.Errorf("the body %w", err))
	}
	return body, nil
}

// exchange reads an exchange.
func (t *Tape) exchange(i int32) (*exchange, error) {
	at := t.exchanges[i].at
	text, err := t.index.Record(at)
	x := &exchange{}
	if err == nil {
		err = json.Unmarshal(text, x)
	}
	if err != nil {
		return nil, unusable(fmt.Errorf("read the recording at byte %d: %w", at, err))
	}
	return x, nil
}
