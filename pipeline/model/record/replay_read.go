package record

import (
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"os"
	"sync"
)

// Replay answers requests with what was recorded. It is safe for concurrent use, one asker in one goroutine at a time
// where the asker is the agent. In memory it has the places of the exchanges, not the exchanges.
type Replay struct {
	file  *os.File
	size  int64
	seed  maphash.Seed
	about Session // the last one
	gaps  int
	plays map[key]*play
	tools map[int]tools // by number, from 1
}

// play is what was asked during a play of an episode.
type play struct {
	session int // a play that was cut short was begun again in a later one, which counts
	mu      sync.Mutex
	reels   []*reel // by role, of which there are few
}

// reel is the exchanges of one role in one play. The play's mu guards it.
type reel struct {
	role  string
	at    []int64 // of their frames
	used  []bool  // of those; nil when none is
	next  int     // the first that is not used
	heard said    // of the agent: the request that was played last
	ahead *frame  // the one at next, when it was looked at
	// built are the messages of the agent's request behind which builtTo begins: those that follow are made of them.
	built   []byte
	builtTo int
}

type tools struct {
	at   int64
	hash uint64
}

// frame is an exchange as it lies on the tape.
type frame struct {
	head
	fields, messages, body []byte
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
	t := &Replay{file: file, seed: maphash.MakeSeed(), plays: map[key]*play{}, tools: map[int]tools{}}
	sessions, lists := 0, 0
	_, size, gaps, err := scan(file, func(at int64, inside []byte) (err error) {
		switch kind(inside[0]) {
		case sessionFrame:
			sessions++
			var s session
			_, err = unpack(inside, &s)
			t.about = s.Session
		case toolsFrame:
			number, text, bad := unpackTools(inside)
			if lists++; number > 0 {
				lists = number
			}
			t.tools[lists], err = tools{at, maphash.Bytes(t.seed, text)}, bad
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

func unpackTools(inside []byte) (number int, text []byte, err error) {
	var about list
	packed, err := unpack(inside, &about)
	if err == nil {
		text, err = unpacker.DecodeAll(packed, nil)
	}
	return about.Number, text, err
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

// read reads an exchange.
func (t *Replay) read(at int64) (*frame, error) {
	inside, err := t.inside(at)
	if err != nil {
		return nil, err
	}
	f := &frame{}
	packed, err := unpack(inside, &f.head)
	if err == nil {
		f.fields, f.messages, f.body, err = f.parts(packed)
	}
	if err != nil {
		return nil, fmt.Errorf("read tape at byte %d: %w", at, err)
	}
	return f, nil
}
