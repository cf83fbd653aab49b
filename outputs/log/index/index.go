// Package index keeps records in a file that grows at its end, and what is large of them in files beside it: a recording.
//
// A recording is a directory: index has a frame for each record, in the order in which they were made, and blobs has contents,
// each once, named after its SHA-256 and compressed. A content is in place before the record that names it, so that a recording
// is whole up to its end, whenever its writer is killed.
package index

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"trajgen/outputs/log"
	"trajgen/outputs/log/blobs"
	"trajgen/outputs/log/disk"
)

// Kind is a kind of recording.
type Kind struct {
	Name  string // in messages, such as "a recording of the web"
	Title string // with which the file begins
	Magic string // of its frames
}

const (
	indexName = "index"
	blobsName = "blobs"
)

// MaxRecord is the most bytes of a record: room for names, addresses and errors, however they are escaped.
const MaxRecord = 1 << 20

func (k Kind) frames() *log.Format[struct{}] {
	return &log.Format[struct{}]{Magic: k.Magic, Head: 12, SizeAt: 4, SumAt: 8, Max: MaxRecord}
}

// Writer adds to a recording. It is used from many goroutines. An error of the disk is for good: every later call gives it, too.
type Writer struct {
	kind     Kind
	file     *log.File
	contents *blobs.Store
	lock     *os.File
}

// Create opens the recording in a directory for writing, and has each see the records that are there. What a killed writer left
// half-written is cut off. A damaged recording is refused. The writer is the only one in the directory.
func (k Kind) Create(dir string, each func(record []byte) error) (_ *Writer, err error) {
	if err := disk.MakeDir(dir); err != nil {
		return nil, fmt.Errorf("make the directory of a recording: %w", disk.Explain(dir, err))
	}
	w := &Writer{kind: k, contents: contents(dir)}
	if w.lock, err = log.Lock(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.lock.Close())
		}
	}()
	file, err := disk.Make(filepath.Join(dir, indexName))
	if err != nil {
		return nil, fmt.Errorf("open a recording: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	tail, gaps, err := k.scan(file, func(_ int64, record []byte) error { return each(record) })
	if err != nil {
		return nil, err
	}
	if len(gaps) > 0 {
		return nil, fmt.Errorf("%w: record into another directory", gaps[0])
	}
	if w.file, err = log.New(file, tail); err == nil && tail == 0 {
		_, err = w.file.Append([]byte(k.Title))
	}
	if err != nil {
		return nil, fmt.Errorf("write a recording: %w", err)
	}
	return w, nil
}

// contents is the store of a recording's contents.
func contents(dir string) *blobs.Store {
	return &blobs.Store{Dir: filepath.Join(dir, blobsName), Packed: true}
}

// Keep puts a content in place, and names it.
func (w *Writer) Keep(content []byte) (name string, err error) {
	if name, err = w.contents.Keep(content); err != nil {
		err = w.file.Fail(fmt.Errorf("keep a body: %w", err))
	}
	return name, err
}

// Content reads a content.
func (w *Writer) Content(name string) ([]byte, error) { return w.contents.Get(name) }

// Add adds a record.
func (w *Writer) Add(record []byte) error {
	if len(record) > MaxRecord {
		return w.file.Fail(fmt.Errorf("a record of %d bytes: at most %d", len(record), MaxRecord))
	}
	frames := w.kind.frames()
	frame := append(frames.Begin(make([]byte, 0, len(record)+16), nil), record...)
	frames.Finish(frame)
	_, err := w.file.Append(frame)
	return err
}

// Failed is the error that every call gives; nil while there is none.
func (w *Writer) Failed() error { return w.file.Failed() }

// Sync returns when everything that was added before is on the disk.
func (w *Writer) Sync() error {
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("write a recording: %w", err)
	}
	return nil
}

// Close ends the writing.
func (w *Writer) Close() error {
	return errors.Join(w.Sync(), w.file.Close(), w.lock.Close())
}

// Reader reads a recording. It is safe for concurrent use.
type Reader struct {
	kind     Kind
	file     *os.File
	size     int64
	contents *blobs.Store
	damage   error
}

// Open opens the recording in a directory, and has each see the records; one that each refuses is damaged. Its end may be
// half-written, and then lacks what was being written.
func (k Kind) Open(dir string, each func(at int64, record []byte) error) (*Reader, error) {
	file, err := os.Open(filepath.Join(dir, indexName))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", k.Name, err)
	}
	r := &Reader{kind: k, file: file, contents: contents(dir)}
	var gaps []error
	if r.size, gaps, err = k.scan(file, each); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	r.damage = errors.Join(gaps...)
	return r, nil
}

// Damage says what of the recording cannot be read. It is nil for a whole one.
func (r *Reader) Damage() error { return r.damage }

// Record reads a record, whose place each was told.
func (r *Reader) Record(at int64) ([]byte, error) {
	frames := r.kind.frames()
	h, err := frames.ReadHead(r.file, at, r.size)
	var record []byte
	if err == nil {
		record, err = frames.ReadPayload(r.file, h, nil)
	}
	return record, err
}

// Content reads a content.
func (r *Reader) Content(name string) ([]byte, error) { return r.contents.Get(name) }

// Disk is how many bytes the recording's files have.
func (r *Reader) Disk() (size int64, err error) {
	err = filepath.WalkDir(filepath.Dir(r.contents.Dir), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := entry.Info()
		if err == nil {
			size += file.Size()
		}
		return err
	})
	return size, err
}

// Close closes the recording.
func (r *Reader) Close() error { return r.file.Close() }

// Digest makes a name of the sums of all records: it is equal for the same ones in any order.
func Digest(sums [][sha256.Size]byte) string {
	slices.SortFunc(sums, func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	all := sha256.New()
	for _, sum := range sums {
		all.Write(sum[:])
	}
	return hex.EncodeToString(all.Sum(nil))
}

// scan goes through the records of a file that is open. tail is where the last whole one ends: what lies behind it was being
// written when its writer died. A gap has whole ones behind it: that is damage.
func (k Kind) scan(file *os.File, each func(at int64, record []byte) error) (tail int64, gaps []error, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, nil, err
	}
	size := info.Size()
	first := make([]byte, len(k.Title))
	if n, err := file.ReadAt(first, 0); err != nil && err != io.EOF {
		return 0, nil, err
	} else if string(first[:n]) != k.Title[:n] {
		return 0, nil, fmt.Errorf("%s is not %s", file.Name(), k.Name)
	} else if n < len(k.Title) {
		return 0, nil, nil
	}
	tail = int64(len(k.Title))
	for part, err := range k.frames().Parts(file, tail, size, true) {
		if err != nil {
			return 0, nil, fmt.Errorf("read %s: %w", file.Name(), err)
		}
		if part.Broken != nil {
			continue
		}
		if part.From > tail {
			gaps = append(gaps, fmt.Errorf("%s is damaged from byte %d to %d", file.Name(), tail, part.From))
		}
		if err := each(part.From, part.Payload); err != nil {
			gaps = append(gaps, fmt.Errorf("%s is damaged at byte %d: %w", file.Name(), part.From, err))
		}
		tail = part.To
	}
	return tail, gaps, nil
}
