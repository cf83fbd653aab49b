package record

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// Replay answers requests with what was recorded. It is safe for concurrent use, one asker in one goroutine at a time
// where the asker is the agent. In memory it has the places of all exchanges, and the exchanges of the plays that go on.
type Replay struct {
	file  *os.File
	size  int64
	about Session // the last one
	gaps  int
	plays map[key]*play
	tools map[int]int64 // the places of lists of tools, by number, from 1
}

// play is what was asked during a play of an episode.
type play struct {
	session int // a play that was cut short was begun again in a later one, which counts
	mu      sync.Mutex
	reels   []*reel // by role, of which there are few
}

// reel is the exchanges of one role in one play. The play's mu guards it.
type reel struct {
	role   string
	at     []int64 // of their frames
	next   int     // the first that is not used
	used   []bool
	frames []frame // from the first request to the last, or to one that has no answer
}

// frame is an exchange as it lies on the tape, and once it is loaded its whole request.
type frame struct {
	head
	fields, open, tools []byte // open is the messages without the bracket at their end
	damage              error  // of its request
}

// OpenReplay opens a tape that was recorded. Its end may be half-written, and then lacks what was being written.
func OpenReplay(path string, logger *slog.Logger) (_ *Replay, err error) {
	file, err := os.Open(Path(path))
	if err != nil {
		return nil, fmt.Errorf("open tape: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	t := &Replay{file: file, plays: map[key]*play{}, tools: map[int]int64{}}
	sessions, lists := 0, 0
	_, size, gaps, err := scan(file, func(at int64, inside []byte) (err error) {
		switch kind(inside[0]) {
		case sessionFrame:
			sessions++
			var s session
			_, err = unpack(inside, &s)
			t.about = s.Session
		case toolsFrame:
			var about list
			_, err = unpack(inside, &about)
			if lists++; about.Number > 0 {
				lists = about.Number
			}
			t.tools[lists] = at
		case exchangeFrame:
			var who Asker
			_, err = unpack(inside, &who)
			t.index(who, sessions, at)
		case resumeFrame:
			var play resumed
			_, err = unpack(inside, &play)
			t.resume(play, sessions)
		}
		if err != nil {
			return fmt.Errorf("tape %s: at byte %d: %w", path, at, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.size = size
	for _, gap := range gaps {
		logger.Warn("the tape is damaged; what was there is missing", "path", path, "from", gap.from, "to", gap.to)
	}
	if t.gaps = len(gaps); len(t.plays) == 0 {
		return nil, fmt.Errorf("tape %s holds nothing", path)
	}
	return t, nil
}

// Close closes the file.
func (t *Replay) Close() error { return t.file.Close() }

// Session is what the run knew that recorded last.
func (t *Replay) Session() Session { return t.about }

func (t *Replay) index(who Asker, session int, at int64) {
	key := key{who.Episode, who.Attempt}
	p := t.plays[key]
	if p == nil || p.session < session {
		p = &play{session: session}
		t.plays[key] = p
	}
	r := p.reel(who.Role)
	if r == nil {
		r = &reel{role: who.Role}
		p.reels = append(p.reels, r)
	}
	r.at = append(r.at, at)
}

// resume takes a play that was cut short as begun in this session, without what is made again.
func (t *Replay) resume(r resumed, session int) {
	p := t.plays[key{r.Episode, r.Attempt}]
	if p == nil {
		return
	}
	p.session = session
	for _, reel := range p.reels {
		reel.at = reel.at[:max(0, min(len(reel.at), r.Kept[reel.role]))]
	}
}

func (p *play) reel(role string) *reel {
	for _, r := range p.reels {
		if r.role == role {
			return r
		}
	}
	return nil
}

// inside reads a frame again.
func (t *Replay) inside(at int64) (inside []byte, err error) {
	h, err := tapeFrames.ReadHead(t.file, at, t.size)
	if err == nil {
		inside, err = tapeFrames.ReadPayload(t.file, h, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("read tape at byte %d: %w", at, err)
	}
	return inside, nil
}

// read reads an exchange. Its messages are those that the request before it did not have.
func (t *Replay) read(at int64, f *frame) error {
	inside, err := t.inside(at)
	if err != nil {
		return err
	}
	packed, err := unpack(inside, &f.head)
	var messages []byte
	if err == nil {
		f.fields, messages, f.Body, err = f.parts(packed)
	}
	if err != nil {
		return fmt.Errorf("read tape at byte %d: %w", at, err)
	}
	if len(messages) > 0 {
		f.open = messages[:len(messages)-1]
	}
	return nil
}
