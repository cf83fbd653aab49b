package export

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"trajgen/pipeline/episode"
)

// maxLine bounds a line of JSON: an episode far above every real one.
const maxLine = 256 << 20

// lineFile is an export to jsonl.
type lineFile struct {
	file  *os.File
	begun bool
}

func openLineFile(path string) (*lineFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read episodes: %w", err)
	}
	return &lineFile{file: f}, nil
}

func (l *lineFile) path() string { return l.file.Name() }
func (l *lineFile) count() int   { return -1 }
func (l *lineFile) rows() bool   { return false }
func (l *lineFile) Close() error { return l.file.Close() }

func (l *lineFile) Episodes(ctx context.Context) iter.Seq2[*episode.Episode, error] {
	return func(yield func(*episode.Episode, error) bool) {
		if l.begun { // a pipe can be read once
			if _, err := l.file.Seek(0, io.SeekStart); err != nil {
				yield(nil, fmt.Errorf("read %s again: %w", l.path(), err))
				return
			}
		}
		l.begun = true
		// A pipe may have nothing to read for a long time: the end of the context ends the wait. Other files have no deadlines.
		defer context.AfterFunc(ctx, func() { _ = l.file.SetReadDeadline(time.Unix(1, 0)) })()
		in := bufio.NewReaderSize(l.file, 1<<20)
		for number := 1; ; number++ {
			if err := context.Cause(ctx); err != nil {
				yield(nil, err)
				return
			}
			line, err := readLine(in)
			if err == io.EOF && len(line) == 0 {
				return
			}
			if err != nil && err != io.EOF {
				err = cmp.Or(context.Cause(ctx), err)
				yield(nil, fmt.Errorf("read %s, line %d: %w", l.path(), number, err))
				return
			}
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			ep, err := l.decode(line, number)
			if !yield(ep, err) || err != nil {
				return
			}
		}
	}
}

func (l *lineFile) decode(line []byte, number int) (*episode.Episode, error) {
	ep := new(episode.Episode)
	err := json.Unmarshal(line, ep)
	if err == nil {
		err = sound(ep)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s, line %d: %w (want an episode as an export to jsonl writes it)", l.path(), number, err)
	}
	return ep, nil
}

// readLine returns a line in memory of its own; the last one may come with io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, fmt.Errorf("it is longer than %d MiB", maxLine>>20)
		}
		line = append(line, part...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}
