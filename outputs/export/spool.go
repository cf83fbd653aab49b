package export

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"trajgen/outputs/log/disk"
)

// spool keeps on disk what a format has to write behind something that it does not know yet.
type spool struct {
	near   string
	file   *os.File
	buffer *bufio.Writer
}

// openSpool opens one beside the file that is written. It has no name, so nothing of it is left after a crash.
func openSpool(near string) (*spool, error) {
	file, err := os.CreateTemp(filepath.Dir(near), "."+filepath.Base(near)+".*.tmp")
	if err != nil {
		return nil, fmt.Errorf("begin export file: %w", disk.Explain(near, err))
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("begin export file: %w", disk.Explain(near, err)), file.Close())
	}
	return &spool{near: near, file: file, buffer: bufio.NewWriterSize(file, 1<<16)}, nil
}

// Write makes it an io.Writer.
func (s *spool) Write(p []byte) (int, error) {
	n, err := s.buffer.Write(p)
	if err != nil {
		err = fmt.Errorf("write %s: %w", s.near, disk.Explain(s.near, err))
	}
	return n, err
}

// read ends the writing and gives all of it from the start.
func (s *spool) read() (io.Reader, error) {
	if err := s.buffer.Flush(); err != nil {
		return nil, fmt.Errorf("write %s: %w", s.near, disk.Explain(s.near, err))
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(s.file, 1<<16), nil
}

func (s *spool) Close() error { return s.file.Close() }

// add keeps a value.
func (s *spool) add(value any) error {
	line, err := encodeLine(value)
	if err == nil {
		_, err = s.Write(line)
	}
	return err
}

// spooled yields the values that were added.
func spooled[Value any](s *spool) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		from, err := s.read()
		for decoder := json.NewDecoder(from); ; {
			var value Value
			if err == nil {
				err = decoder.Decode(&value)
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				err = fmt.Errorf("read back the rows of %s: %w", s.near, err)
			}
			if !yield(value, err) || err != nil {
				return
			}
		}
	}
}

// list is a JSON list on its way to disk.
type list struct {
	*spool
	length int64
}

func openList(near string) (*list, error) {
	s, err := openSpool(near)
	if err != nil {
		return nil, err
	}
	return &list{spool: s}, nil
}

// add appends a value.
func (l *list) add(value any) error {
	text, err := encode(value)
	if err != nil {
		return err
	}
	lead := byte(',')
	if l.length == 0 {
		lead = '['
	}
	l.length++
	_, err = l.Write(append([]byte{lead}, text...))
	return err
}

// copyTo writes the whole list.
func (l *list) copyTo(w io.Writer) error {
	if l.length == 0 {
		_, err := io.WriteString(w, "[]")
		return err
	}
	from, err := l.read()
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, from); err != nil {
		return err
	}
	_, err = io.WriteString(w, "]")
	return err
}
