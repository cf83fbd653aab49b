package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"syscall"
)

// fromTar takes a tarball as an image of one layer. It is read twice, as its content is its name.
func (s *Store) fromTar(ctx context.Context, ref reference) (*source, error) {
	stamp, err := stampOf(ref.path)
	if err != nil {
		return nil, err
	}
	diffID, err := s.hashTar(ctx, ref.path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref.path, err)
	}
	open := func(context.Context) (io.ReadCloser, int64, error) {
		file, err := os.Open(ref.path)
		if err != nil {
			return nil, 0, err
		}
		info, err := file.Stat()
		if err != nil {
			_ = file.Close()
			return nil, 0, err
		}
		return file, info.Size(), nil
	}
	b := blob{diffID: diffID, open: open, squash: s.squash, tries: 1}
	return &source{digest: diffID, stamp: stamp, layers: []part{b.part()}}, nil
}

func (s *Store) hashTar(ctx context.Context, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	stream, _, err := decompress(file)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, &reading{ctx: ctx, from: stream, max: s.opts.MaxBytes}); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), nil
}

// stampOf changes when a file does, as far as can be seen without reading it.
func stampOf(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	inode := uint64(0)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = st.Ino
	}
	return fmt.Sprintf("%d %d %d", info.Size(), info.ModTime().UnixNano(), inode), nil
}
