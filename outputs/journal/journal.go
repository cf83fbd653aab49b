// Package journal keeps the episodes of a run: the truth, of which every other file is a pure function.
//
// An episode is done when Append has returned. A Reader goes over a journal, beside a live writer too, in dataset order.
// Opening reads all heads, or the index files beside full segments, and verifies the payloads of the last segment, which
// is where a crash tears; those of the others are verified when they are read, by Check, and so by every export.
package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"trajgen/outputs/log"
	"trajgen/outputs/log/disk"
	"trajgen/pipeline/episode"
)

// Options are how a journal is written. The zero value is ready for use.
type Options struct {
	// SegmentBytes is the size at which a new segment is begun; 0 is 64 MiB.
	SegmentBytes int64
	Logger       *slog.Logger // nil is silent
	Disk         disk.System  // nil is the real one
}

// DefaultSegmentBytes is the size at which a new segment is begun unless the options say otherwise.
const DefaultSegmentBytes = 64 << 20

// ErrClosed is returned by what needs an open journal.
var ErrClosed = errors.New("the journal is closed")

// ErrLocked is returned when another process holds what this one wants to write.
var ErrLocked = disk.ErrLocked

// Journal is a directory of append-only segments with one writer. It is safe for concurrent use.
type Journal struct {
	dir          string
	segmentBytes int64
	lock         *os.File
	logger       *slog.Logger
	disk         disk.System

	life   sync.RWMutex // held for reading by each Append, so that Close waits for them
	closed bool         // life guards it

	mu    sync.Mutex // guards the index, which the group alone changes
	index index

	// The group alone uses these, once at a time, and Close after it.
	group  *log.Group[sealed]
	failed error // why no frame is taken any more
	file   *log.File
	number int
	first  int   // number of the first record of the file
	end    int64 // how much of the file its file of the end counts
}

// Open opens the journal in dir for writing, and makes it when there is none. A torn end of the last segment, which is
// what a crash leaves, is cut off and kept beside it; other damage is an *ErrDamaged. A second writer is refused, also
// one on another machine when the file system has working locks.
func Open(dir string, options Options) (_ *Journal, err error) {
	if options.SegmentBytes < 0 {
		return nil, fmt.Errorf("journal segments of %d bytes (want a positive size, or 0 for %d)", options.SegmentBytes, DefaultSegmentBytes)
	}
	if options.SegmentBytes == 0 {
		options.SegmentBytes = DefaultSegmentBytes
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Disk == nil {
		options.Disk = disk.Real{}
	}
	if err := disk.MakeDir(dir); err != nil {
		return nil, fmt.Errorf("make journal directory %s: %w", dir, disk.Explain(dir, err))
	}
	j := &Journal{dir: dir, segmentBytes: options.SegmentBytes, logger: options.Logger, disk: options.Disk}
	j.group = log.NewGroup(j.write)
	if j.lock, err = log.Lock(dir); err != nil {
		return nil, err
	}
	if err := j.load(); err != nil {
		j.lock.Close()
		return nil, err
	}
	return j, nil
}

// load learns what the segments hold and leaves the last one open for writing.
func (j *Journal) load() error {
	var last found
	err := j.index.load(j.dir, func(f *os.File, s found) error {
		last = s
		if s.index != nil {
			j.mendIndex(s)
		}
		return f.Close()
	})
	if err != nil || last.number == 0 {
		return err
	}
	path := filepath.Join(j.dir, SegmentName(last.number))
	f, err := j.disk.Open(path)
	if err != nil {
		return fmt.Errorf("open journal segment: %w", disk.Explain(path, err))
	}
	if last.torn != nil {
		err = j.keepTorn(f, last)
	}
	if err == nil {
		err = j.settle(f, last.write, last.good)
	}
	if err == nil {
		j.file, err = log.New(f, last.good)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	j.number, j.first, j.end = last.number, last.first, last.ended
	return nil
}

// mendIndex makes the index file of a full segment.
func (j *Journal) mendIndex(s found) {
	if !errors.Is(s.index, fs.ErrNotExist) {
		j.logger.Warn("made the index of a journal segment anew", "segment", filepath.Join(j.dir, SegmentName(s.number)), "reason", s.index)
	}
	j.writeIndex(indexName(s.number), j.index.encodeFile(s.first, len(j.index.records), s.good))
}

// settle makes durable what was found: the writer before may have died, or been refused, before its last sync, also that of
// the directory. After a refused one the kernel may hold bytes as clean that are not on disk, so they are written again.
// What came before the last write is durable, or there would have been no other behind it.
func (j *Journal) settle(f disk.File, from, to int64) error {
	_, err := io.Copy(io.NewOffsetWriter(f, from), io.NewSectionReader(f, from, to-from))
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = j.disk.Sync(j.dir)
	}
	if err != nil {
		return fmt.Errorf("settle the last write of journal segment %s: %w", f.Name(), disk.Explain(f.Name(), err))
	}
	return nil
}

// writeIndex writes an index file. It is not needed: without that of a full segment a journal is opened more slowly, and
// without that of the last one a lost end looks like an interrupted write.
func (j *Journal) writeIndex(name string, data []byte) {
	path := filepath.Join(j.dir, name)
	if err := disk.WriteFile(j.disk, path, disk.Bytes(data)); err != nil {
		j.logger.Warn("a journal segment stays without its index; the next run makes it", "path", path, "error", err)
	}
}

// keepTorn copies the torn end of the last segment, which is about to be cut off, beside it: the bytes may be worth a look.
func (j *Journal) keepTorn(f disk.File, last found) error {
	kept, err := keepBytes(j.disk, f.Name()+".%d.torn", f, last.good, last.size-last.good)
	if err != nil {
		return fmt.Errorf("cut the torn end off journal segment %s: %w", f.Name(), err)
	}
	j.logger.Warn("cut the torn end off the journal; the episodes in it are played again",
		"segment", f.Name(), "offset", last.good, "bytes", last.size-last.good, "kept", kept, "reason", last.torn)
	return nil
}

// Has returns the attempt of an episode that counts: the latest that is not pending.
func (j *Journal) Has(id string) (Entry, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.index.at(j.index.counted(id))
}

// Last returns the last attempt of an episode. When it is pending, the writer died before the attempt that was to follow.
func (j *Journal) Last(id string) (Entry, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.index.at(j.index.latest(id))
}

// Retried counts the attempts that failed and that another was to follow at once.
func (j *Journal) Retried() (count int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.index.records {
		if r := &j.index.records[i]; r.Pending && r.Outcome != episode.Cancelled { // given up, for want of a record that could be followed
			count++
		}
	}
	return count
}

// Entries returns the attempt that counts of every episode in dataset order.
func (j *Journal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.index.entries(j.index.ordered())
}

// Len is the number of episodes that have an attempt that counts.
func (j *Journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.index.count
}

// Close waits for the appends under way, notes how much the journal holds, and lets another writer in.
func (j *Journal) Close() error {
	j.life.Lock()
	defer j.life.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	var err error
	if j.file != nil {
		if j.failed == nil && j.end != j.file.Size() { // after a failure it is not known what is on the disk
			j.writeIndex(endName(j.number), j.index.encodeFile(j.first, len(j.index.records), j.file.Size()))
		}
		err = j.file.Close()
	}
	return errors.Join(err, j.lock.Close())
}
