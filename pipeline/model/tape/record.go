package tape

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
)

// Recorder writes a tape. It is safe for concurrent use. Of an episode it holds a few words until Forget.
//
// The first error of the disk is the last thing that it does: everything after it gets the same error.
type Recorder struct {
	path string
	file *log.File
	seed maphash.Seed

	mu    sync.Mutex                // guards what follows
	tools map[uint64]int            // the numbers of their frames
	lists int                       // of tools
	last  map[string]said           // by episode, for the agent's requests
	plays map[played]map[string]int // exchanges by role
}

// said is the last request of an episode's agent.
type said struct {
	attempt int
	bytes   int    // of the messages without the bracket at their end
	hash    uint64 // of those bytes
}

// Record opens a tape for writing. One that holds something already is continued with more, and refused without. What
// a writer left half-written is cut off.
func Record(path string, more bool, logger *slog.Logger) (_ *Recorder, err error) {
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
	r := &Recorder{path: path, seed: maphash.MakeSeed(), tools: map[uint64]int{}, last: map[string]said{}, plays: map[played]map[string]int{}}
	exchanges := 0
	tail, size, gaps, err := scan(file, func(_ int64, inside []byte) error {
		switch kind(inside[0]) {
		case exchangeFrame:
			exchanges++
		case toolsFrame:
			r.lists++
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
		tail, r.lists = 0, 0
	}
	if cut := size - tail; cut > 0 && tail > 0 {
		logger.Warn("the tape's end was half-written and is cut off", "path", path, "bytes", cut)
	}
	if r.file, err = log.New(file, tail); err == nil && tail == 0 {
		_, err = r.file.Append([]byte(magic))
	}
	if err != nil {
		return nil, r.explain(err)
	}
	return r, nil
}

// Begin says what is recorded from here on: run is a fingerprint.
func (r *Recorder) Begin(run string, about Session) error {
	return r.write(sessionFrame, session{Session: about, Run: run}, nil)
}

// Add writes an exchange. An asker's exchanges come in the order in which they ended.
func (r *Recorder) Add(x *Exchange) error {
	h := head{Exchange: *x, Fields: len(x.Request.Fields)}
	messages := r.news(x, &h)
	h.Messages = len(messages)
	blob := make([]byte, 0, len(x.Request.Fields)+len(messages)+len(x.Body))
	blob = append(append(append(blob, x.Request.Fields...), messages...), x.Body...)
	if err := r.addTools(x.Request.Tools, &h); err != nil {
		return err
	}
	if err := r.write(exchangeFrame, &h, blob); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	play := played{x.Episode, x.Attempt}
	if r.plays[play] == nil {
		r.plays[play] = map[string]int{}
	}
	r.plays[play][x.Role]++
	return nil
}

// Kept says how many exchanges of a play there are by now, by role.
func (r *Recorder) Kept(episode string, attempt int) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.plays[played{episode, attempt}])
}

// Resume goes on with a play that an earlier process had begun, behind so many of its exchanges.
func (r *Recorder) Resume(episode string, attempt int, kept map[string]int) error {
	r.mu.Lock()
	r.plays[played{episode, attempt}] = maps.Clone(kept)
	r.mu.Unlock()
	return r.write(resumeFrame, resumed{Asker{Episode: episode, Attempt: attempt}, kept}, nil)
}

// news is what the messages have that those of the agent's request before did not.
func (r *Recorder) news(x *Exchange, h *head) []byte {
	messages := x.Request.Messages
	if x.Role != "" || len(messages) == 0 { // others may ask several things at once
		return messages
	}
	r.mu.Lock()
	before, known := r.last[x.Episode]
	r.mu.Unlock()
	if known && before.attempt == x.Attempt && before.bytes < len(messages) && maphash.Bytes(r.seed, messages[:before.bytes]) == before.hash {
		h.Keep = before.bytes
	}
	open := messages[:len(messages)-1]
	now := said{x.Attempt, len(open), maphash.Bytes(r.seed, open)}
	r.mu.Lock()
	r.last[x.Episode] = now
	r.mu.Unlock()
	return messages[h.Keep:]
}

// addTools writes tools that are new to the tape.
func (r *Recorder) addTools(tools []byte, h *head) error {
	if len(tools) == 0 {
		return nil
	}
	hash := maphash.Bytes(r.seed, tools)
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.tools[hash]; n > 0 {
		h.Tools = n
		return nil
	}
	if err := r.write(toolsFrame, list{r.lists + 1}, tools); err != nil {
		return err
	}
	r.lists++
	h.Tools, r.tools[hash] = r.lists, r.lists
	return nil
}

// write adds a frame.
func (r *Recorder) write(k kind, about any, blob []byte) error {
	frame, err := pack(k, about, blob)
	if err != nil { // what follows would count on it
		return r.explain(r.file.Fail(err))
	}
	_, err = r.file.Append(frame)
	return r.explain(err)
}

func (r *Recorder) explain(err error) error {
	if err != nil {
		return fmt.Errorf("write tape %s: %w", r.path, err)
	}
	return nil
}

// Sync returns when everything that was added before is on the disk.
func (r *Recorder) Sync() error { return r.explain(r.file.Sync()) }

// Forget drops what is held of a play that has ended.
func (r *Recorder) Forget(episode string, attempt int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, episode)
	delete(r.plays, played{episode, attempt})
}

// Close ends the tape.
func (r *Recorder) Close() error {
	return errors.Join(r.Sync(), r.file.Close())
}
