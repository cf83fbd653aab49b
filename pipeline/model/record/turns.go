package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"

	"trajgen/outputs/log"
	"trajgen/outputs/log/disk"
	"trajgen/pipeline/episode"
)

// TurnsName is the name of the file in a run directory.
const TurnsName = "turns"

// TurnsOptions are how the file is kept. The zero value is ready for use.
type TurnsOptions struct {
	// Finished says that the journal has an attempt, or a later one. Optional.
	Finished func(id string, attempt int) bool
	// CompactBytes is how much has to be finished, at least, before the rest moves; 0 is 64 MiB.
	CompactBytes int64
	Logger       *slog.Logger // nil is silent
}

// turnFrames hold a step each. What a frame is about is the id of an episode, and behind the sizes of that in the head stand
// the attempt and the number of the step in it, from 0: a frame that is lost is missed.
var turnFrames = log.Format[step]{
	Magic: "tgS\x01", Head: frameHead, MetaSizeAt: 4, SizeAt: 16, SumAt: 20, HeadSumAt: 24, MaxMeta: 256, Max: 256 << 20, Parse: parse,
}

const (
	frameHead = 28
	attemptAt = 8
	numberAt  = 12
	// lostNumber says that a step was lost before, and the payload how.
	lostNumber = math.MaxUint32
)

type step struct {
	key
	number uint32
}

func parse(head, id []byte) (step, error) {
	if len(id) == 0 {
		return step{}, errors.New("it names no episode")
	}
	return step{key{string(id), int(binary.LittleEndian.Uint32(head[attemptAt:]))}, binary.LittleEndian.Uint32(head[numberAt:])}, nil
}

func encode(s step, payload []byte) ([]byte, error) {
	if s.episode == "" || len(s.episode) > int(turnFrames.MaxMeta) || len(payload) > int(turnFrames.Max) || s.attempt < 0 {
		return nil, fmt.Errorf("step %d of attempt %d of episode %q has %d bytes (want an id of 1 to %d characters, and at most %d bytes)",
			s.number, s.attempt, s.episode, len(payload), turnFrames.MaxMeta, turnFrames.Max)
	}
	frame := turnFrames.Begin(make([]byte, 0, frameHead+len(s.episode)+len(payload)), []byte(s.episode))
	binary.LittleEndian.PutUint32(frame[attemptAt:], uint32(s.attempt))
	binary.LittleEndian.PutUint32(frame[numberAt:], s.number)
	frame = append(frame, payload...)
	turnFrames.Finish(frame)
	return frame, nil
}

// Turns is a file to which each step of an attempt is added as it happens. What is finished stays in it until it outweighs
// what is not; then the rest moves to a new file (turns_move.go). There is one writer, whom the lock of the run's journal
// protects. It is safe for concurrent use.
type Turns struct {
	dir     string
	path    string
	compact int64
	logger  *slog.Logger

	moving sync.RWMutex // held for reading while the file is written or synced, so that it is not replaced meanwhile
	file   *log.File    // moving guards it
	closed bool         // moving guards it

	mu        sync.Mutex // guards what follows
	live      int64      // bytes of the attempts in play
	all       map[key]*steps
	subagents bool // some of all were a subagent's
}

// steps is where the steps of an attempt are.
type steps struct {
	at     []int64 // offsets of their frames
	bytes  int64
	damage error
}

// OpenTurns opens the file in dir, and makes it when there is none. What a crash left half-written at its end is cut off.
// What is damaged otherwise is logged with its place, and Recall of the attempt that it hit says so.
func OpenTurns(dir string, options TurnsOptions) (_ *Turns, err error) {
	l := &Turns{dir: dir, path: filepath.Join(dir, TurnsName), compact: options.CompactBytes, logger: options.Logger, all: map[key]*steps{}}
	if l.compact == 0 {
		l.compact = 64 << 20
	}
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	if err := os.Remove(l.path + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) { // the writer died while it moved
		return nil, fmt.Errorf("open %s: %w", l.path, err)
	}
	f, err := disk.Make(l.path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", l.path, err)
	}
	end, err := l.load(f)
	if err == nil {
		l.file, err = log.New(f, end)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", l.path, err), f.Close())
	}
	for k := range l.all {
		if options.Finished != nil && options.Finished(k.episode, k.attempt) {
			l.drop(k)
		}
	}
	if end > l.live {
		if err := l.move(); err != nil {
			return nil, errors.Join(err, l.file.Close())
		}
	}
	return l, nil
}

// load reads the file. It returns where what was being written begins, when the writer died.
func (l *Turns) load(f *os.File) (end int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size()
	for part, err := range turnFrames.Parts(f, 0, size, true) {
		about := part.Frame.About
		switch {
		case err != nil:
			return 0, err
		case part.Broken == nil && about.number == lostNumber:
			l.hit(about.key, errors.New(string(part.Payload)))
		case part.Broken == nil:
			l.add(about, part.From, part.To)
		case part.To == size:
			l.logger.Warn("cut the torn end off the record of turns", "file", l.path, "offset", part.From, "bytes", size-part.From, "reason", part.Broken)
			return part.From, nil
		case about.episode == "":
			l.logger.Warn("the record of turns is damaged", "file", l.path, "from", part.From, "to", part.To, "reason", part.Broken)
		}
		if part.Broken == nil {
			continue
		}
		heads, err := turnFrames.Heads(f, part.From, part.To, size)
		if err != nil {
			return 0, err
		}
		for _, h := range heads {
			l.hit(h.About.key, fmt.Errorf("step %d at byte %d: %w", h.About.number, h.Offset, part.Broken))
		}
	}
	return size, nil
}

// hit notes that an attempt's record is damaged.
func (l *Turns) hit(k key, damage error) {
	r := l.of(k)
	if r.damage == nil {
		r.damage = damage
		l.logger.Warn("the record of an episode is damaged; it starts anew", "file", l.path, "id", k.episode, "attempt", k.attempt, "reason", damage.Error())
	}
}

func (l *Turns) of(k key) *steps {
	r := l.all[k]
	if r == nil {
		r = &steps{}
		l.all[k] = r
		l.subagents = l.subagents || episode.PathOf(k.episode) != ""
	}
	return r
}

// add notes a frame that is whole. One that follows a gap is kept: it says what was paid for.
func (l *Turns) add(s step, from, to int64) {
	r := l.of(s.key)
	if int(s.number) != len(r.at) {
		l.hit(s.key, fmt.Errorf("step %d at byte %d where step %d was to be", s.number, from, len(r.at)))
	}
	r.at = append(r.at, from)
	r.bytes += to - from
	l.live += to - from
}

// drop forgets an attempt and its subagents.
func (l *Turns) drop(ended key) {
	forget(l.all, l.subagents, ended, func(r *steps) { l.live -= r.bytes })
}

// Record adds a step, as Recorder does. An error of writing is for good.
func (l *Turns) Record(id string, attempt int, step []byte, paid bool) error {
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
func (l *Turns) write(k key, payload []byte) error {
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

// Recall returns the steps of an attempt, as Recorder does.
func (l *Turns) Recall(id string, attempt int) ([][]byte, error) {
	l.moving.RLock()
	defer l.moving.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.all[key{id, attempt}]
	if r == nil {
		return nil, nil
	}
	steps := make([][]byte, 0, len(r.at))
	for _, at := range r.at {
		h, err := turnFrames.ReadHead(l.file, at, l.file.Size())
		if err != nil {
			return steps, fmt.Errorf("step at byte %d: %w", at, err)
		}
		step, err := turnFrames.ReadPayload(l.file, h, nil)
		if err != nil {
			return steps, fmt.Errorf("step %d at byte %d: %w", h.About.number, at, err)
		}
		steps = append(steps, step)
	}
	return steps, r.damage
}

// Close closes the file. Where nothing is in play any more it leaves it empty.
func (l *Turns) Close() error {
	l.moving.Lock()
	defer l.moving.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	err := l.file.Close()
	if len(l.all) == 0 {
		err = errors.Join(err, os.Truncate(l.path, 0))
	}
	return err
}
