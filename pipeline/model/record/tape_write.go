package record

import (
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"trajgen/outputs/log"
	"trajgen/outputs/log/disk"
	"trajgen/pipeline/episode"
)

// Tape is one file: a line that names the format, then frames (tape_frame.go), each with a checksum. An exchange holds of its
// request what the episode's request before it did not have, so that a conversation lies on the tape about once. There is
// nothing of HTTP's request headers on it, and so no key.
//
// It is written here, and safe for concurrent use. Of an episode it holds a few words until Forget.
//
// The first error of the disk is the last thing that it does: everything after it gets the same error.
type Tape struct {
	path string
	file *log.File
	seed maphash.Seed

	mu        sync.Mutex     // guards what follows
	tools     map[uint64]int // the numbers of their frames
	lists     int            // of tools
	plays     map[key]*taped
	subagents bool // some play was a subagent's
}

// taped is what is held of an attempt in play.
type taped struct {
	last      said           // of the agent
	exchanges map[string]int // by role
}

// said is a request of an attempt's agent.
type said struct {
	bytes int    // of the messages without the bracket at their end
	hash  uint64 // of those bytes
}

// OpenTape opens a tape for writing. One that holds something already is continued with more, and refused without. What
// a writer left half-written is cut off.
func OpenTape(path string, more bool, logger *slog.Logger) (_ *Tape, err error) {
	path = Path(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the tape's directory: %w", err)
	}
	file, err := disk.Make(path)
	if err != nil {
		return nil, fmt.Errorf("open tape: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	if err := disk.Lock(file); errors.Is(err, disk.ErrLocked) {
		return nil, fmt.Errorf("lock tape %s: another run is recording onto it", path)
	} else if err != nil {
		return nil, fmt.Errorf("lock tape %s: %w", path, err)
	}
	t := &Tape{path: path, seed: maphash.MakeSeed(), tools: map[uint64]int{}, plays: map[key]*taped{}}
	exchanges := 0
	tail, size, gaps, err := scan(file, func(_ int64, inside []byte) error {
		switch kind(inside[0]) {
		case exchangeFrame:
			exchanges++
		case toolsFrame:
			t.lists++
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(gaps) > 0:
		return nil, fmt.Errorf("tape %s is damaged at byte %d: record onto another", path, gaps[0].from)
	case exchanges > 0 && !more:
		return nil, fmt.Errorf("tape %s holds %d exchanges of another run: --resume goes on with it, another path starts one", path, exchanges)
	case !more: // what died before it began
		tail, t.lists = 0, 0
	}
	if cut := size - tail; cut > 0 && tail > 0 {
		logger.Warn("the tape's end was half-written and is cut off", "path", path, "bytes", cut)
	}
	if t.file, err = log.New(file, tail); err == nil && tail == 0 {
		_, err = t.file.Append([]byte(magic))
	}
	if err != nil {
		return nil, t.explain(err)
	}
	return t, nil
}

// Begin says what is recorded from here on: run is a fingerprint.
func (t *Tape) Begin(run string, about Session) error {
	return t.write(sessionFrame, session{Session: about, Run: run}, nil)
}

// Add writes an exchange. An asker's exchanges come in the order in which they ended.
func (t *Tape) Add(x *Exchange) error {
	h := head{Exchange: *x, Fields: len(x.Request.Fields)}
	messages := t.news(x, &h)
	h.Messages = len(messages)
	blob := make([]byte, 0, len(x.Request.Fields)+len(messages)+len(x.Body))
	blob = append(append(append(blob, x.Request.Fields...), messages...), x.Body...)
	if err := t.addTools(x.Request.Tools, &h); err != nil {
		return err
	}
	if err := t.write(exchangeFrame, &h, blob); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	play := t.play(key{x.Episode, x.Attempt})
	if play.exchanges == nil {
		play.exchanges = map[string]int{}
	}
	play.exchanges[x.Role]++
	return nil
}

// play is what is held of an attempt. The caller holds mu.
func (t *Tape) play(k key) *taped {
	if t.plays[k] == nil {
		t.plays[k] = &taped{}
		t.subagents = t.subagents || episode.PathOf(k.episode) != ""
	}
	return t.plays[k]
}

// kept says how many exchanges of an attempt there are by now, by role.
func (t *Tape) kept(k key) map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.play(k).exchanges)
}

// resume goes on with an attempt that an earlier process had begun, behind so many of its exchanges.
func (t *Tape) resume(k key, kept map[string]int) error {
	t.mu.Lock()
	t.play(k).exchanges = maps.Clone(kept)
	t.mu.Unlock()
	return t.write(resumeFrame, resumed{Asker{Episode: k.episode, Attempt: k.attempt}, kept}, nil)
}

// news is what the messages have that those of the agent's request before did not.
func (t *Tape) news(x *Exchange, h *head) []byte {
	messages := x.Request.Messages
	if x.Role != "" || len(messages) == 0 { // others may ask several things at once
		return messages
	}
	open := messages[:len(messages)-1]
	now := said{len(open), maphash.Bytes(t.seed, open)}
	t.mu.Lock()
	play := t.play(key{x.Episode, x.Attempt})
	before := play.last
	play.last = now
	t.mu.Unlock()
	if before.bytes > 0 && before.bytes < len(messages) && maphash.Bytes(t.seed, messages[:before.bytes]) == before.hash {
		h.Keep = before.bytes
	}
	return messages[h.Keep:]
}

// addTools writes tools that are new to the tape.
func (t *Tape) addTools(tools []byte, h *head) error {
	if len(tools) == 0 {
		return nil
	}
	hash := maphash.Bytes(t.seed, tools)
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.tools[hash]; n > 0 {
		h.Tools = n
		return nil
	}
	if err := t.write(toolsFrame, list{t.lists + 1}, tools); err != nil {
		return err
	}
	t.lists++
	h.Tools, t.tools[hash] = t.lists, t.lists
	return nil
}

// write adds a frame.
func (t *Tape) write(k kind, about any, blob []byte) error {
	frame, err := pack(k, about, blob)
	if err != nil { // what follows would count on it
		return t.explain(t.file.Fail(err))
	}
	_, err = t.file.Append(frame)
	return t.explain(err)
}

func (t *Tape) explain(err error) error {
	if err != nil {
		return fmt.Errorf("write tape %s: %w", t.path, err)
	}
	return nil
}

// Sync returns when everything that was added before is on the disk.
func (t *Tape) Sync() error { return t.explain(t.file.Sync()) }

// Forget drops what is held of a play that has ended, and of its subagents'.
func (t *Tape) Forget(episode string, attempt int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	forget(t.plays, t.subagents, key{episode, attempt}, func(*taped) {})
}

// Close ends the tape.
func (t *Tape) Close() error {
	return errors.Join(t.Sync(), t.file.Close())
}
