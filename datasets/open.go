package datasets

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// piece is a unit of reading: a file, a directory that one reader takes whole, or the bundled tasks.
type piece struct {
	name   string // in the digest; independent of where the dataset lies
	path   string
	format string
	rows   func(yield func(row) bool) error // see format
	digest func(context.Context) (string, error)
}

// Open finds a dataset: a bundled one, a file, a directory, or a pattern such as data/*.jsonl.gz, in which ** goes through
// directories. It looks at the beginning of each file but reads no rows yet.
//
// Of a directory the files of one format below it are read, in the order of their names. In a Hugging Face dataset folder
// they belong to subsets and splits, by the configs of its README.md or by their usual names.
func Open(path string, options Options) (*Source, error) { return OpenAll([]string{path}, options) }

// OpenAll makes one dataset of several, in their order. Rows are counted through all of them.
func OpenAll(paths []string, options Options) (*Source, error) {
	name := strings.Join(paths, ", ")
	chosen, err := options.Choice.parse(options.MaxTasks)
	switch {
	case len(paths) == 0:
		return nil, errors.New("open dataset: no path")
	case options.MaxTasks < 0:
		err = fmt.Errorf("MaxTasks is %d, want 0 (all) or more", options.MaxTasks)
	case err == nil:
		err = options.checkShape()
	}
	if err != nil {
		return nil, fmt.Errorf("open dataset %s: %w", name, err)
	}
	s := &Source{name: name, options: options, choice: chosen}
	var wrong []error
	for _, path := range paths {
		pieces, card, err := find(path, options)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("open dataset %s: %w", path, err))
			continue
		}
		s.pieces = append(s.pieces, pieces...)
		s.card = s.card.and(card)
	}
	// The digest of a single file does not include its name.
	s.named = len(paths) > 1 || len(s.pieces) > 1 || isPattern(paths[0])
	seen := map[string]bool{}
	for _, p := range s.pieces {
		path := filepath.Clean(p.path)
		if seen[path] { // its tasks would be played twice, under different ids
			wrong = append(wrong, fmt.Errorf("open dataset: %s is there twice", p.path))
		}
		seen[path] = true
	}
	return s, errors.Join(wrong...)
}

// find lists the pieces of one path.
func find(path string, options Options) (pieces []piece, card Card, err error) {
	info, missing := os.Stat(path)
	switch {
	case path == Bundled || path == BundledResearch || path == BundledBrowser || path == BundledSkills || path == BundledHome:
		pieces = []piece{{
			name: path, path: path, format: Bundled,
			rows:   func(yield func(row) bool) error { return bundledRows(path, yield) },
			digest: func(context.Context) (string, error) { return bundledDigest(path) },
		}}
	case missing == nil && info.IsDir():
		return findFolder(path, options)
	case isPattern(path):
		pieces, err = matching(path)
	default:
		pieces, err = filePieces([]string{path}, "")
	}
	if err == nil && (options.Split != "" || options.Subset != "") {
		err = errors.New("split and subset choose within a directory, and this is none")
	}
	return pieces, card, err
}

func isPattern(path string) bool {
	if _, err := os.Stat(path); err == nil {
		return false // a file may be called so
	}
	return strings.ContainsAny(path, "*?[{")
}

func matching(pattern string) ([]piece, error) {
	if !doublestar.ValidatePathPattern(pattern) {
		return nil, errors.New("it is not a pattern that can be read; a name with *, ?, [ or { in it that is meant as it is has a \\ before them")
	}
	found, err := doublestar.FilepathGlob(pattern, doublestar.WithFilesOnly(), doublestar.WithFailOnIOErrors())
	if err != nil {
		return nil, bareCause(err)
	}
	if len(found) == 0 {
		return nil, errors.New("no file matches the pattern")
	}
	slices.Sort(found)
	base, _ := doublestar.SplitPattern(filepath.ToSlash(pattern)) // "." at least
	return filePieces(found, base)
}

// filePieces reads the beginning of each file, and returns everything that is wrong with them, up to a few.
// Where base, to which their names are relative, is "", the one file is the dataset.
func filePieces(paths []string, base string) ([]piece, error) {
	const most = 10
	var pieces []piece
	var wrong []error
	for _, path := range paths {
		name, err := filepath.Rel(cmp.Or(base, filepath.Dir(path)), path)
		if err != nil {
			name = path
		}
		format, err := formatOf(path)
		if err != nil && base != "" {
			err = fmt.Errorf("%s: %w", path, err)
		}
		if err != nil && len(wrong) < most {
			wrong = append(wrong, err)
		}
		pieces = append(pieces, piece{
			name: filepath.ToSlash(name), path: path, format: format,
			rows:   func(yield func(row) bool) error { return formats[format].rows(path, yield) },
			digest: func(ctx context.Context) (string, error) { return fileDigest(ctx, path) },
		})
	}
	return pieces, errors.Join(wrong...)
}

// Digest is "sha256:" and the hexadecimal SHA-256 of the file's bytes as they lie on disk, compressed or not; of
// several files, of their names and digests in order.
func (s *Source) Digest(ctx context.Context) (string, error) {
	if !s.named {
		return s.pieces[0].digest(ctx)
	}
	sum := sha256.New()
	for _, p := range s.pieces {
		content, err := p.digest(ctx)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%d:%s %s\n", len(p.name), p.name, content)
	}
	return fmt.Sprintf("sha256:%x", sum.Sum(nil)), nil
}

// About describes a dataset.
type About struct {
	Files []FileInfo `json:"files"`
	Card  Card       `json:"card,omitzero"`
}

// FileInfo is a file of a dataset, or a directory that is read whole.
type FileInfo struct {
	Path    string `json:"path"`
	Format  string `json:"format"`
	Guessed bool   `json:"guessed,omitempty"` // by its content: the name does not say
}

// About returns the files that are read, and the dataset's card.
func (s *Source) About() About {
	about := About{Card: s.card}
	for _, p := range s.pieces {
		_, file := formats[p.format]
		about.Files = append(about.Files, FileInfo{Path: p.path, Format: p.format, Guessed: file && formatNamed(p.path) == ""})
	}
	return about
}
