package twin

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"

	"trajgen/outputs/log/index"
	"trajgen/registry"
)

// Tape answers calls with what was recorded. It is safe for concurrent use. In memory it has keys and places.
type Tape struct {
	index   *index.Reader
	all     []int64 // places of all records
	about   map[string]int64
	calls   []place                    // of each episode's last attempt, by episode and ordinal
	exactly map[hash][]int32           // calls with what came before them, in that order
	loosely map[hash][]int32           // the same, whatever came before them
	digests map[string]map[string]bool // by tool
	digest  string
}

// place is what is held of a call.
type place struct {
	at               int64 // of its record
	tool, episode    string
	ordinal          int
	exactly, loosely hash
}

// attempt is the calls of an episode's last attempt, in the last session that played it.
type attempt struct {
	number, session int
	calls           []place
}

// The kinds of calls that a recording lacks, and what is said of each.
const (
	newTool      = "new_tool"
	otherDigest  = "other_digest"
	newArguments = "new_arguments"
	newHistory   = "new_history"
)

var misses = map[string]string{
	newTool:      "it has none of this tool",
	otherDigest:  "the tool was another version of itself",
	newArguments: "it has others of this tool",
	newHistory:   "it has this one after other calls",
}

// OpenTape opens the recording in a directory. Its end may be half-written, and then lacks what was being written.
func OpenTape(dir string) (*Tape, error) {
	t := &Tape{
		about: map[string]int64{}, exactly: map[hash][]int32{}, loosely: map[hash][]int32{}, digests: map[string]map[string]bool{},
	}
	last := map[string]*attempt{}
	var sums [][sha256.Size]byte
	var err error
	t.index, err = kind.Open(dir, func(at int64, record []byte) error {
		k, err := parse(record)
		if err == nil && k.About == "" {
			err = t.add(last, at, &k)
		}
		if err != nil {
			return err
		}
		if k.About != "" {
			t.about[k.About] = at
		}
		t.all = append(t.all, at)
		sums = append(sums, sha256.Sum256(record))
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.digest = index.Digest(sums)
	for _, a := range last {
		t.calls = append(t.calls, a.calls...)
	}
	slices.SortFunc(t.calls, func(a, b place) int { // so that answers do not depend on the order of the recording
		return cmp.Or(cmp.Compare(a.episode, b.episode), cmp.Compare(a.ordinal, b.ordinal), cmp.Compare(a.at, b.at))
	})
	for i, p := range t.calls {
		t.exactly[p.exactly] = append(t.exactly[p.exactly], int32(i))
		t.loosely[p.loosely] = append(t.loosely[p.loosely], int32(i))
	}
	return t, nil
}

// add takes a call into its episode's last attempt, unless it is of an earlier one.
func (t *Tape) add(last map[string]*attempt, at int64, k *kept) error {
	asked, err := k.asked()
	if err != nil {
		return err
	}
	a := last[k.Episode]
	if a == nil || a.number < k.Attempt || a.number == k.Attempt && a.session < k.Session {
		a = &attempt{number: k.Attempt, session: k.Session}
		last[k.Episode] = a
	}
	if a.number == k.Attempt && a.session == k.Session {
		a.calls = append(a.calls, place{at, k.Tool, k.Episode, k.Ordinal, asked.exactly(), asked.loosely()})
		if t.digests[k.Tool] == nil {
			t.digests[k.Tool] = map[string]bool{}
		}
		t.digests[k.Tool][k.Digest] = true
	}
	return nil
}

// asked is the call as it is looked up, without the text of its arguments.
func (k *kept) asked() (asked, error) {
	a := asked{tool: k.Tool, readOnly: k.ReadOnly, ordinal: k.Ordinal}
	for _, part := range []struct {
		to   *hash
		from string
	}{{&a.digest, k.Digest}, {&a.arguments, k.Arguments}, {&a.history, k.History}} {
		if len(part.from) != 2*len(hash{}) {
			return a, errors.New("a digest of the call is none")
		}
		if _, err := hex.Decode(part.to[:], []byte(part.from)); err != nil {
			return a, errors.New("a digest of the call is none")
		}
	}
	return a, nil
}

// find finds the call that answers one of an episode, or says what is missing. Calls of the episode but do not count.
func (t *Tape) find(episode string, a asked, but string) (p place, miss string) {
	exact, loose := t.exactly[a.exactly()], t.loosely[a.loosely()]
	if p, found := t.pick(exact, a, episode, but); found {
		return p, ""
	}
	if a.readOnly { // it gets what the same call got at another time
		if p, found := t.pick(loose, a, episode, but); found {
			return p, ""
		}
	}
	switch {
	case len(t.digests[a.tool]) == 0:
		return p, newTool
	case !t.digests[a.tool][a.digest.String()]:
		return p, otherDigest
	case len(loose) == len(t.of(loose, but)):
		return p, newArguments
	}
	return p, newHistory
}

// pick picks of equal calls those of the episode, or else those of the first other one, and of these the one with the ordinal. A
// call that changes nothing gets the last one when there are fewer.
func (t *Tape) pick(list []int32, a asked, episode, but string) (p place, found bool) {
	var picked []int32
	if episode != but {
		picked = t.of(list, episode)
	}
	for len(picked) == 0 && len(list) > 0 {
		first := t.of(list, t.calls[list[0]].episode)
		if list = list[len(first):]; t.calls[first[0]].episode != but {
			picked = first
		}
	}
	switch n := len(picked); {
	case a.ordinal < n:
		return t.calls[picked[a.ordinal]], true
	case n > 0 && a.readOnly:
		return t.calls[picked[n-1]], true
	}
	return p, false
}

// of are the calls of an episode in a list.
func (t *Tape) of(list []int32, episode string) []int32 {
	from := sort.Search(len(list), func(i int) bool { return t.calls[list[i]].episode >= episode })
	to := from + sort.Search(len(list)-from, func(i int) bool { return t.calls[list[from+i]].episode > episode })
	return list[from:to]
}

// answer is what was recorded of a call, or which kind of miss it is.
func (t *Tape) answer(episode string, asked asked) (a registry.Answer, miss string, err error) {
	p, miss := t.find(episode, asked, "")
	if miss != "" {
		return a, miss, nil
	}
	_, text, err := t.record(p.at)
	if err != nil {
		return a, "", err
	}
	var said said
	if err := json.Unmarshal(text, &said); err != nil {
		return a, "", fmt.Errorf("read the recording at byte %d: %w", p.at, err)
	}
	a = registry.Answer{Result: said.Result, Source: said.Source, ExitCode: said.ExitCode, Masked: said.Masked}
	if f := said.Failure; f != nil {
		a.Failure = &registry.Failure{Class: f.Class, Message: f.Message, Status: f.Status, Broken: f.Broken}
		for key, value := range f.Extra {
			if a.Failure.Extra == nil {
				a.Failure.Extra = map[string]any{}
			}
			a.Failure.Extra[key] = value
		}
	}
	for _, each := range said.Images {
		data, err := t.index.Content(each.Data)
		if err != nil {
			return a, "", fmt.Errorf("the image %w", err)
		}
		a.Images = append(a.Images, registry.AnswerImage{Image: registry.Image{MIME: each.MIME, Data: data, File: each.File}, Shown: each.Shown})
	}
	if a.Failure == nil && !json.Valid([]byte(a.Result)) {
		return a, "", fmt.Errorf("the recording at byte %d has a result that is not JSON", p.at)
	}
	return a, "", nil
}

// record reads a record with its body.
func (t *Tape) record(at int64) (k kept, text json.RawMessage, err error) {
	record, err := t.index.Record(at)
	if err == nil {
		k, err = parse(record)
	}
	if err == nil {
		text, err = body(t.index, &k)
	}
	if err != nil {
		err = fmt.Errorf("read the recording at byte %d: %w", at, err)
	}
	return k, text, err
}

// description is what one who answers said of itself.
func (t *Tape) description(outside string) (text json.RawMessage, found bool, err error) {
	at, found := t.about[outside]
	if found {
		_, text, err = t.record(at)
	}
	return text, found, err
}

// Damage says what of the recording cannot be read: calls that were answered there are misses. It is nil for a whole one.
func (t *Tape) Damage() error { return t.index.Damage() }

// Digest identifies the recording: it is equal for the same calls in any order.
func (t *Tape) Digest() string { return t.digest }

// Verify reads all of the recording, and says what is damaged.
func (t *Tape) Verify() error {
	if err := t.Damage(); err != nil {
		return err
	}
	for _, at := range t.all {
		k, text, err := t.record(at)
		if err != nil {
			return err
		}
		if k.About != "" {
			continue
		}
		var said said
		if err := json.Unmarshal(text, &said); err != nil {
			return fmt.Errorf("read the recording at byte %d: %w", at, err)
		}
		for _, each := range said.Images {
			if _, err := t.index.Content(each.Data); err != nil {
				return fmt.Errorf("the image %w", err)
			}
		}
	}
	return nil
}

// Close closes the recording.
func (t *Tape) Close() error { return t.index.Close() }
