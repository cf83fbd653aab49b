package compress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"golang.org/x/sync/singleflight"

	"trajgen/outputs/log"
	"trajgen/outputs/log/disk"
)

// Summaries keeps what models wrote in a file of one JSON object a line, so that nothing is paid for twice: not for
// another episode that needs the same, nor after a crash. Many goroutines may use it, and one process.
type Summaries struct {
	path string

	asking singleflight.Group

	mu   sync.Mutex // guards what follows
	file *log.File
	at   map[digest]place
}

type digest [sha256.Size]byte

// place is where a line stands.
type place struct{ offset, length int64 }

// kept is a line.
type kept struct {
	Key string `json:"key"`
	Summary
}

// maxKept is how long a line may be.
const maxKept = 16 << 20

// OpenSummaries opens the file or makes it. A line that was not written whole is cut off.
func OpenSummaries(path string) (_ *Summaries, err error) {
	f, err := disk.Make(path)
	if err != nil {
		return nil, fmt.Errorf("open summaries: %w", err)
	}
	s := &Summaries{path: path, at: map[digest]place{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := disk.Lock(f); errors.Is(err, disk.ErrLocked) {
		return nil, fmt.Errorf("%w: another process is writing %s", disk.ErrLocked, path)
	} else if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	end, err := s.load(f)
	if err != nil {
		return nil, err
	}
	if s.file, err = log.New(f, end); err != nil {
		return nil, err
	}
	return s, nil
}

// load finds the lines, and where the last whole one ends.
func (s *Summaries) load(f io.Reader) (end int64, err error) {
	reader := bufio.NewReaderSize(f, 1<<16)
	for n := 1; ; n++ {
		line, err := log.ReadLine(reader, maxKept)
		if errors.Is(err, io.EOF) {
			return end, nil // and what has no line break was not written whole
		}
		if err != nil {
			return 0, fmt.Errorf("line %d of %s: %w", n, s.path, err)
		}
		var k kept
		key, err2 := []byte(nil), json.Unmarshal(line, &k)
		if err2 == nil {
			key, err2 = hex.DecodeString(k.Key)
		}
		if err2 != nil || len(key) != sha256.Size {
			return 0, fmt.Errorf("line %d of %s is not a summary (remove the line: what it was for is asked again)", n, s.path)
		}
		s.at[digest(key)] = place{end, int64(len(line))}
		end += int64(len(line))
	}
}

// Len is how many there are.
func (s *Summaries) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

// Get returns the summary of what by is asked, and asks only when it is not known. by names who answers, with all that
// decides how. An answer is on disk when Get returns it.
func (s *Summaries) Get(ctx context.Context, by string, a Ask, ask func(context.Context, Ask) (Summary, error)) (Summary, error) {
	key := keyOf(by, a)
	summary, err, _ := s.asking.Do(string(key[:]), func() (any, error) {
		if summary, known, err := s.find(key); known {
			return summary, err
		}
		summary, err := ask(ctx, a)
		if err == nil {
			err = s.keep(key, summary)
		}
		return summary, err
	})
	return summary.(Summary), err
}

func keyOf(by string, a Ask) (key digest) {
	hash := sha256.New()
	for _, part := range []string{by, Instruction, strconv.Itoa(a.MaxTokens), a.Text} {
		fmt.Fprintf(hash, "%d:", len(part))
		io.WriteString(hash, part)
	}
	hash.Sum(key[:0])
	return key
}

// find returns a summary that is kept.
func (s *Summaries) find(key digest) (_ Summary, known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, known := s.at[key]
	if !known {
		return Summary{}, false, nil
	}
	var k kept
	line := make([]byte, at.length)
	if _, err = s.file.ReadAt(line, at.offset); err == nil {
		err = json.Unmarshal(line, &k)
	}
	if err != nil {
		err = fmt.Errorf("read a summary in %s: %w", s.path, err)
	}
	return k.Summary, true, err
}

// keep writes a summary down.
func (s *Summaries) keep(key digest, summary Summary) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(kept{hex.EncodeToString(key[:]), summary}); err != nil {
		return err
	}
	if line.Len() > maxKept {
		return fmt.Errorf("%w: it has %d bytes", ErrNoSummary, line.Len())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, err := s.file.Commit(line.Bytes())
	if err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	s.at[key] = place{at, int64(line.Len())}
	return nil
}

// Close closes the file.
func (s *Summaries) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file.Close()
}
