package build

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"trajgen/sandbox/images"
)

// tarball unpacks a file into the destination, if it is a tarball.
func (c *copying) tarball(file *os.File, add adder) (is bool, err error) {
	var magic [6]byte
	if n, err := file.ReadAt(magic[:], 0); err == nil && n == len(magic) && string(magic[:]) == "\xfd7zXZ\x00" {
		return true, refuse("unpacking xz is not known here: RUN tar, in an image that has xz, or ADD --unpack=false")
	}
	stream, err := images.Decompress(file)
	if err != nil {
		return false, nil // it only looked like one
	}
	reader := tar.NewReader(stream)
	for first := true; ; first = false {
		h, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			return !first, nil
		case err != nil && first:
			return false, nil
		case err != nil:
			return true, fmt.Errorf("unpack %s: %w", file.Name(), err)
		}
		if err := c.unpacked(h, reader, add); err != nil {
			return true, err
		}
	}
}

// unpacked puts an entry of a tarball in its place.
func (c *copying) unpacked(h *tar.Header, content io.Reader, add adder) error {
	rel := path.Clean("/" + h.Name)
	h.Name = path.Join(c.to, rel)
	switch h.Typeflag {
	case tar.TypeLink:
		h.Linkname = path.Join(c.to, path.Clean("/"+h.Linkname))
	case tar.TypeDir:
		if rel == "/" {
			return nil
		}
		h.Name += "/"
	case tar.TypeXGlobalHeader, tar.TypeChar, tar.TypeBlock:
		return nil
	}
	if strings.HasPrefix(path.Base(h.Name), ".wh.") {
		return refuse("a tarball with a file %s", path.Base(h.Name))
	}
	owner := c.ownedBy([2]int{h.Uid, h.Gid})
	h.Uid, h.Gid = owner[0], owner[1]
	return add(h, content)
}
