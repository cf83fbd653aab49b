package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"trajgen/outputs/log"
	"trajgen/outputs/log/disk"
)

// Repair takes what is damaged out of the journal in dir and keeps it in damaged/ below, so that the journal opens and the
// lost attempts are played again. It changes nothing unless do says so. The result says what is damaged, and
// which episodes have no attempt any more that counts, by id; an error says that it could not be found out, or be done. A
// journal with a writer is refused.
//
// It may be killed at any moment and done again: what is taken out is copied first, and a segment is replaced whole.
func Repair(ctx context.Context, dir string, do bool, system disk.System) (damages []Damage, replayed []string, err error) {
	if system == nil {
		system = disk.Real{}
	}
	if _, err := os.Stat(dir); err != nil { // the lock would make it
		return nil, nil, fmt.Errorf("repair journal: %w", err)
	}
	lock, err := log.Lock(dir)
	if err != nil {
		return nil, nil, err
	}
	defer lock.Close()
	r := repair{disk: system}
	in := inspection{ctx: ctx, dir: dir, visit: func(segment int, h frame) error {
		r.index.add(h.About, segment, h.Offset)
		return nil
	}}
	if err := in.all(); err != nil {
		return nil, nil, err
	}
	for _, d := range in.damages {
		for _, lost := range d.Lost {
			if r.index.counted(lost.ID) < 0 {
				replayed = append(replayed, lost.ID)
			}
		}
		if d.Torn || !do {
			continue
		}
		if err := r.keep(dir, d); err != nil {
			return in.damages, replayed, err
		}
	}
	slices.Sort(replayed)
	replayed = slices.Compact(replayed)
	if !do {
		return in.damages, replayed, nil
	}
	return in.damages, replayed, r.replace(ctx, in.damages)
}

// repair is a journal that is mended.
type repair struct {
	disk  disk.System
	index index // of what is whole
}

// keep copies damaged bytes.
func (r *repair) keep(dir string, d Damage) error {
	if d.Length == 0 {
		return nil
	}
	kept := filepath.Join(dir, "damaged")
	if err := disk.MakeDir(kept); err != nil {
		return fmt.Errorf("repair journal: %w", disk.Explain(kept, err))
	}
	f, err := os.Open(d.Segment)
	if err != nil {
		return fmt.Errorf("repair journal: %w", err)
	}
	defer f.Close()
	name := filepath.Join(kept, fmt.Sprintf("%s.%d-%d.", filepath.Base(d.Segment), d.Offset, d.Offset+d.Length)) + "%d"
	if _, err := keepBytes(r.disk, name, f, d.Offset, d.Length); err != nil {
		return fmt.Errorf("keep the damaged part of journal segment %s: %w", d.Segment, err)
	}
	return nil
}

// replace writes the segments that have damage anew.
func (r *repair) replace(ctx context.Context, damages []Damage) error {
	torn := make(map[int]int64) // where the end begins that Open is to see and to keep
	for _, d := range damages {
		if d.Torn {
			torn[d.number] = d.Offset
		}
	}
	done := make(map[int]bool)
	for _, d := range damages {
		if d.Torn || done[d.number] {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		done[d.number] = true
		from, ok := torn[d.number]
		if !ok {
			from = -1
		}
		if err := r.rewrite(d, from); err != nil {
			return fmt.Errorf("repair journal segment %s: %w", d.Segment, err)
		}
	}
	return nil
}

// rewrite replaces a segment by its whole frames, each as a write of its own: all of them were acknowledged, so damage to one
// is never again a torn end. A segment that is gone becomes an empty one. The index file goes first, since a whole one that
// is not of its segment is damage; who opens the journal next makes another.
func (r *repair) rewrite(d Damage, torn int64) error {
	dir := filepath.Dir(d.Segment)
	for _, name := range []string{indexName(d.number), endName(d.number)} {
		if err := r.disk.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return disk.Explain(d.Segment, err)
		}
	}
	if err := r.disk.Sync(dir); err != nil {
		return err
	}
	old, err := os.Open(d.Segment)
	if errors.Is(err, fs.ErrNotExist) {
		return disk.WriteFile(r.disk, d.Segment, func(disk.File) error { return nil })
	}
	if err != nil {
		return err
	}
	defer old.Close()
	info, err := old.Stat()
	if err != nil {
		return err
	}
	return disk.WriteFile(r.disk, d.Segment, func(f disk.File) error {
		at, err := r.copyWhole(f, old, d.number, info.Size())
		if err != nil || torn < 0 {
			return err
		}
		_, err = io.Copy(io.NewOffsetWriter(f, at), io.NewSectionReader(old, torn, info.Size()-torn))
		return err
	})
}

// copyWhole copies the whole frames of a segment and returns how long they are.
func (r *repair) copyWhole(to disk.File, from io.ReaderAt, number int, size int64) (at int64, err error) {
	for i := range r.index.records {
		record := &r.index.records[i]
		if int(record.segment) != number {
			continue
		}
		h, err := frames.ReadHead(from, record.offset, size)
		if err != nil {
			return 0, err
		}
		frame, err := h.Bytes(from)
		if err != nil {
			return 0, err
		}
		frames.Seal(frame, 0)
		if _, err := to.WriteAt(frame, at); err != nil {
			return 0, err
		}
		at += int64(len(frame))
	}
	return at, nil
}
