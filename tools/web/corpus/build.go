package corpus

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"

	"trajgen/outputs/log/disk"
	"trajgen/tools/internal/chars"
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
func Build(ctx context.Context, path string, documents iter.Seq2[Document, error], options Options) (Info, error) {
	b, err := newBuilder(path, options)
	if err == nil {
		err = disk.WriteFile(disk.Real{}, path, func(file disk.File) error { return b.build(ctx, file, documents) })
		if b.theirs != nil {
			err = b.theirs // without advice on how files are written
		}
		if removed := b.records.close(); err == nil {
			err = removed
		}
	}
	if err != nil {
		return Info{}, fmt.Errorf("build corpus %s: %w", path, disk.Explain(path, err))
	}
	return b.header.Info, nil
}

// builder is an index in the making.
type builder struct {
	options  Options
	header   header
	analyser *analyser
	theirs   error // what the documents yielded

	table   tableWriter
	records sorter           // of what stands behind the documents
	lists   map[string]*list // of terms, since the last run
	held    int              // bytes of lists
	lengths []byte           // of the last documents
}

func newBuilder(path string, options Options) (b *builder, err error) {
	options.Memory = cmp.Or(options.Memory, 64<<20)
	b = &builder{options: options, lists: map[string]*list{}}
	b.header.Analyser = cmp.Or(options.Analyser, Plain)
	if b.analyser, err = newAnalyser(b.header.Analyser); err != nil {
		return nil, err
	}
	dir, name := filepath.Split(path)
	if info, err := os.Stat(path); name == "" || err == nil && info.IsDir() {
		return nil, errors.New("it is a directory; want the name of a file")
	}
	b.records.file, err = claim(filepath.Join(dir, disk.Temporary+name+".runs"))
	b.records.out = bufio.NewWriterSize(b.records.file, 1<<16)
	return b, err
}

// claim opens the file for the runs of a build, and refuses it while another process builds there. What a crash left in it is
// replaced.
func claim(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = disk.Lock(f)
	if err == nil {
		// The other process may have removed this very file between our open and our lock.
		mine, err1 := f.Stat()
		named, err2 := os.Stat(path)
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

func (b *builder) build(ctx context.Context, file disk.File, documents iter.Seq2[Document, error]) error {
	b.table.out = bufio.NewWriterSize(io.NewOffsetWriter(file, headerSize), 1<<18)
	for document, err := range documents {
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			b.theirs = err
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
	if err := b.finish(ctx); err != nil {
		return err
	}
	head, err := b.header.encode()
	if err == nil {
		_, err = file.WriteAt(head, 0)
	}
	return err
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
	if err := b.table.add(numbered(documentKey, number), appendFields(nil, d.ID, d.Title, d.URL, d.Text)); err != nil {
		return err
	}
	place := binary.AppendUvarint(nil, uint64(number))
	b.records.add(idKey+d.ID, appendFields(nil, place, d.sum(), []byte(d.Place)))
	if d.URL != "" {
		b.records.add(urlKey+d.URL, place)
	}
	words := uint32(0)
	each := func(term []byte, _, _ int) {
		b.held += count(b.lists, term, number)
		words++
	}
	b.analyser.each(d.Title, each)
	b.analyser.each(d.Text, each)
	b.header.Words += int64(words)
	if b.lengths = binary.LittleEndian.AppendUint32(b.lengths, words); len(b.lengths) == 4*window {
		b.endWindow()
	}
	if b.held+b.records.held < b.options.Memory {
		return nil
	}
	return b.spill()
}

// endWindow keeps the lengths of the last documents.
func (b *builder) endWindow() {
	first := (b.header.Documents - 1) / window * window
	b.records.add(numbered(lengthsKey, uint32(first)), b.lengths)
	b.lengths = nil
}

// spill writes what is in memory as a run.
func (b *builder) spill() error {
	for term, l := range b.lists { // the records are sorted
		b.records.add(termKey+term, l.part())
	}
	clear(b.lists)
	b.held = 0
	return b.records.spill()
}

// finish writes what stands behind the documents.
func (b *builder) finish(ctx context.Context) error {
	if len(b.lengths) > 0 {
		b.endWindow()
	}
	if err := b.spill(); err != nil {
		return err
	}
	total := sha256.New()
	err := b.records.merged(func(key string, values [][]byte) (err error) {
		value := values[0]
		switch key[:1] {
		case idKey:
			value, err = b.identify(total, key[1:], values)
		case termKey:
			b.header.Terms++
			value, err = joined(values)
		}
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			return err
		}
		return b.table.add(key, value)
	})
	if err != nil {
		return err
	}
	if err := b.table.end(); err != nil {
		return err
	}
	b.header.Digest = fmt.Sprintf("sha256:%x", total.Sum(nil))
	b.header.Index, b.header.Sum = len(b.table.index), checksum(b.table.index)
	b.header.Bytes = headerSize + b.table.size + int64(b.header.Index)
	return nil
}

// identify adds a document to the digest, in the order of ids, and returns its number.
func (b *builder) identify(total hash.Hash, id string, values [][]byte) ([]byte, error) {
	var number, sum, place, again []byte
	if _, err := takeFields(values[0], &number, &sum, &place); err != nil {
		return nil, err
	}
	if len(values) > 1 {
		if _, err := takeFields(values[1], &number, &sum, &again); err != nil {
			return nil, err
		}
		reason := fmt.Sprintf("the id %q is that of the document at %s, too", chars.First(id, 200, "…"), place)
		return nil, &InputError{string(again), reason}
	}
	_ = binary.Write(total, binary.LittleEndian, uint64(len(id))) // a hash takes all
	_, _ = io.WriteString(total, id)
	_, _ = total.Write(sum)
	return number, nil
}
