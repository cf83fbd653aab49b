package turns

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"trajgen/outputs/log/disk"
)

// Forget drops the steps of an attempt that the journal has.
func (l *Log) Forget(id string, attempt int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(key{id, attempt})
	enough := func() bool { return l.size-l.live > max(l.compact, l.live) }
	if !enough() {
		return nil
	}
	l.rest()
	if l.failed != nil || !enough() { // somebody else has moved it
		return l.failed
	}
	return l.fail(l.move())
}

// move writes what is in play into a new file, in the place of this one.
func (l *Log) move() (err error) {
	path := l.path + ".new"
	next, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return fmt.Errorf("move what is in play: %w", disk.Explain(path, err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("move what is in play: %w", disk.Explain(path, err)), next.Close())
		}
	}()
	moved := map[key]*record{}
	var size int64
	var buf, frame []byte
	for _, k := range slices.SortedFunc(maps.Keys(l.all), key.compare) {
		r := &record{damage: l.all[k].damage}
		moved[k] = r
		for _, p := range l.all[k].frames {
			if buf, err = readPayload(l.file, p.head(k), buf); err != nil {
				return err
			}
			if frame, err = appendFrame(frame[:0], k, int(p.number), buf); err != nil {
				return err
			}
			if _, err = next.WriteAt(frame, size); err != nil {
				return err
			}
			p.offset = size
			r.frames = append(r.frames, p)
			r.bytes += int64(len(frame))
			size += int64(len(frame))
		}
		if r.damage == nil {
			continue
		}
		// What is moved has no gap where its last steps were lost: it has to say so by itself.
		if frame, err = appendFrame(frame[:0], k, lostNumber, []byte(r.damage.Error())); err != nil {
			return err
		}
		if _, err = next.WriteAt(frame, size); err != nil {
			return err
		}
		size += int64(len(frame))
	}
	if err = next.Sync(); err != nil {
		return err
	}
	if err = os.Rename(path, l.path); err != nil {
		return err
	}
	if err = disk.Sync(l.dir); err != nil {
		return err
	}
	_ = l.file.Close() // nothing in it waits to be written
	l.file, l.size, l.live, l.all, l.synced = next, size, size, moved, l.written
	return nil
}

func (k key) compare(o key) int {
	if k.id != o.id {
		return strings.Compare(k.id, o.id)
	}
	return k.attempt - o.attempt
}
