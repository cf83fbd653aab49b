package hub

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"trajgen/tools/skills"
)

const (
	maxArchive  = 8 << 20
	maxUnpacked = 32 << 20
	maxEntries  = 2000
)

func archived(name string) bool {
	name, _, _ = strings.Cut(strings.ToLower(name), "?")
	return slices.ContainsFunc([]string{".zip", ".tar", ".tar.gz", ".tgz"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// entry is a file of an archive.
type entry struct {
	name string
	mode fs.FileMode
	size int64
	open func() (io.ReadCloser, error)
}

// unpack reads the skill in an archive: the only one, or that in the folder which is named.
func unpack(name string, data []byte, which string) (*skills.Skill, error) {
	var entries []entry
	var err error
	switch {
	case !archived(name):
		return nil, errors.New("it is neither a folder nor an archive (.zip, .tar, .tar.gz, .tgz)")
	case bytes.HasPrefix(data, []byte("PK")):
		entries, err = readZip(data)
	default:
		entries, err = readTar(data)
	}
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	var found []string
	for _, e := range entries {
		// An archive with such a name in it was made to do harm, wherever in it the skill is.
		if !fs.ValidPath(e.name) || strings.ContainsAny(e.name, `\:`) {
			return nil, fmt.Errorf("%.200q is not a path within a folder", e.name)
		}
		if dir := path.Dir(e.name); path.Base(e.name) == skills.Manual && (which == "" || dir == path.Clean(which)) {
			found = append(found, dir)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("it has %d skills (%.20q); #path says which", len(found), found)
	}
	var c skills.Collector
	for _, e := range entries {
		inside := e.name
		if found[0] != "." {
			var ok bool
			if inside, ok = strings.CutPrefix(e.name, found[0]+"/"); !ok {
				continue
			}
		}
		if slices.ContainsFunc(strings.Split(inside, "/"), skills.Ignored) {
			continue
		}
		if err := c.Add(inside, e.mode, e.size, e.open); err != nil {
			return nil, err
		}
	}
	return c.Skill("", false)
}

func readZip(data []byte) (entries []entry, err error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	if len(archive.File) > maxEntries {
		return nil, fmt.Errorf("it has more than %d entries", maxEntries)
	}
	for _, f := range archive.File {
		if !f.Mode().IsDir() {
			entries = append(entries, entry{f.Name, f.Mode(), int64(min(f.UncompressedSize64, 1<<40)), f.Open})
		}
	}
	return entries, nil
}

func readTar(data []byte) (entries []entry, err error) {
	var from io.Reader = bytes.NewReader(data)
	if bytes.HasPrefix(data, []byte("\x1f\x8b")) {
		if from, err = gzip.NewReader(from); err != nil {
			return nil, err
		}
	}
	left := &io.LimitedReader{R: from, N: maxUnpacked}
	archive := tar.NewReader(left)
	for {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF) && left.N > 0:
			return entries, nil
		case left.N <= 0:
			return nil, fmt.Errorf("it unpacks to more than %d MB", maxUnpacked>>20)
		case err != nil:
			return nil, err
		case len(entries) >= maxEntries:
			return nil, fmt.Errorf("it has more than %d entries", maxEntries)
		}
		e := entry{name: strings.TrimPrefix(header.Name, "./"), mode: header.FileInfo().Mode(), size: header.Size}
		switch header.Typeflag {
		case tar.TypeDir, tar.TypeXGlobalHeader:
			continue
		case tar.TypeReg:
		case tar.TypeLink:
			e.mode |= fs.ModeIrregular // a hard link looks like a file
		}
		content, err := io.ReadAll(io.LimitReader(archive, skills.MaxFile+1))
		if err != nil {
			return nil, err
		}
		e.open = opened(content)
		entries = append(entries, e)
	}
}
