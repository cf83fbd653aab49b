package export

import (
	"bufio"
	"errors"
	"fmt"
	"io"
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
