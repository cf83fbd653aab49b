package corpus

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"

	"trajgen/outputs/log/disk"
	"trajgen/tools/internal/chars"
)

// finish writes what stands behind the documents, and gives the file its name.
func (b *builder) finish(ctx context.Context) error {
	if err := b.blocks.flush(); err != nil {
		return err
	}
	b.out.end(&b.header.Sections[sectionBlocks])
	if err := b.copy(sectionDirectory, b.directory); err != nil {
		return err
	}
	if err := b.copy(sectionLengths, b.lengths); err != nil {
		return err
	}
	for _, write := range []func(context.Context) error{b.writePostings, b.writeIDs, b.writeURLs} {
		if err := write(ctx); err != nil {
			return err
		}
	}
	if err := b.out.buffer.Flush(); err != nil {
		return err
	}
	size := b.out.at
	head, err := b.header.encode(size)
	if err != nil {
		return err
	}
	if _, err := b.file.WriteAt(head, 0); err != nil {
		return err
	}
	if err := b.file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(b.file.Name(), b.path); err != nil {
		return err
	}
	b.header.Bytes = size
	return disk.Sync(filepath.Dir(b.path))
}

// copy makes a section of a spool.
func (b *builder) copy(section int, from *spool) error {
	if err := from.buffer.Flush(); err != nil {
		return err
	}
	b.out.begin()
	if _, err := io.Copy(b.out, from.part(0, from.size)); err != nil {
		return err
	}
	b.out.end(&b.header.Sections[section])
	return nil
}

// writePostings merges the lists of each term into one, and makes the table of terms. An entry has the number of documents, and
// the place, the size and the checksum of the list.
func (b *builder) writePostings(ctx context.Context) error {
	if err := b.postings.spill(); err != nil {
		return err
	}
	b.out.begin()
	term, documents, last, sum := "", uint64(0), uint64(0), uint32(0)
	from, at := uint64(0), uint64(0)
	emit := func(piece []byte) error {
		sum = checksum(sum, piece)
		at += uint64(len(piece))
		_, err := b.out.Write(piece)
		return err
	}
	return b.table(sectionTerms, sectionPostings, &b.header.Terms, func(t *tableWriter) error {
		end := func() error {
			if documents == 0 {
				return nil
			}
			value := binary.AppendUvarint(nil, documents)
			value = binary.AppendUvarint(binary.AppendUvarint(value, from), at-from)
			return t.add(term, binary.AppendUvarint(value, uint64(sum)))
		}
		for one, err := range b.postings.merged() {
			if err = cmp.Or(err, context.Cause(ctx)); err != nil {
				return err
			}
			if one.key != term || documents == 0 {
				if err := end(); err != nil {
					return err
				}
				term, documents, last, sum, from = one.key, 0, 0, 0, at
			}
			p := readPart(one.value)
			if err := emit(binary.AppendUvarint(nil, (p.first-last)<<1|p.once)); err != nil {
				return err
			}
			if err := emit(p.rest); err != nil {
				return err
			}
			documents, last = documents+p.documents, p.last
		}
		return end()
	})
}

// writeIDs makes the table of ids, finds those that are there twice, and makes the digest.
func (b *builder) writeIDs(ctx context.Context) error {
	if err := b.ids.spill(); err != nil {
		return err
	}
	total := sha256.New()
	before, beforeAt := "", ""
	return b.table(sectionIDs, -1, nil, func(t *tableWriter) error {
		for one, err := range b.ids.merged() {
			if err = cmp.Or(err, context.Cause(ctx)); err != nil {
				return err
			}
			_, n := binary.Uvarint(one.value)
			place := string(one.value[n+sha256.Size:])
			if one.key == before {
				return &InputError{place, fmt.Sprintf("the id %q is that of the document at %s, too", chars.First(one.key, 200, "…"), beforeAt)}
			}
			before, beforeAt = one.key, place
			addToDigest(total, one.key, one.value[n:n+sha256.Size])
			if err := t.add(one.key, one.value[:n]); err != nil {
				return err
			}
		}
		b.header.Digest = fmt.Sprintf("sha256:%x", total.Sum(nil))
		return nil
	})
}

// addToDigest adds a document to the digest of a corpus, in the order of ids.
func addToDigest(total hash.Hash, id string, sum []byte) {
	_ = binary.Write(total, binary.LittleEndian, uint64(len(id))) // a hash takes all
	_, _ = io.WriteString(total, id)
	_, _ = total.Write(sum)
}

// writeURLs makes the table of URLs, each with its first document.
func (b *builder) writeURLs(ctx context.Context) error {
	if err := b.urls.spill(); err != nil {
		return err
	}
	before := ""
	return b.table(sectionURLs, -1, nil, func(t *tableWriter) error {
		for one, err := range b.urls.merged() {
			if err = cmp.Or(err, context.Cause(ctx)); err != nil {
				return err
			}
			if one.key == before {
				continue
			}
			before = one.key
			if err := t.add(one.key, one.value); err != nil {
				return err
			}
		}
		return nil
	})
}

// table makes the two sections of a table, behind one that is written meanwhile, if any.
func (b *builder) table(section, meanwhile int, entries *int, fill func(*tableWriter) error) error {
	body, err := b.spool()
	if err != nil {
		return err
	}
	index, err := b.spool()
	if err != nil {
		return err
	}
	t := &tableWriter{body: body, index: index}
	if err := fill(t); err != nil {
		return err
	}
	if err := t.flush(); err != nil {
		return err
	}
	if meanwhile >= 0 {
		b.out.end(&b.header.Sections[meanwhile])
	}
	if entries != nil {
		*entries = t.entries
	}
	if err := b.copy(section, body); err != nil {
		return err
	}
	return b.copy(section+1, index)
}

// sectionWriter writes sections one behind the other.
type sectionWriter struct {
	buffer *bufio.Writer
	at     int64
	start  int64
	sum    uint32
}

func (w *sectionWriter) begin() { w.start, w.sum = w.at, 0 }

func (w *sectionWriter) Write(p []byte) (int, error) {
	n, err := w.buffer.Write(p)
	w.at += int64(n)
	w.sum = checksum(w.sum, p[:n])
	return n, err
}

func (w *sectionWriter) end(s *section) {
	*s = section{Offset: w.start, Length: w.at - w.start, Sum: w.sum}
}

// encode makes the first bytes of the file: the magic, the header as JSON, and its checksum.
func (h header) encode(size int64) ([]byte, error) {
	h.Bytes = size
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	head := append([]byte(magic), text...)
	if len(head) > headerSize-4 {
		return nil, fmt.Errorf("the header has %d bytes", len(head))
	}
	head = append(head, strings.Repeat(" ", headerSize-4-len(head))...)
	return binary.LittleEndian.AppendUint32(head, checksum(0, head)), nil
}
