package journal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"trajgen/outputs/log/disk"
	"trajgen/pipeline/episode"
)

// pending is a frame on its way to the disk.
type pending struct {
	frame []byte
	entry Entry
	turn  chan bool // true: lead the next write; false: written, err says how
	err   error
}

// Append writes an episode and returns when it is on disk. Callers that come while a write is under way share the
// next one. An error of writing is for good: what was written before stands, and every later call returns it too. A
// cancelled ctx gives up only what no write has taken yet.
func (j *Journal) Append(ctx context.Context, ep *episode.Episode) error {
	j.life.RLock()
	defer j.life.RUnlock()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	frame, err := encodeFrame(ep) // here, so that a leader only writes
	if err != nil {
		return err
	}
	p := &pending{frame: frame, entry: entryOf(ep), turn: make(chan bool, 1)}
	lead, err := j.enqueue(p)
	if err != nil {
		return err
	}
	if !lead {
		select {
		case lead = <-p.turn:
		case <-ctx.Done():
			if j.withdraw(p) {
				return context.Cause(ctx)
			}
			lead = <-p.turn
		}
	}
	if lead {
		j.commit()
	}
	return p.err
}

// enqueue adds a frame, and says whether its owner has to lead the write.
func (j *Journal) enqueue(p *pending) (lead bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return false, ErrClosed
	}
	if j.failed != nil {
		return false, fmt.Errorf("the journal takes no more episodes: %w", j.failed)
	}
	j.queue = append(j.queue, p)
	lead = !j.leading
	j.leading = true
	return lead, nil
}

// withdraw takes back a frame that no leader has taken. The one at the head of the queue may have been told to lead.
func (j *Journal) withdraw(p *pending) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.Index(j.queue, p)
	if i < 0 || len(p.turn) > 0 {
		return false
	}
	j.queue = slices.Delete(j.queue, i, i+1)
	return true
}

// commit writes all frames that wait, tells their owners, and makes the first of those who came meanwhile the next
// leader, so that no caller works for others longer than one write.
func (j *Journal) commit() {
	j.mu.Lock()
	batch, failed := j.queue, j.failed
	j.queue = nil
	j.mu.Unlock()

	err := failed
	var begin int64
	if err == nil {
		begin, err = j.write(batch)
	}

	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.failed = err
	}
	for _, p := range batch {
		if p.err = err; err == nil {
			j.index.add(p.entry, j.number, begin)
			begin += int64(len(p.frame))
		}
		p.turn <- false // nobody reads the leader's own
	}
	if len(j.queue) > 0 {
		j.queue[0].turn <- true
		return
	}
	j.leading = false
}

// write puts the frames of a batch behind each other into one segment, syncs it, and returns where the first begins.
func (j *Journal) write(batch []*pending) (begin int64, err error) {
	var total int64
	for _, p := range batch {
		seal(p.frame, uint32(min(total, 1<<32-1)))
		total += int64(len(p.frame))
	}
	if j.file == nil || j.size > 0 && j.size+total > j.segmentBytes {
		if err := j.rotate(); err != nil {
			return 0, err
		}
	}
	begin, end := j.size, j.size
	for _, p := range batch {
		n, err := j.file.WriteAt(p.frame, end)
		end += int64(n)
		if err != nil {
			return 0, j.undo(fmt.Errorf("write journal segment: %w", disk.Explain(j.file.Name(), err)))
		}
	}
	if err := j.file.Sync(); err != nil {
		return 0, j.undo(fmt.Errorf("sync journal segment: %w", disk.Explain(j.file.Name(), err)))
	}
	j.size = end
	return begin, nil
}

// undo takes a failed write off the segment, so that a reader does not see what was never acknowledged.
func (j *Journal) undo(cause error) error {
	if err := j.file.Truncate(j.size); err != nil {
		return errors.Join(cause, fmt.Errorf("take it back: %w", err))
	}
	// After a failed sync the kernel may have dropped the pages; a second sync that succeeds proves nothing about
	// them, only about the truncation.
	if err := j.file.Sync(); err != nil {
		return errors.Join(cause, fmt.Errorf("sync after taking it back: %w", err))
	}
	return cause
}

// rotate begins the next segment. The old one is synced: every write was. Its index file is written when the new segment
// is durable, and is not needed: a journal without it is opened more slowly.
func (j *Journal) rotate() error {
	path := filepath.Join(j.dir, segmentName(j.number+1))
	next, err := j.disk.Create(path)
	if err != nil {
		return fmt.Errorf("begin journal segment: %w", disk.Explain(path, err))
	}
	if err := j.disk.Sync(j.dir); err != nil {
		return errors.Join(err, next.Close())
	}
	if j.file != nil {
		j.file.Close() // nothing in it waits to be written
		j.mu.Lock()
		data := j.index.encodeFile(j.first, len(j.index.records), j.size)
		j.first = len(j.index.records)
		j.mu.Unlock()
		j.writeIndex(indexName(j.number), data)
		_ = j.disk.Remove(filepath.Join(j.dir, endName(j.number))) // it says less, and that seldom
	}
	j.file, j.number, j.size, j.end = next, j.number+1, 0, 0
	return nil
}
