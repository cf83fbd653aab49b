// Package search is the part of search_files that runs inside the sandbox: it sees what the sandbox's processes see and
// is bounded as they are. A small program that lies in every sandbox is made of it, so it imports little.
package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"trajgen/sandbox"
)

// Helper is the name under which it is run by sandbox.Command; Args are read from its standard input, and Found is
// written to its standard output, both as JSON.
const Helper = "search_files"

// maxSearched is the largest file whose content is searched.
const maxSearched = 64 << 20

func init() { sandbox.RegisterHelper(Helper, helper) }

// Args are those of the tool.
type Args struct {
	Pattern    string `json:"pattern" doc:"Regular expression, or glob for target=files." example:"def \\w+"`
	Target     string `json:"target,omitempty" doc:"What to search." enum:"content,files" default:"content"`
	Path       string `json:"path,omitempty" doc:"File or directory to search." default:"."`
	FileGlob   string `json:"file_glob,omitempty" doc:"Search only files that match this glob, e.g. *.py or src/**/*.js."`
	Limit      int    `json:"limit,omitempty" doc:"Results of one page, at most 1000." default:"50" min:"1"`
	Offset     int    `json:"offset,omitempty" doc:"Results to skip." default:"0" min:"0"`
	OutputMode string `json:"output_mode,omitempty" doc:"Form of the results for target=content." enum:"content,files_only,count" default:"content"`
	Context    int    `json:"context,omitempty" doc:"Lines to show before and after each match, at most 20." default:"0" min:"0"`
}

// Found is what the helper prints and, but for Failed, what the model gets.
type Found struct {
	TotalCount int       `json:"total_count"`
	TotalFiles *int      `json:"total_files,omitempty"` // count: how many files have matches
	Matches    *[]Line   `json:"matches,omitempty"`
	Files      *[]string `json:"files,omitempty"`
	Counts     *Counts   `json:"counts,omitempty"`
	Truncated  bool      `json:"truncated"`
	Skipped    int       `json:"skipped,omitempty"` // files that could not be read or are too large

	Failed string `json:"failed,omitempty"`
	Class  string `json:"class,omitempty"`
}

// Line is a matching line.
type Line struct {
	Path    string   `json:"path"`
	Line    int      `json:"line"`
	Content string   `json:"content"`
	Before  []string `json:"before,omitempty"`
	After   []string `json:"after,omitempty"`
}

func helper(_ []string, stdin io.Reader, stdout, _ io.Writer) int {
	var s search
	if err := json.NewDecoder(stdin).Decode(&s.args); err != nil {
		return 2
	}
	if err := s.run(); err != nil {
		s.found = Found{Failed: err.Error(), Class: "invalid_path"}
		if errors.Is(err, fs.ErrNotExist) {
			s.found = Found{Failed: "path not found: " + s.args.Path, Class: "not_found"}
		}
	}
	encoder := json.NewEncoder(stdout)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(s.found) != nil {
		return 1
	}
	return 0
}

type search struct {
	args    Args
	pattern *regexp.Regexp // nil: by name
	literal []byte         // the pattern when it is plain text
	found   Found
	seen    int // results so far, for the page
}

func (s *search) run() error {
	switch {
	case s.args.Target == "files":
		s.found.Files = &[]string{}
	case s.args.OutputMode == "files_only":
		s.found.Files = &[]string{}
	case s.args.OutputMode == "count":
		s.found.Counts, s.found.TotalFiles = &Counts{}, new(int)
	default:
		s.found.Matches = &[]Line{}
	}
	if s.args.Target != "files" {
		var err error
		if s.pattern, err = regexp.Compile(s.args.Pattern); err != nil {
			return err
		}
		if prefix, whole := s.pattern.LiteralPrefix(); whole {
			s.literal = []byte(prefix)
		}
	}
	if err := s.walk(); err != nil {
		return err
	}
	s.found.Truncated = s.seen > s.args.Offset+s.args.Limit
	return nil
}

// walk visits the regular files below the path in the order of their names. A directory that is given as a link is
// followed; links on the way are not.
func (s *search) walk() error {
	root, err := filepath.EvalSymlinks(s.args.Path)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			if name == root {
				return err
			}
			s.found.Skipped++
			return nil
		}
		if name != root && strings.HasPrefix(entry.Name(), ".") {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if entry.Type()&fs.ModeDir != 0 || !entry.Type().IsRegular() {
			return nil
		}
		inner, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		shown := filepath.Join(s.args.Path, inner)
		if inner == "." { // the path is a file
			inner, shown = filepath.Base(name), s.args.Path
		}
		if s.args.FileGlob == "" || globMatches(s.args.FileGlob, inner) {
			s.visit(name, inner, shown)
		}
		return nil
	})
}

// globMatches compares with the name, or with the path below the searched directory when the glob has a slash.
func globMatches(glob, inner string) bool {
	if !strings.Contains(glob, "/") {
		inner = filepath.Base(inner)
	}
	matched, err := doublestar.Match(strings.TrimPrefix(glob, "./"), filepath.ToSlash(inner))
	return err == nil && matched
}

// page tells whether the next result is on the page.
func (s *search) page() bool {
	s.seen++
	return s.seen > s.args.Offset && s.seen <= s.args.Offset+s.args.Limit
}

func (s *search) visit(name, inner, shown string) {
	if s.pattern == nil {
		part := !strings.ContainsAny(s.args.Pattern, "*?[{/")
		if part && strings.Contains(filepath.Base(inner), s.args.Pattern) || !part && globMatches(s.args.Pattern, inner) {
			s.found.TotalCount++
			if s.page() {
				*s.found.Files = append(*s.found.Files, shown)
			}
		}
		return
	}
	data, err := readRegular(name)
	if err != nil {
		s.found.Skipped++
		return
	}
	if bytes.IndexByte(data[:min(len(data), 8192)], 0) >= 0 || s.literal != nil && !bytes.Contains(data, s.literal) {
		return
	}
	n := s.lines(data, shown)
	switch {
	case n == 0:
	case s.found.Files != nil:
		s.found.TotalCount++
		if s.page() {
			*s.found.Files = append(*s.found.Files, shown)
		}
	case s.found.Counts != nil:
		s.found.TotalCount += n
		*s.found.TotalFiles++
		if s.page() {
			*s.found.Counts = append(*s.found.Counts, count{shown, n})
		}
	default:
		s.found.TotalCount += n
	}
}

// lines counts the matching lines of a file and takes those on the page.
func (s *search) lines(data []byte, shown string) int {
	n := 0
	for at, number := 0, 1; at < len(data); number++ {
		line := data[at:]
		next := len(data)
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line, next = line[:end], at+end+1
		}
		if s.pattern.Match(bytes.TrimSuffix(line, []byte("\r"))) {
			n++
			if s.found.Matches != nil && s.page() {
				*s.found.Matches = append(*s.found.Matches, Line{
					Path: shown, Line: number, Content: shownLine(line),
					Before: before(data, at, s.args.Context), After: after(data, next, s.args.Context),
				})
			}
		}
		at = next
	}
	return n
}

func before(data []byte, at, n int) []string {
	var lines []string
	for ; n > 0 && at > 0; n-- {
		start := bytes.LastIndexByte(data[:at-1], '\n') + 1
		lines = append([]string{shownLine(data[start : at-1])}, lines...)
		at = start
	}
	return lines
}

func after(data []byte, at, n int) []string {
	var lines []string
	for ; n > 0 && at < len(data); n-- {
		end := bytes.IndexByte(data[at:], '\n')
		if end < 0 {
			end = len(data) - at
		}
		lines = append(lines, shownLine(data[at:at+end]))
		at += end + 1
	}
	return lines
}

const maxShownLine = 500

func shownLine(line []byte) string {
	return firstChars(strings.ToValidUTF8(string(bytes.TrimSuffix(line, []byte("\r"))), "\uFFFD"), maxShownLine)
}

func firstChars(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i] + "..."
		}
		n--
	}
	return text
}

// readRegular reads a file that may have been exchanged since it was listed: a pipe must not block the search.
func readRegular(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSearched {
		return nil, fmt.Errorf("%s is not a file to search", name)
	}
	data := make([]byte, info.Size())
	n, err := io.ReadFull(file, data)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return data[:n], nil
}

// Counts is an object in the order in which the files were found.
type Counts []count

type count struct {
	path string
	n    int
}

// MarshalJSON writes {"path": n, ...}.
func (c Counts) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, each := range c {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(each.path)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s:%d", name, each.n)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads what MarshalJSON writes, in that order.
func (c *Counts) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	*c = Counts{}
	for decoder.More() {
		var each count
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		each.path, _ = key.(string)
		if err := decoder.Decode(&each.n); err != nil {
			return err
		}
		*c = append(*c, each)
	}
	return nil
}
