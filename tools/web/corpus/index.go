package corpus

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"trajgen/tools/web/source"
)

const (
	magic      = "trajgen corpus 2\n" // with the version of the file
	headerSize = 4096
)

// header is what stands at the beginning of a file: the magic, the header as JSON, and the checksum of both.
type header struct {
	Info
	Index int    // bytes of the table's index, at the end of the file
	Sum   uint32 // its checksum
}

func (h header) encode() ([]byte, error) {
	text, err := json.Marshal(h)
	head := fmt.Appendf(nil, "%-*s", headerSize-4, magic+string(text))
	return binary.LittleEndian.AppendUint32(head, checksum(head)), err
}

// Index is a corpus in a file.
type Index struct {
	path string
	info Info

	mu    sync.RWMutex // read-locked while data is used
	data  []byte       // the mapped file; nil when it is closed
	table table
}

var _ Corpus = (*Index)(nil)

// Open opens an index that Build wrote. It may be used by any number of processes at a time.
func Open(path string) (*Index, error) {
	x := &Index{path: path}
	err := x.open()
	if err != nil {
		return nil, fmt.Errorf("open corpus %s: %w", path, errors.Join(err, x.Close()))
	}
	return x, nil
}

func (x *Index) open() error {
	file, err := os.Open(x.path)
	if err != nil {
		if pathError, ok := errors.AsType[*os.PathError](err); ok {
			return pathError.Err
		}
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case info.Size() < headerSize:
		return errNoIndex
	}
	if x.data, err = unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("map the file: %w", err)
	}
	return guarded(x.read)
}

var (
	errNoIndex = errors.New("it is not an index; make one with trajgen corpus build")
	errHeader  = errors.New("its header is damaged")
)

// read takes the file apart.
func (x *Index) read() error {
	text, ours := bytes.CutPrefix(x.data[:headerSize-4], []byte(magic))
	if !ours && bytes.HasPrefix(x.data, []byte(magic[:len(magic)-2])) {
		return errors.New("it is an index of another version; build it anew")
	}
	if !ours {
		return errNoIndex
	}
	var h header
	sum := binary.LittleEndian.Uint32(x.data[headerSize-4:])
	if checksum(x.data[:headerSize-4]) != sum || json.Unmarshal(text, &h) != nil {
		return errHeader
	}
	if h.Bytes != int64(len(x.data)) {
		return fmt.Errorf("it has %d bytes and should have %d: it is cut off, or something was added", len(x.data), h.Bytes)
	}
	if h.Documents < 1 || h.Documents > math.MaxInt32 || h.Index < 0 || h.Index > len(x.data)-headerSize {
		return errHeader
	}
	if _, err := newAnalyser(h.Analyser); err != nil {
		return err
	}
	x.info = h.Info
	index := x.data[len(x.data)-h.Index:]
	if checksum(index) != h.Sum {
		return errDamaged
	}
	var err error
	x.table, err = readTable(x.data[headerSize:len(x.data)-h.Index], index)
	return err
}

// guarded turns the signal that ends a process into an error: reading a mapped file raises it where the disk fails, or where the
// file has been cut off since.
func guarded(read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		caught := recover()
		if fault, ok := caught.(interface {
			runtime.Error
			Addr() uintptr
		}); ok {
			err = fmt.Errorf("it cannot be read any more: %w", fault)
		} else if caught != nil {
			panic(caught)
		}
	}()
	return read()
}

// use does something with the open file. Errors that are not the agent's become the operator's.
func (x *Index) use(ctx context.Context, read func() error) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.data == nil {
		return source.Errorf(source.Operator, source.Unavailable, "the corpus is closed")
	}
	err := guarded(read)
	if _, ours := errors.AsType[*source.Error](err); err == nil || ours || ctx.Err() != nil {
		return err
	}
	return source.Errorf(source.Operator, source.Malformed, "the corpus %s: %v; build it anew", x.path, err)
}

// Document implements Corpus. A URL with a fragment is also looked up without it.
func (x *Index) Document(ctx context.Context, idOrURL string) (d Document, err error) {
	err = x.use(ctx, func() error {
		whole, _, _ := strings.Cut(idOrURL, "#")
		for _, key := range []string{idKey + idOrURL, urlKey + idOrURL, urlKey + whole} {
			value, found, err := x.table.find(key)
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			var number uint64
			if _, err := takeNumbers(value, &number); err != nil || number >= uint64(x.info.Documents) {
				return errDamaged
			}
			d, err = x.document(uint32(number))
			return err
		}
		return notInCorpus(idOrURL)
	})
	return d, err
}

// document reads the document with a number.
func (x *Index) document(number uint32) (Document, error) {
	value, found, err := x.table.find(numbered(documentKey, number))
	var id, title, url, text []byte
	if err == nil && found {
		_, err = takeFields(value, &id, &title, &url, &text)
	}
	if err != nil || !found {
		return Document{}, errDamaged
	}
	return Document{ID: string(id), Title: string(title), URL: string(url), Text: string(text)}, nil
}

// Info describes the index.
func (x *Index) Info() Info { return x.info }

// Digest implements Corpus: it stands for the ids, titles, URLs and texts of all documents.
func (x *Index) Digest() string { return x.info.Digest }

// Len implements Corpus.
func (x *Index) Len() int { return x.info.Documents }

// Close waits for calls under way. Later ones fail.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.data == nil {
		return nil
	}
	data := x.data
	x.data = nil
	return unix.Munmap(data)
}
