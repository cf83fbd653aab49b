package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

	"trajgen/outputs/log"
	"trajgen/pipeline/episode"
)

// Reader reads a journal, also one that is being written: it shows what was there when it was opened. It holds an
// index in memory and reads episodes one by one. It is safe for concurrent use.
type Reader struct {
	files []*os.File
	sizes []int64 // of the segments when they were opened
	index index
	order []uint32 // records that count, in dataset order
	// Strict says that an episode which reads otherwise than it was written is damage. It takes as long again, and is set
	// before episodes are read.
	Strict bool
}

// OpenReader opens the journal in dir for reading. An unfinished end of the last segment is passed over; other damage
// of heads is an *ErrDamaged. Payloads of full segments are checked when they are read.
func OpenReader(dir string) (_ *Reader, err error) {
	r := &Reader{}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	err = r.index.load(dir, func(f *os.File, s found) error {
		r.files, r.sizes = append(r.files, f), append(r.sizes, s.good)
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.order = r.index.ordered()
	return r, nil
}

// Entries returns the attempt that counts of every episode in dataset order.
func (r *Reader) Entries() []Entry { return r.index.entries(r.order) }

// Len is the number of episodes.
func (r *Reader) Len() int { return len(r.order) }

// Uncounted reads the attempts that do not count: others followed them. It lives as long as r.
func (r *Reader) Uncounted() *Reader {
	other := *r
	other.order = nil
	for n := range r.index.records {
		if r.index.counted(r.index.records[n].ID) != n {
			other.order = append(other.order, uint32(n))
		}
	}
	return &other
}

// Attempted is the number of attempts, those that do not count among them.
func (r *Reader) Attempted() int { return len(r.index.records) }

// Episodes yields the attempt that counts of every episode, the latest that is not pending, in dataset order: by row,
// then sample. It ends after an error.
func (r *Reader) Episodes(ctx context.Context) iter.Seq2[*episode.Episode, error] {
	return func(yield func(*episode.Episode, error) bool) {
		for _, n := range r.order {
			if err := context.Cause(ctx); err != nil {
				yield(nil, err)
				return
			}
			ep, err := r.read(int(n))
			if !yield(ep, err) || err != nil {
				return
			}
		}
	}
}

// Episode returns the attempt of an episode that counts, or a subagent in it. The error wraps ErrNoEpisode when the journal
// has none.
func (r *Reader) Episode(id string) (*episode.Episode, error) {
	n := r.index.counted(id)
	if n >= 0 || episode.PathOf(id) == "" {
		return r.one(n, id)
	}
	root, err := r.one(r.index.counted(episode.RootOf(id)), id)
	if err != nil {
		return nil, err
	}
	for ep := range root.Tree() {
		if ep.ID == id {
			return ep, nil
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrNoEpisode, id)
}

// Last returns the last attempt of an episode, pending or not. The error wraps ErrNoEpisode when the journal has none.
func (r *Reader) Last(id string) (*episode.Episode, error) {
	return r.one(r.index.latest(id), id)
}

// LastEntry is the entry of the last attempt of an episode, pending or not.
func (r *Reader) LastEntry(id string) (Entry, bool) { return r.index.at(r.index.latest(id)) }

func (r *Reader) one(n int, id string) (*episode.Episode, error) {
	if n < 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoEpisode, id)
	}
	return r.read(n)
}

// ErrNoEpisode is returned for an id that a journal does not hold.
var ErrNoEpisode = errors.New("the journal has no such episode")

// read reads one attempt.
func (r *Reader) read(n int) (ep *episode.Episode, err error) {
	at := &r.index.records[n]
	_, payload, err := readFrame(r.files[at.segment-1], at.Entry, at.offset, r.sizes[at.segment-1])
	if err == nil {
		ep, err = at.Entry.decode(payload)
	}
	if err == nil && r.Strict {
		err = readsAsWritten(ep, payload)
	}
	if err != nil {
		return nil, r.damaged(n, err)
	}
	return ep, nil
}

// damaged says of which frame an error is; a log.Broken is an *ErrDamaged.
func (r *Reader) damaged(n int, err error) error {
	at := &r.index.records[n]
	segment := r.files[at.segment-1].Name()
	if reason, ok := errors.AsType[log.Broken](err); ok {
		before, after := r.index.neighbours(n)
		return &ErrDamaged{Segment: segment, Offset: at.offset, Reason: string(reason), ID: at.ID, Before: before, After: after}
	}
	if err != nil {
		return fmt.Errorf("read episode %s from %s: %w", at.ID, segment, err)
	}
	return nil
}

// readsAsWritten holds an episode against the text that it was read from, which has to be what it is written as. Texts of
// earlier schemas differ.
func readsAsWritten(ep *episode.Episode, payload []byte) error {
	if ep.Schema != episode.SchemaVersion {
		return nil
	}
	was, err := decompressor.DecodeAll(payload, nil)
	if err != nil {
		return log.Broken("decompress: " + err.Error())
	}
	is, err := Encode(ep)
	if err != nil {
		return log.Broken(err.Error())
	}
	if !bytes.Equal(was, is) {
		return log.Broken("the episode does not read as it was written; please report this")
	}
	return nil
}

// Close closes the segments.
func (r *Reader) Close() error {
	var err error
	for _, f := range r.files {
		err = errors.Join(err, f.Close())
	}
	r.files = nil
	return err
}
