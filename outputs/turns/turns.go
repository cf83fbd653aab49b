// Package turns keeps the steps of episodes in play until the journal has the episode.
//
// It is one file of frames, to which each step is added as it happens. What is finished stays in it until it outweighs
// what is not; then the rest moves to a new file. There is one writer, whom the lock of the run's journal protects.
package turns

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"trajgen/outputs/log/disk"
)

// FileName is the name of the file in a run directory.
const FileName = "turns"

// Options are how the file is kept. The zero value is ready for use.
type Options struct {
	// Finished says that the journal has an attempt, or a later one. Optional.
	Finished func(id string, attempt int) bool
	// CompactBytes is how much has to be finished, at least, before the rest moves; 0 is 64 MiB.
	CompactBytes int64
	Logger       *slog.Logger // nil is silent
}

// Log is the file, open for writing. It is safe for concurrent use.
type Log struct {
	dir     string
	path    string
	compact int64
	logger  *slog.Logger

	mu      sync.Mutex // guards what follows
	syncing bool       // somebody does, without holding mu
	rested  sync.Cond  // on mu: nobody syncs any more
	file    *os.File
	size    int64
	live    int64 // bytes of the attempts in play
	all     map[key]*record
	written int64 // bytes since the file was opened
	synced  int64 // of them on the disk
	failed  error // why no step is taken any more
}

// record is where the steps of an attempt are.
type record struct {
	frames []place
	bytes  int64
	damage error
}

// place is a head as it is kept in memory, where each turn in play has two.
type place struct {
	offset            int64
	number, size, sum uint32
}

func (p place) head(k key) head {
	return head{
		key: k, number: int(p.number), offset: p.offset, payload: p.offset + frameHead + int64(len(k.id)), size: int64(p.size), sum: p.sum,
	}
}

// Open opens the file in dir, and makes it when there is none. What a crash left half-written at its end is cut off.
// What is damaged otherwise is logged with its place, and Recall of the attempt that it hit says so.
func Open(dir string, options Options) (_ *Log, err error) {
	l := &Log{dir: dir, path: filepath.Join(dir, FileName), compact: options.CompactBytes, logger: options.Logger, all: map[key]*record{}}
	l.rested.L = &l.mu
	if l.compact == 0 {
		l.compact = 64 << 20
	}
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	if l.file, err = os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, fmt.Errorf("open %s: %w", l.path, disk.Explain(l.path, err))
	}
	defer func() {
		if err != nil {
			l.file.Close()
		}
	}()
	if err := os.Remove(l.path + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) { // the writer died while it moved
		return nil, fmt.Errorf("open %s: %w", l.path, err)
	}
	if err := disk.Sync(dir); err != nil {
		return nil, err
	}
	if err := l.load(); err != nil {
		return nil, fmt.Errorf("read %s: %w", l.path, err)
	}
	for k := range l.all {
		if options.Finished != nil && options.Finished(k.id, k.attempt) {
			l.drop(k)
		}
	}
	if l.size > l.live {
		return l, l.move()
	}
	return l, nil
}

// load reads the heads and checks the payloads.
func (l *Log) load() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	var buf []byte
	for l.size < size {
		h, err := readHead(l.file, l.size, size)
		if err == nil {
			buf, err = readPayload(l.file, h, buf)
			if reason, ok := errors.AsType[errFrame](err); ok && h.end() == size {
				return l.cut(size, reason) // the machine died before it was on disk
			} else if ok {
				l.hit(h.key, fmt.Errorf("step %d at byte %d: %w", h.number, h.offset, reason))
				l.size = h.end()
				continue
			}
		}
		if reason, ok := errors.AsType[errFrame](err); ok {
			next, err := following(l.file, l.size+1, size)
			if err != nil {
				return err
			}
			if next == size {
				return l.cut(size, reason)
			}
			l.logger.Warn("the record of turns is damaged", "file", l.path, "from", l.size, "to", next, "reason", reason)
			l.size = next
			continue
		}
		if err != nil {
			return err
		}
		if h.number == lostNumber {
			l.hit(h.key, errors.New(string(buf)))
		} else {
			l.add(h)
		}
		l.size = h.end()
	}
	return nil
}

// cut takes off what was being written when the writer died.
func (l *Log) cut(size int64, reason errFrame) error {
	l.logger.Warn("cut the torn end off the record of turns", "file", l.path, "offset", l.size, "bytes", size-l.size, "reason", reason)
	if err := l.file.Truncate(l.size); err != nil {
		return disk.Explain(l.path, err)
	}
	return l.file.Sync()
}

// hit notes that an attempt's record is damaged.
func (l *Log) hit(k key, damage error) {
	r := l.of(k)
	if r.damage == nil {
		r.damage = damage
		l.logger.Warn("the record of an episode is damaged; it starts anew", "file", l.path, "id", k.id, "attempt", k.attempt, "reason", damage.Error())
	}
}

func (l *Log) of(k key) *record {
	r := l.all[k]
	if r == nil {
		r = &record{}
		l.all[k] = r
	}
	return r
}

// add notes a frame that is whole. One that follows a gap is kept: it says what was paid for.
func (l *Log) add(h head) {
	r := l.of(h.key)
	if h.number != len(r.frames) {
		l.hit(h.key, fmt.Errorf("step %d at byte %d where step %d was to be", h.number, h.offset, len(r.frames)))
	}
	r.frames = append(r.frames, place{h.offset, uint32(h.number), uint32(h.size), h.sum})
	r.bytes += h.end() - h.offset
	l.live += h.end() - h.offset
}

// drop forgets an attempt.
func (l *Log) drop(k key) {
	if r := l.all[k]; r != nil {
		l.live -= r.bytes
		delete(l.all, k)
	}
}

// Recall returns the steps of an attempt in their order. With an error the record is damaged, and what comes with it is
// what of it can be read.
func (l *Log) Recall(id string, attempt int) ([][]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := key{id, attempt}
	r := l.all[k]
	if r == nil {
		return nil, nil
	}
	steps := make([][]byte, 0, len(r.frames))
	for _, p := range r.frames {
		h := p.head(k)
		step, err := readPayload(l.file, h, nil)
		if err != nil {
			return steps, fmt.Errorf("step %d at byte %d: %w", h.number, h.offset, err)
		}
		steps = append(steps, step)
	}
	return steps, r.damage
}

// Close closes the file. Where nothing is in play any more it leaves it empty.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest()
	if errors.Is(l.failed, errClosed) {
		return nil
	}
	var err error
	if len(l.all) == 0 && l.failed == nil {
		err = l.file.Truncate(0)
	}
	l.failed = errClosed
	return errors.Join(err, l.file.Close())
}

var errClosed = errors.New("it is closed")
