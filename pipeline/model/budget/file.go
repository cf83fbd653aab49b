package budget

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"trajgen/outputs/log"
	"trajgen/outputs/log/disk"
)

// A ledger's file is a list of marks, a JSON object a line; the last whole line counts. Before a reservation exceeds the mark, the
// ledger writes a mark that is higher by a whole step, and syncs it: so writes are rare, and a run that is killed has never spent
// more than the last mark. Close writes the actual spending. So a crash wastes at most a step and the reservations of requests in
// flight, and never exceeds the limit.

// steps is the number of steps in a limit.
const steps = 100

// Attach continues the file at path, or creates it. If the file has no whole line, because it is new or the machine died during the
// first write, earlier gives the spending.
func (l *Ledger) Attach(path string, earlier func() (Amount, error)) error {
	marked, said, end, err := read(path)
	if err == nil && !said {
		marked, err = earlier()
	}
	if err != nil {
		return err
	}
	made, err := disk.Make(path)
	if err != nil {
		return fmt.Errorf("open the budget's ledger: %w", err)
	}
	file, err := log.New(made, end)
	if err == nil {
		err = file.Sync() // reservations rely on the mark that was read
	}
	if err != nil {
		return errors.Join(fmt.Errorf("open the budget's ledger: %w", err), made.Close())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file = file
	l.spent = l.spent.Plus(marked)
	l.marked = marked // the next start finds as much again, also where it has to ask: a step is for the first try
	return l.vouch(l.spent.Plus(l.held))
}

// Read returns the spending in the ledger at path, and whether it has any mark.
func Read(path string) (mark Amount, said bool, err error) {
	mark, said, _, err = read(path)
	return mark, said, err
}

// read also returns where the last whole line ends. A torn line was not synced, so no reservation relies on it.
func read(path string) (mark Amount, said bool, end int64, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return mark, false, 0, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return mark, false, 0, fmt.Errorf("read the budget's ledger: %w", err)
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	for line := range bytes.Lines(data) {
		var m struct {
			Tokens *int64 `json:"tokens"`
			Nano   *int64 `json:"nano_usd"`
		}
		if json.Unmarshal(line, &m) == nil && m.Tokens != nil && m.Nano != nil && *m.Tokens >= 0 && *m.Nano >= 0 {
			mark, said = Amount{*m.Tokens, *m.Nano}, true
		}
	}
	return mark, said, int64(len(data)), nil
}

// vouch raises the mark when need is above it.
func (l *Ledger) vouch(need Amount) error {
	if l.file == nil || need.Tokens <= l.marked.Tokens && need.Nano <= l.marked.Nano {
		return nil
	}
	mark := need.atLeast(l.marked)
	mark.Tokens = sum(mark.Tokens, step(need.Tokens, l.limit.Tokens, 10_000))
	mark.Nano = sum(mark.Nano, step(need.Nano, l.limit.Nano, 1e7))
	// A mark beyond the limit would make a resumed run believe that more was spent than may be.
	if l.limit.Tokens > 0 {
		mark.Tokens = max(min(mark.Tokens, l.limit.Tokens), need.Tokens)
	}
	if l.limit.Nano > 0 {
		mark.Nano = max(min(mark.Nano, l.limit.Nano), need.Nano)
	}
	if err := l.write(mark); err != nil {
		return err
	}
	l.marked = mark
	return nil
}

// step is a share of the limit, or without one a share of what is spent.
func step(need, limit, least int64) int64 {
	if limit > 0 {
		return limit / steps
	}
	return max(need/steps*5, least)
}

func (l *Ledger) write(a Amount) error {
	line, err := json.Marshal(a)
	if err == nil {
		_, err = l.file.Commit(line, []byte("\n"))
	}
	if err != nil {
		return fmt.Errorf("write the budget's ledger: %w", err)
	}
	return nil
}

// Close writes the actual spending. Open reservations count as spent.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.write(l.spent.Plus(l.held))
	err = errors.Join(err, l.file.Close())
	l.file, l.broken = nil, errors.New("the budget's ledger is closed")
	return err
}
