// Package packed compresses similar programs together, so that their common parts are stored once.
package packed

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os/exec"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Program is an executable file.
type Program struct {
	Name    string
	Content []byte
}

// window is how far back the compressor may look for common parts: over the whole previous program.
const window = 8 << 20

// Write packs programs, as a tar archive in Zstandard. Put the most used programs first: Read stops at the last one it needs. The
// same programs give the same bytes.
//
// The strongest level of the command zstd makes a tenth less than what the Go package can, which does it where the command is not
// installed.
func Write(w io.Writer, programs []Program) error {
	var plain bytes.Buffer
	archive := tar.NewWriter(&plain)
	for _, p := range programs {
		if err := archive.WriteHeader(&tar.Header{Name: p.Name, Mode: 0o755, Size: int64(len(p.Content))}); err != nil {
			return fmt.Errorf("pack %s: %w", p.Name, err)
		}
		if _, err := archive.Write(p.Content); err != nil {
			return fmt.Errorf("pack %s: %w", p.Name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	command, err := exec.LookPath("zstd")
	if err != nil {
		compressed, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1))
		if err != nil {
			return err
		}
		_, err = plain.WriteTo(compressed)
		return errors.Join(err, compressed.Close())
	}
	var complaint strings.Builder
	strongest := exec.Command(command, "-19", fmt.Sprintf("--zstd=windowLog=%d", bits.Len(window)-1))
	strongest.Stdin, strongest.Stdout, strongest.Stderr = &plain, w, &complaint
	if err := strongest.Run(); err != nil {
		return fmt.Errorf("compress with %s: %w: %s", command, err, strings.TrimSpace(complaint.String()))
	}
	return nil
}

// Read returns the named programs, or all when none is named, and unpacks no further than it has to.
func Read(r io.Reader, names ...string) (map[string][]byte, error) {
	compressed, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, err
	}
	defer compressed.Close()
	archive := tar.NewReader(compressed)
	programs := map[string][]byte{}
	missing := slices.Clone(names)
	for len(names) == 0 || len(missing) > 0 {
		header, err := archive.Next()
		if err == io.EOF && len(missing) == 0 {
			break
		}
		if err == io.EOF {
			return nil, fmt.Errorf("unpack %s: not in the archive", missing[0])
		}
		if err != nil {
			return nil, fmt.Errorf("unpack the programs: %w", err)
		}
		content := make([]byte, header.Size)
		if _, err := io.ReadFull(archive, content); err != nil {
			return nil, fmt.Errorf("unpack %s: %w", header.Name, err)
		}
		programs[header.Name] = content
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == header.Name })
	}
	return programs, nil
}
