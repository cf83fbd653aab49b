package turns

import (
	"context"
	"fmt"
)

// Record adds a step. A paid one is on disk when it returns; any other would survive the process, and is on disk with
// the next paid one. An error of writing is for good.
func (l *Log) Record(_ context.Context, id string, attempt int, step []byte, paid bool) error {
	l.moving.RLock()
	defer l.moving.RUnlock()
	err := l.write(key{id, attempt}, step)
	if err == nil && paid {
		err = l.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("record a turn: %w", err)
	}
	return nil
}

// write gives a step to the system.
func (l *Log) write(k key, payload []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := step{key: k}
	if r := l.all[k]; r != nil {
		s.number = uint32(len(r.at))
	}
	frame, err := encode(s, payload)
	if err != nil {
		return err
	}
	at, err := l.file.Append(frame)
	if err != nil {
		return err
	}
	l.add(s, at, at+int64(len(frame)))
	return nil
}
