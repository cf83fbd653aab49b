package corpus

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"

	"trajgen/outputs/log/disk"
)

// Options say how an index is built.
type Options struct {
	Analyser string // of Analysers; "" is Plain
	// Progress receives the number of documents so far, after each.
	Progress func(documents int)
	// Memory is about how many bytes are sorted in memory before they go to the disk; 0 is 64 MiB. The index does not depend on
	// it.
	Memory int
}

// Validate says what is wrong with the options.
func (o Options) Validate() error {
	_, err := newAnalyser(cmp.Or(o.Analyser, Plain))
	return err
}

// Info describes an index.
type Info struct {
	Documents int    `json:"documents"`
	Terms     int    `json:"terms"` // different ones
	Words     int64  `json:"words"` // all of them
	TextBytes int64  `json:"text_bytes"`
	Bytes     int64  `json:"bytes"` // of the file
	Analyser  string `json:"analyser"`
	Digest    string `json:"digest"` // of the documents: their ids, titles, URLs and texts
}

// Build writes an index of documents to path, where it appears when it is whole. The same documents in the same order give the
// same bytes. A document that cannot be part of it, such as one with the id of an earlier one, is an *InputError; an error that
// documents yields ends the build with it.
func Build(ctx context.Context, path string, documents iter.Seq2[Document, error], options Options) (info Info, err error) {
	b, err := newBuilder(path, options)
	defer func() {
		if closed := b.close(); err == nil {
			err = closed
		}
	}()
	if err == nil {
		err = b.build(ctx, documents)
	}
	if err != nil && !b.theirs {
		err = disk.Explain(path, err)
	}
	if err != nil {
		return Info{}, fmt.Errorf("build corpus %s: %w", path, err)
	}
	return b.header.Info, nil
}

// builder is an index in the making.
type builder struct {
	options  Options
	path     string
	file     *os.File // under its temporary name
	out      *sectionWriter
	header   header
	spools   []*spool
	analyser *analyser

	theirs bool // the error is one that the documents yielded

	blocks    blockWriter
	directory *spool
	lengths   *spool
	postings  postings
	ids, urls sorter
}

func newBuilder(path string, options Options) (b *builder, err error) {
	b = &builder{options: options, path: path}
	b.header.Analyser = cmp.Or(options.Analyser, Plain)
	if b.analyser, err = newAnalyser(b.header.Analyser); err != nil {
		return b, err
	}
	if b.file, err = claim(path); err != nil {
		return b, err
	}
	if _, err := b.file.Seek(headerSize, io.SeekStart); err != nil { // where the header comes when all else is there
		return b, err
	}
	b.out = &sectionWriter{buffer: bufio.NewWriterSize(b.file, 1<<18), at: headerSize}
	memory := cmp.Or(options.Memory, 64<<20)
	for _, one := range []**spool{&b.directory, &b.lengths, &b.postings.spool, &b.ids.spool, &b.urls.spool} {
		if *one, err = b.spool(); err != nil {
			return b, err
		}
	}
	b.postings.terms, b.postings.limit = map[string]*list{}, memory
	b.ids.limit, b.urls.limit = memory/4, memory/4
	b.blocks.out, b.blocks.directory = b.out, b.directory
	return b, nil
}

// spool opens the next one. Its name is that of the file with a number, as the lock on the file is for it, too.
func (b *builder) spool() (*spool, error) {
	one, err := newSpool(fmt.Sprintf("%s-%d", b.file.Name(), len(b.spools)+1))
	if err == nil {
		b.spools = append(b.spools, one)
	}
	return one, err
}

// claim opens the file under its temporary name, and refuses it while another process builds there. What a crash left is
// replaced.
func claim(path string) (*os.File, error) {
	dir, name := filepath.Split(path)
	if info, err := os.Stat(path); name == "" || err == nil && info.IsDir() {
		return nil, errors.New("it is a directory; want the name of a file")
	}
	temporary := filepath.Join(dir, disk.Temporary+name)
	f, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	err = disk.Lock(f)
	if err == nil {
		// The other process may have given this very file its final name between our open and our lock.
		mine, err1 := f.Stat()
		named, err2 := os.Stat(temporary)
		if err1 != nil || err2 != nil || !os.SameFile(mine, named) {
			err = disk.ErrLocked
		}
	}
	if errors.Is(err, disk.ErrLocked) {
		err = fmt.Errorf("%w, which builds it", err)
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (b *builder) close() error {
	var errs []error
	for _, one := range b.spools {
		errs = append(errs, one.file.Close())
	}
	if b.file != nil {
		if b.header.Bytes == 0 { // it has no name of its own
			errs = append(errs, os.Remove(b.file.Name()))
		}
		errs = append(errs, b.file.Close())
	}
	return errors.Join(errs...)
}

func (b *builder) build(ctx context.Context, documents iter.Seq2[Document, error]) error {
	b.out.begin()
	for document, err := range documents {
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			b.theirs = true
			return err
		}
		if err := b.add(document); err != nil {
			return err
		}
		if b.options.Progress != nil {
			b.options.Progress(b.header.Documents)
		}
	}
	if b.header.Documents == 0 {
		return errors.New("there are no documents")
	}
	return b.finish(ctx)
}

func (b *builder) add(d Document) error {
	d.Place = cmp.Or(d.Place, fmt.Sprintf("document %d", b.header.Documents+1))
	if reason := d.check(); reason != "" {
		return &InputError{d.Place, reason}
	}
	if b.header.Documents == math.MaxInt32 {
		return fmt.Errorf("there are more than %d documents", math.MaxInt32)
	}
	number := uint32(b.header.Documents)
	b.header.Documents++
	b.header.TextBytes += int64(len(d.Text))
	if err := b.blocks.add(d); err != nil {
		return err
	}
	value := append(binary.AppendUvarint(nil, uint64(number)), d.sum()...)
	if err := b.ids.add(d.ID, append(value, d.Place...)); err != nil {
		return err
	}
	if d.URL != "" {
		if err := b.urls.add(d.URL, binary.AppendUvarint(nil, uint64(number))); err != nil {
			return err
		}
	}
	words := uint32(0)
	count := func(term []byte, _, _ int) {
		b.postings.count(term, number)
		words++
	}
	b.analyser.each(d.Title, count)
	b.analyser.each(d.Text, count)
	b.header.Words += int64(words)
	if _, err := b.lengths.Write(binary.LittleEndian.AppendUint32(nil, words)); err != nil {
		return err
	}
	if b.postings.held < b.postings.limit {
		return nil
	}
	return b.postings.spill()
}
