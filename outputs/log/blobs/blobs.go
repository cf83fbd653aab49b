// Package blobs keeps contents in files of their own, each once, named after its SHA-256.
package blobs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/singleflight"

	"trajgen/outputs/log/disk"
)

// Max is the most bytes of a content.
const Max = 64 << 20

// packedEnd is how the names of compressed files end.
const packedEnd = ".zst"

// Store is a directory of contents. It is safe for concurrent use.
type Store struct {
	Dir    string // is made when something is kept
	Packed bool   // contents are compressed

	writing singleflight.Group
}

// The codecs are safe for many goroutines.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithLowerEncoderMem(true))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(Max), zstd.WithDecoderConcurrency(0))
)

// Pack compresses a content.
func Pack(body []byte) []byte { return packer.EncodeAll(body, nil) }

// Unpack undoes Pack; what is larger than Max is an error.
func Unpack(packed []byte) ([]byte, error) { return unpacker.DecodeAll(packed, nil) }

// Digest is the name of a content.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Keep puts a content in place, and names it. It is on the disk when Keep returns. Nothing has the name "" and no file.
func (s *Store) Keep(body []byte) (name string, err error) {
	if len(body) == 0 {
		return "", nil
	}
	name = Digest(body)
	_, err, _ = s.writing.Do(name, func() (any, error) {
		path := s.path(name)
		if _, err := os.Stat(path); err == nil {
			return nil, nil
		}
		if err := disk.MakeDir(filepath.Dir(path)); err != nil {
			return nil, err
		}
		kept := body
		if s.Packed {
			kept = Pack(body)
		}
		return nil, disk.WriteFile(disk.Real{}, path, disk.Bytes(kept))
	})
	if err != nil {
		return "", fmt.Errorf("keep %s: %w", name, err)
	}
	return name, nil
}

// Get reads a content. One that is not there is an error that wraps fs.ErrNotExist.
func (s *Store) Get(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	if sum, err := hex.DecodeString(name); err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("%.80q names no content (want a SHA-256)", name)
	}
	body, err := read(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing: %w", name, err)
	}
	if err == nil && s.Packed {
		body, err = Unpack(body)
	}
	if err == nil && Digest(body) != name {
		err = errors.New("it has another digest")
	}
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", name, err)
	}
	return body, nil
}

// read reads a file, which may have become larger than any that is kept.
func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, Max+1))
	if err == nil && len(body) > Max {
		err = fmt.Errorf("it is larger than %d MiB", Max>>20)
	}
	return body, err
}

func (s *Store) path(name string) string {
	path := filepath.Join(s.Dir, name[:2], name[2:])
	if s.Packed {
		path += packedEnd
	}
	return path
}
