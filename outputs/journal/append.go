package journal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"trajgen/outputs/log"
	"trajgen/outputs/log/disk"
	"trajgen/pipeline/episode"
)

// sealed is a frame on its way to the disk.
type sealed struct {
	frame []byte
	entry Entry
}

// Append writes an episode and returns when it is on disk. Callers that come while a write is under way share the
// next one. An error of writing is for good: what was written before stands, and every later call returns it too. A
// ctx that was cancelled before gives the episode up.
func (j *Journal) Append(ctx context.Context, ep *episode.Episode) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	frame, err := encodeFrame(ep) // here, so that the goroutine that leads a write only writes
	if err != nil {
		return err
	}
	return j.commit(sealed{frame, entryOf(ep)})
}

// commit puts frames on disk, together with those of others.
func (j *Journal) commit(batch ...sealed) error {
	j.life.RLock()
	defer j.life.RUnlock()
	if j.closed {
		return ErrClosed
	}
	return j.group.Do(batch...)
}

// write puts the frames of a batch behind each other into one segment. The group calls it once at a time.
func (j *Journal) write(batch []sealed) error {
	if j.failed != nil {
		return fmt.Errorf("the journal takes no more episodes: %w", j.failed)
	}
	pieces := make([][]byte, len(batch))
	var total int64
	for i, s := range batch {
		frames.Seal(s.frame, total)
		pieces[i] = s.frame
		total += int64(len(s.frame))
	}
	if j.file == nil || j.file.Size() > 0 && j.file.Size()+total > j.segmentBytes {
		j.failed = j.rotate()
	}
	var at int64
	if j.failed == nil {
		at, j.failed = j.file.Commit(pieces...)
	}
	if j.failed != nil {
		j.failed = fmt.Errorf("write journal segment: %w", j.failed)
		return j.failed
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range batch {
		j.index.add(s.entry, j.number, at)
		at += int64(len(s.frame))
	}
	return nil
}

// rotate begins the next segment. The old one is synced: every write was. Its index file is written when the new segment
// is durable, and is not needed: a journal without it is opened more slowly.
func (j *Journal) rotate() error {
	path := filepath.Join(j.dir, SegmentName(j.number+1))
	made, err := j.disk.Create(path)
	if err != nil {
		return disk.Explain(path, err)
	}
	next, err := log.New(made, 0)
	if err == nil {
		err = j.disk.Sync(j.dir)
	}
	if err != nil {
		return errors.Join(err, made.Close())
	}
	if j.file != nil {
		j.file.Close() // nothing in it waits to be written
		data := j.index.encodeFile(j.first, len(j.index.records), j.file.Size())
		j.writeIndex(indexName(j.number), data)
		_ = j.disk.Remove(filepath.Join(j.dir, endName(j.number))) // it says less, and that seldom
	}
	j.file, j.number, j.first, j.end = next, j.number+1, len(j.index.records), 0
	return nil
}
