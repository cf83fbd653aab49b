package export

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"

	"trajgen/outputs/log"
	"trajgen/pipeline/episode"
)

// maxLine bounds a line of JSON: an episode far above every real one.
const maxLine = 256 << 20

// beginLines opens an export to jsonl.
func (in *input) beginLines() error {
	f, err := in.open(in.path)
	if err != nil {
		return err
	}
	begun := false
	in.episodes = func(ctx context.Context) iter.Seq2[*episode.Episode, error] {
		return func(yield func(*episode.Episode, error) bool) {
			if begun { // a pipe can be read once
				if _, err := f.Seek(0, io.SeekStart); err != nil {
					yield(nil, fmt.Errorf("read %s again: %w", in.path, err))
					return
				}
			}
			begun = true
			// A pipe may have nothing to read for a long time: the end of the context ends the wait. Other files have no deadlines.
			defer context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })()
			reader := bufio.NewReaderSize(f, 1<<20)
			for number := 1; ; number++ {
				ep, err := nextLine(reader)
				if err == io.EOF {
					return
				}
				if cause := context.Cause(ctx); cause != nil {
					err = cause
				} else if err != nil {
					err = fmt.Errorf("read %s, line %d: %w", f.Name(), number, err)
				}
				if (ep != nil || err != nil) && !yield(ep, err) || err != nil {
					return
				}
			}
		}
	}
	return nil
}

// nextLine reads the episode on the next line; nil when that is empty.
func nextLine(in *bufio.Reader) (*episode.Episode, error) {
	line, err := log.ReadLine(in, maxLine)
	if err == io.EOF && len(line) > 0 {
		err = nil
	}
	if err != nil || len(bytes.TrimSpace(line)) == 0 {
		return nil, err
	}
	return decode(line)
}

func decode(line []byte) (*episode.Episode, error) {
	ep := new(episode.Episode)
	err := json.Unmarshal(line, ep)
	if err == nil {
		err = sound(ep)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (want an episode as an export to jsonl writes it)", err)
	}
	return ep, nil
}
