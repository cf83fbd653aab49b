package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// SumsName is a file with the digests of run.json and of the files that Finish makes, in the format of sha256sum -c. Its first line
// names the version of trajgen, as another version may make other bytes from the same journal.
const SumsName = "SHA256SUMS"

// SumsHead is the start of the first line.
const SumsHead = "# made by trajgen "

// MadeFiles are the files that Finish makes, relative to the run directory.
func MadeFiles(dir string) ([]string, error) {
	var made []string
	for _, pattern := range []string{"trajectories/*.parquet", "tool_calls/*.parquet", "media/*.parquet", "report.json", "report.md"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		made = append(made, paths...)
	}
	return made, nil
}

// WriteSums writes the digests of run.json and of the files that Finish made.
func WriteSums(dir string) error {
	made, err := MadeFiles(dir)
	if err != nil {
		return err
	}
	text := bytes.NewBufferString(SumsHead + Version() + "\n")
	for _, path := range append(made, filepath.Join(dir, "run.json")) {
		sum, err := sumOf(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(text, "%s  %s\n", sum, Below(dir, path))
	}
	return writeFile(filepath.Join(dir, SumsName), text.Bytes())
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Below is a path relative to a run directory.
func Below(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return path
}

// sums are the digests that Finish recorded.
type sums struct {
	Version string
	of      map[string]string // by path relative to the run directory
}

// ReadSums returns nil if the file does not exist.
func ReadSums(dir string) (*sums, error) {
	data, err := os.ReadFile(filepath.Join(dir, SumsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &sums{of: map[string]string{}}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if version, ok := strings.CutPrefix(line, SumsHead); ok {
			s.Version = version
		} else if sum, name, ok := strings.Cut(line, "  "); ok && filepath.IsLocal(name) {
			s.of[name] = sum
		} else {
			return nil, fmt.Errorf("the line %.60q is not a digest of a file in the run directory", line)
		}
	}
	return s, nil
}

// Check compares the existing files with the digests, and returns those that have changed.
func (s *sums) Check(dir string, differ func(format string, args ...any)) (changed map[string]bool, err error) {
	changed = map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.of)) {
		want, path := s.of[name], filepath.Join(dir, filepath.FromSlash(name))
		switch sum, err := sumOf(path); {
		case errors.Is(err, fs.ErrNotExist):
			differ("%s is missing", name)
		case err != nil:
			return nil, err
		case sum != want:
			differ("%s is not what was written: its SHA-256 is %s, in %s it is %s", name, sum, SumsName, want)
		default:
			continue
		}
		changed[name] = true
	}
	return changed, nil
}
