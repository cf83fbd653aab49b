package record

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"trajgen/outputs/log"
	"trajgen/outputs/log/disk"
)

// Forget drops the steps of an attempt that the journal has.
func (l *Turns) Forget(id string, attempt int) error {
	if !l.forget(key{id, attempt}) {
		return nil
	}
	l.moving.Lock()
	defer l.moving.Unlock()
	if err := l.file.Failed(); err != nil || !l.outweighed() { // another goroutine has moved it
		return err
	}
	if err := l.move(); err != nil {
		return l.file.Fail(err)
	}
	return nil
}

// forget drops an attempt. It says whether the file should move.
func (l *Turns) forget(k key) bool {
	l.moving.RLock()
	defer l.moving.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(k)
	return l.outweighed()
}

// outweighed says whether what is finished is more than what is not. The caller holds moving, and mu or moving alone.
func (l *Turns) outweighed() bool { return l.file.Size()-l.live > max(l.compact, l.live) }

// move writes what is in play into a new file, in the place of this one. The caller is alone.
func (l *Turns) move() (err error) {
	path := l.path + ".new"
	made, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return fmt.Errorf("move what is in play: %w", disk.Explain(path, err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("move what is in play: %w", err), made.Close())
		}
	}()
	next, err := log.New(made, 0)
	if err != nil {
		return err
	}
	moved := map[key]*steps{}
	var live int64
	for _, k := range slices.SortedFunc(maps.Keys(l.all), key.compare) {
		r := &steps{damage: l.all[k].damage}
		moved[k] = r
		for _, at := range l.all[k].at {
			h, err := turnFrames.ReadHead(l.file, at, l.file.Size())
			if err != nil {
				return err
			}
			frame, err := h.Bytes(l.file)
			if err != nil {
				return err
			}
			if at, err = next.Append(frame); err != nil {
				return err
			}
			r.at = append(r.at, at)
			r.bytes += int64(len(frame))
		}
		live += r.bytes
		if r.damage == nil {
			continue
		}
		// What is moved has no gap where its last steps were lost: it has to say so by itself.
		frame, err := encode(step{k, lostNumber}, []byte(r.damage.Error()))
		if err != nil {
			return err
		}
		if _, err := next.Append(frame); err != nil {
			return err
		}
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
	l.file, l.live, l.all = next, live, moved
	return nil
}

func (k key) compare(o key) int {
	if k.episode != o.episode {
		return strings.Compare(k.episode, o.episode)
	}
	return k.attempt - o.attempt
}
