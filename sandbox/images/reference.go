package images

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// kind is the kind of source of an image.
type kind string

const (
	fromRegistry kind = "registry"
	fromOCI      kind = "oci"
	fromDocker   kind = "docker-archive"
	fromDir      kind = "dir"
	fromTar      kind = "tar"
	fromBuild    kind = "built"
)

// forms describes the forms of a reference.
const forms = "an image is NAME[:TAG][@sha256:DIGEST] in a registry, oci:PATH[:TAG][@sha256:DIGEST], docker-archive:PATH[:TAG], " +
	"dir:PATH, tar:PATH, built:NAME, or a path that begins with / or .; a tarball may be compressed with gzip or zstd"

// reference is a parsed reference.
type reference struct {
	kind   kind
	text   string         // canonical form
	remote name.Reference // of fromRegistry
	path   string         // of all others, absolute
	tag    string         // of fromOCI and fromDocker
	digest string         // required digest, "sha256:HEX"; "" is any
}

var pinPattern = regexp.MustCompile(`^(.*)@(sha256:[0-9a-f]{64})$`)

// parse parses a reference. Paths must exist.
func parse(text string) (reference, error) {
	if strings.ContainsRune(text, 0) {
		return reference{}, errors.New("its name has a NUL in it")
	}
	if name, ok := strings.CutPrefix(text, string(fromBuild)+":"); ok && name != "" {
		return reference{kind: fromBuild, text: text}, nil
	}
	for _, k := range []kind{fromOCI, fromDocker, fromDir, fromTar} {
		if rest, ok := strings.CutPrefix(text, string(k)+":"); ok {
			return parsePath(k, rest)
		}
	}
	if filepath.IsAbs(text) || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") || text == "." || text == ".." {
		path, err := filepath.Abs(text)
		if err != nil {
			return reference{}, err
		}
		k, err := recognise(path)
		if err != nil {
			return reference{}, err
		}
		return parsePath(k, path)
	}
	return parseName(text)
}

func parseName(text string) (reference, error) {
	remote, err := name.ParseReference(text)
	if err != nil {
		return reference{}, fmt.Errorf("%w; %s", err, forms)
	}
	ref := reference{kind: fromRegistry, text: remote.Name(), remote: remote}
	if digest, ok := remote.(name.Digest); ok {
		ref.digest = digest.DigestStr()
	}
	return ref, nil
}

func parsePath(k kind, rest string) (reference, error) {
	ref := reference{kind: k}
	if k == fromOCI && !exists(rest) {
		if match := pinPattern.FindStringSubmatch(rest); match != nil {
			rest, ref.digest = match[1], match[2]
		}
	}
	path := rest
	if k == fromOCI || k == fromDocker {
		// Both paths and tags may have colons: the longest existing path wins.
		for !exists(path) && strings.Contains(path, ":") {
			path = path[:strings.LastIndex(path, ":")]
		}
		if !exists(path) {
			path = rest
		}
		ref.tag = strings.TrimPrefix(rest[len(path):], ":")
	}
	if path == "" {
		return reference{}, fmt.Errorf("it names no path; %s", forms)
	}
	info, err := os.Stat(path)
	if err != nil {
		return reference{}, err
	}
	if dir := info.IsDir(); dir && (k == fromTar || k == fromDocker) || !dir && k == fromDir {
		return reference{}, fmt.Errorf("%s is no %s; %s", path, map[bool]string{true: "file", false: "directory"}[dir], forms)
	}
	if ref.path, err = filepath.Abs(path); err != nil {
		return reference{}, err
	}
	ref.text = string(k) + ":" + ref.path
	if ref.tag != "" {
		ref.text += ":" + ref.tag
	}
	if ref.digest != "" {
		ref.text += "@" + ref.digest
	}
	return ref, nil
}

// recognise returns the kind of what is at a path.
func recognise(path string) (kind, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%w; %s", err, forms)
	}
	if !info.IsDir() {
		found, err := recogniseArchive(path)
		if err != nil {
			err = fmt.Errorf("read the tarball %s: %w; %s", path, err, forms)
		}
		return found, err
	}
	if exists(filepath.Join(path, "oci-layout")) {
		return fromOCI, nil
	}
	return fromDir, nil
}

// imagePattern matches the first part of each name in an image's archive.
var imagePattern = regexp.MustCompile(`^(blobs|index\.json|oci-layout|manifest\.json|repositories|(sha256:)?[0-9a-f]{64}.*)$`)

// maxArchiveEntries is far above the number of entries in an image's archive.
const maxArchiveEntries = 100_000

// recogniseArchive tells an image's tarball from one of a root file system. It reads no more than it has to.
func recogniseArchive(name string) (kind, error) {
	stream, err := openTar(name)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	found := fromTar
	reader := tar.NewReader(stream)
	for range maxArchiveEntries {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return "", err
		}
		first, _, _ := strings.Cut(path.Clean(header.Name), "/")
		switch {
		case first == ".":
		case first == "oci-layout":
			return fromOCI, nil
		case first == "manifest.json":
			found = fromDocker // unless there is an oci-layout, too: newer versions of docker write both
		case !imagePattern.MatchString(first):
			return fromTar, nil
		}
	}
	return found, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
