package broker

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// export writes the uppermost layer of a snapshot to a pipe, and returns the end from which it is read. The broker does so
// because it is the process that may read all files of a sandbox, also for a user whose sandboxes have other ids.
func (b *broker) export(name string) (pipe int, err error) {
	held := b.snapshots.held(name)
	if held == nil {
		return -1, fmt.Errorf("snapshot %s is gone", name)
	}
	if held.host {
		return -1, errors.Join(fmt.Errorf("snapshot %s is of this machine's toolchain: want one of an image, which has layers", name), b.snapshots.release(held.stack))
	}
	ends := make([]int, 2)
	if err := unix.Pipe2(ends, unix.O_CLOEXEC); err != nil {
		return -1, errors.Join(err, b.snapshots.release(held.stack))
	}
	b.handling.Go(func() {
		to := os.NewFile(uintptr(ends[1]), "layer")
		writeLayer(to, held.layers[0])
		_ = to.Close()
		_ = b.snapshots.release(held.stack) // another use of the layer may go on, or the broker ends
	})
	return ends[0], nil
}

// writeLayer writes a tarball of what lies in a layer. No process can change the layer any more. A reader who is gone gets no
// more, so errors of writing are of no use to anyone.
func writeLayer(to io.Writer, l *layer) {
	w := &layerWriter{tar: tar.NewWriter(to), layer: l, links: map[uint64]string{}, buffer: make([]byte, 128<<10)}
	said := LayerWhole
	if err := filepath.WalkDir(l.path, w.add); err != nil {
		said = err.Error()
	}
	_ = w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{LayerEnd: said}})
	_ = w.tar.Close()
}

type layerWriter struct {
	tar    *tar.Writer
	layer  *layer
	links  map[uint64]string // the first name of a file with several; a limit of the sandbox bounds their number
	buffer []byte
}

func (w *layerWriter) add(path string, entry fs.DirEntry, err error) error {
	if err != nil || path == w.layer.path {
		return err
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	st := info.Sys().(*syscall.Stat_t)
	name := strings.TrimPrefix(path, w.layer.path+"/")
	h := &tar.Header{
		Name: name, Format: tar.FormatPAX, Mode: int64(st.Mode & 0o7777), ModTime: info.ModTime(),
		Uid: int(st.Uid) - w.layer.first, Gid: int(st.Gid) - w.layer.first,
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		return w.directory(path, h)
	case fs.ModeSymlink:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = os.Readlink(path); err != nil {
			return err
		}
	case fs.ModeNamedPipe:
		h.Typeflag = tar.TypeFifo
	case fs.ModeDevice | fs.ModeCharDevice: // commands cannot make others than white-outs
		dir, base := filepath.Split(name)
		return w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: dir + ".wh." + base, Format: tar.FormatPAX})
	case 0:
		if st.Nlink > 1 {
			if first, ok := w.links[st.Ino]; ok {
				h.Typeflag, h.Linkname = tar.TypeLink, first
				break
			}
			w.links[st.Ino] = name
		}
		return w.regular(path, h, info.Size())
	default:
		return nil // a socket
	}
	return w.tar.WriteHeader(h)
}

func (w *layerWriter) directory(path string, h *tar.Header) error {
	h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	dir, err := os.OpenFile(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	if h.PAXRecords, err = w.attributes(dir); err != nil {
		return err
	}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	if n, err := unix.Fgetxattr(int(dir.Fd()), "user.overlay.opaque", w.buffer); err != nil || n != 1 || w.buffer[0] != 'y' {
		return nil
	}
	return w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: h.Name + ".wh..wh..opq", Format: tar.FormatPAX})
}

func (w *layerWriter) regular(path string, h *tar.Header, size int64) error {
	h.Typeflag, h.Size = tar.TypeReg, size
	file, err := os.OpenFile(path, unix.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if h.PAXRecords, err = w.attributes(file); err != nil {
		return err
	}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{w.tar}, struct{ io.Reader }{file}, w.buffer)
	return err
}

// attributes are the extended attributes of a file that a tarball keeps.
func (w *layerWriter) attributes(file *os.File) (map[string]string, error) {
	n, err := unix.Flistxattr(int(file.Fd()), w.buffer)
	if err != nil || n == 0 {
		return nil, err
	}
	kept := map[string]string{}
	for name := range strings.SplitSeq(string(bytes.TrimRight(w.buffer[:n], "\x00")), "\x00") {
		if name != capability && (!strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "user.overlay.")) {
			continue
		}
		n, err := unix.Fgetxattr(int(file.Fd()), name, w.buffer)
		if err != nil {
			return nil, err
		}
		value := bytes.Clone(w.buffer[:n])
		if name == capability {
			value = anyRoot(value)
		}
		kept["SCHILY.xattr."+name] = string(value)
	}
	return kept, nil
}

const capability = "security.capability"

// anyRoot turns capabilities of a file that count for one sandbox's root, revision 3, into those that count for any, revision 2.
func anyRoot(value []byte) []byte {
	const revision3, revision2, size2 = 0x03000000, 0x02000000, 20
	if len(value) != size2+4 || binary.LittleEndian.Uint32(value)&0xff000000 != revision3 {
		return value
	}
	binary.LittleEndian.PutUint32(value, binary.LittleEndian.Uint32(value)&^0xff000000|revision2)
	return value[:size2]
}
