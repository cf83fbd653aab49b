package tape

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/singleflight"

	"trajgen/outputs/log/disk"
)

// blobs are bodies in files of their own, each once.
type blobs struct {
	dir     string
	writing singleflight.Group
}

// The codecs are safe for many goroutines.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithLowerEncoderMem(true))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxBody), zstd.WithDecoderConcurrency(0))
)

// keep puts a body in place, and names it.
func (b *blobs) keep(body []byte, name *string) error {
	if len(body) == 0 {
		return nil
	}
	*name = digest(body)
	_, err, _ := b.writing.Do(*name, func() (any, error) {
		path := blobPath(b.dir, *name)
		if _, err := os.Stat(path); err == nil {
			return nil, nil
		}
		if err := disk.MakeDir(filepath.Dir(path)); err != nil {
			return nil, err
		}
		return nil, disk.WriteFile(disk.Real{}, path, disk.Bytes(packer.EncodeAll(body, nil)))
	})
	if err != nil {
		return fmt.Errorf("keep a body: %w", err)
	}
	return nil
}

// get reads a body.
func (b *blobs) get(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	if sum, err := hex.DecodeString(name); err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("%q names no body", name)
	}
	packed, err := os.ReadFile(blobPath(b.dir, name))
	if err != nil {
		return nil, fmt.Errorf("the recording lacks a body: %w", err)
	}
	body, err := unpacker.DecodeAll(packed, nil)
	if err == nil && digest(body) != name {
		err = errors.New("it has another digest")
	}
	if err != nil {
		return nil, fmt.Errorf("the body %s of the recording is damaged: %w", name, err)
	}
	return body, nil
}
