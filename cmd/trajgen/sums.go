package main

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

// sumsName is a file with the digests of what a run's end made, as sha256sum -c reads it. Its first line says which trajgen
// made them: of the same journal, another one may make other bytes.
const sumsName = "SHA256SUMS"

const sumsHead = "# made by trajgen "

// madeFiles are what the end of a run makes, below its directory.
func madeFiles(dir string) ([]string, error) {
	var made []string
	for _, pattern := range []string{"trajectories/*.parquet", "tool_calls/*.parquet", "report.json", "report.md"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		made = append(made, paths...)
	}
	return made, nil
}

func writeSums(dir string) error {
	made, err := madeFiles(dir)
	if err != nil {
		return err
	}
	text := bytes.NewBufferString(sumsHead + versionText() + "\n")
	for _, path := range made {
		sum, err := sumOf(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(text, "%s  %s\n", sum, below(dir, path))
	}
	return writeFile(filepath.Join(dir, sumsName), text.Bytes())
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

// below is a path as it is called in a run directory.
func below(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return path
}

// sums are what a run's end noted of the files that it made.
type sums struct {
	version string
	of      map[string]string // by the path below the run directory
}

// readSums gives nil when there are none.
func readSums(dir string) (*sums, error) {
	data, err := os.ReadFile(filepath.Join(dir, sumsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &sums{of: map[string]string{}}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if version, ok := strings.CutPrefix(line, sumsHead); ok {
			s.version = version
		} else if sum, name, ok := strings.Cut(line, "  "); ok && filepath.IsLocal(name) {
			s.of[name] = sum
		} else {
			return nil, fmt.Errorf("the line %.60q is no digest of a file in the run directory", line)
		}
	}
	return s, nil
}

// check holds the files that there are against the digests, and returns those whose bytes are not what was written.
func (s *sums) check(dir string, differ func(format string, args ...any)) (changed map[string]bool, err error) {
	changed = map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.of)) {
		want, path := s.of[name], filepath.Join(dir, filepath.FromSlash(name))
		switch sum, err := sumOf(path); {
		case errors.Is(err, fs.ErrNotExist):
			differ("%s is missing", name)
		case err != nil:
			return nil, err
		case sum != want:
			differ("%s is not what was written: its SHA-256 is %s, in %s it is %s", name, sum, sumsName, want)
		default:
			continue
		}
		changed[name] = true
	}
	return changed, nil
}
