package turns

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"

	"trajgen/outputs/log/disk"
)

// Record adds a step. A paid one is on disk when it returns; any other would survive the process, and is on disk with
// the next paid one. An error of writing is for good.
func (l *Log) Record(_ context.Context, id string, attempt int, step []byte, paid bool) error {
	mine, err := l.write(key{id, attempt}, step)
	if err != nil || !paid {
		return err
	}
	return l.sync(mine)
}

// write gives a step to the system. It returns how many bytes were written by then.
func (l *Log) write(k key, step []byte) (written int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return 0, fmt.Errorf("the record of turns takes no more steps: %w", l.failed)
	}
	number := 0
	if r := l.all[k]; r != nil {
		number = len(r.frames)
	}
	frame, err := appendFrame(make([]byte, 0, frameHead+len(k.id)+len(step)), k, number, step)
	if err != nil {
		return 0, err
	}
	if _, err := l.file.WriteAt(frame, l.size); err != nil {
		return 0, l.fail(errors.Join(fmt.Errorf("record a turn: %w", disk.Explain(l.path, err)), l.file.Truncate(l.size)))
	}
	payload := l.size + frameHead + int64(len(k.id))
	l.add(head{key: k, number: number, offset: l.size, payload: payload, size: int64(len(step)), sum: crc32.Checksum(step, castagnoli)})
	l.size += int64(len(frame))
	l.written += int64(len(frame))
	return l.written, nil
}

func (l *Log) fail(err error) error {
	if l.failed == nil {
		l.failed = err
	}
	return err
}

// sync returns when so many bytes are on disk. One syncs for all who wait.
func (l *Log) sync(mine int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.synced < mine {
		if l.failed != nil {
			return l.failed
		}
		if l.syncing {
			l.rested.Wait()
			continue
		}
		l.syncOnce()
	}
	return nil
}

// syncOnce syncs what was written. The caller holds mu, which others can have meanwhile.
func (l *Log) syncOnce() {
	file, all := l.file, l.written
	l.syncing = true
	l.mu.Unlock()
	err := file.Sync()
	l.mu.Lock()
	l.syncing = false
	l.rested.Broadcast()
	if err != nil {
		_ = l.fail(fmt.Errorf("record a turn: %w", disk.Explain(l.path, err)))
		return
	}
	l.synced = all
}

// rest waits until nobody syncs: only then can the file be another one. The caller holds mu.
func (l *Log) rest() {
	for l.syncing {
		l.rested.Wait()
	}
}
