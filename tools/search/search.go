// Package search is the part of search_files that runs inside the sandbox: it sees what the sandbox's processes see, with the
// same limits. It is part of the small program in every sandbox, so it imports little.
package search

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime/debug"

	"trajgen/sandbox"
)

// Helper is its name for sandbox.Command; it reads a Question from its standard input, and writes Found to its standard output,
// both as JSON.
const Helper = "search_files"

func init() { sandbox.RegisterHelper(Helper, helper) }

// Args are the tool's arguments.
type Args struct {
	_ struct{} `idle:"recursive=true,regex=true,is_regex=true,line_numbers=true,show_line_numbers=true,n=true"`

	Pattern    string `json:"pattern" alias:"query,regex,regexp,search_pattern" doc:"Regular expression, or glob for target=files." example:"def \\w+"`
	Target     string `json:"target,omitempty" doc:"What to search: what is in files (grep is the same), or their names (find is the same)." enum:"content,files,grep,find" default:"content"`
	Path       string `json:"path,omitempty" alias:"file_path,directory,dir,dir_path,search_path,folder" doc:"File or directory to search." default:"."`
	FileGlob   string `json:"file_glob,omitempty" alias:"glob,include,include_pattern,file_pattern" doc:"Search only files that match this glob, e.g. *.py or src/**/*.js; with a ! in front, only those that do not."`
	Limit      int    `json:"limit,omitempty" alias:"max_results,head_limit,max_matches" doc:"Results of one page, at most 1000." default:"50" min:"1"`
	Offset     int    `json:"offset,omitempty" doc:"Results to skip." default:"0" min:"0"`
	OutputMode string `json:"output_mode,omitempty" doc:"Form of the results for target=content." enum:"content,files_only,count" default:"content"`
	Context    int    `json:"context,omitempty" alias:"context_lines,C" doc:"Lines to show before and after each match, at most 20." default:"0" min:"0"`
	IgnoreCase bool   `json:"ignore_case,omitempty" alias:"case_insensitive,i" doc:"Whether capital letters match small ones." default:"false"`
}

// ByName reports whether the pattern is a glob for names.
func (a *Args) ByName() bool { return a.Target == "files" || a.Target == "find" }

// Expression returns the pattern as a regular expression.
func (a *Args) Expression() string {
	if a.IgnoreCase {
		return "(?i)" + a.Pattern
	}
	return a.Pattern
}

// Found is the helper's output and, without Failed, the model's result.
type Found struct {
	TotalCount int             `json:"total_count"`
	TotalFiles *int            `json:"total_files,omitempty"` // count: number of files with matches
	Matches    *[]Line         `json:"matches,omitempty"`
	Files      *[]string       `json:"files,omitempty"`
	Counts     json.RawMessage `json:"counts,omitempty"` // an object of path and number
	Truncated  bool            `json:"truncated"`
	Skipped    int             `json:"skipped,omitempty"`  // files and directories that could not be read
	Withheld   int             `json:"withheld,omitempty"` // files made for secrets, which were not searched
	Warning    string          `json:"_warning,omitempty"` // a message of the tool about the search

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
	debug.SetGCPercent(400) // the process is short-lived and its memory bounded
	var s search
	if err := json.NewDecoder(stdin).Decode(&s.Question); err != nil {
		return 2
	}
	find := s.byContent
	if s.Args.ByName() {
		find = s.byName
	}
	if err := find(); err != nil {
		s.found = failed(err, s.Args.Path)
	}
	encoder := json.NewEncoder(stdout)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(s.found) != nil {
		return 1
	}
	return 0
}

// Denied is the class of a refused search.
const Denied = "denied"

func failed(err error, path string) Found {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Found{Failed: "path not found: " + path, Class: "not_found"}
	case errors.Is(err, fs.ErrPermission):
		return Found{Failed: "cannot search " + path + ": permission denied", Class: "permission"}
	case errors.Is(err, errWithheld):
		return Found{Failed: "refused to search " + path + ": such files are for secrets; if the task is about this one, use the terminal", Class: Denied}
	case errors.Is(err, errBinary):
		return Found{Failed: path + " is a binary file; inspect it with the terminal (grep -a, strings)", Class: "binary_file"}
	}
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	return Found{Failed: "cannot search " + path + ": " + err.Error(), Class: "invalid_path"}
}

type search struct {
	Question
	found Found
	seen  int // results so far, for the page
}

// page reports whether the next result is on the page.
func (s *search) page() bool {
	s.seen++
	return s.seen > s.Args.Offset && s.seen <= s.Args.Offset+s.Args.Limit
}

func (s *search) globs() []override { return []override{newOverride(s.Args.FileGlob)} }

func (s *search) byName() error {
	files := []string{}
	w := &walker{all: true, globs: append(s.globs(), newNamePart(s.Args.Pattern, s.Args.IgnoreCase)), visit: func(e entry) {
		if s.page() {
			files = append(files, e.shown)
		}
	}}
	if err := w.walk(s.Args.Path); err != nil {
		return err
	}
	s.found = Found{TotalCount: s.seen, Files: &files, Skipped: w.skipped, Truncated: s.seen > s.Args.Offset+s.Args.Limit}
	return nil
}

// byContent first counts in all files, several at a time, and then reads the page's lines from the few files that have them:
// memory use does not depend on the number of files or matches.
func (s *search) byContent() error {
	p, err := newPattern(s.Args.Expression())
	if err != nil {
		return err
	}
	mode := s.Args.OutputMode
	most := math.MaxInt
	if mode == "files_only" {
		most = 1
	}
	files, counts := []string{}, []count{}
	matching := 0
	var parts []part
	info, err := os.Stat(s.Args.Path)
	single := err == nil && !info.IsDir()
	w := &walker{globs: s.globs(), places: s.Withheld}
	var failed error
	err = scan(w, s.Args.Path, p, most, func(e entry, n int, err error) {
		switch {
		case err != nil && single:
			failed = err
			return
		case errors.Is(err, errBinary):
			return
		case err != nil:
			s.found.Skipped++
			return
		case n == 0:
			return
		}
		matching++
		s.found.TotalCount += n
		switch {
		case mode == "files_only":
			if s.page() {
				files = append(files, e.shown)
			}
		case mode == "count":
			if s.page() {
				counts = append(counts, count{e.shown, n})
			}
		default:
			from, to := max(s.Args.Offset-s.seen, 0), min(s.Args.Offset+s.Args.Limit-s.seen, n)
			if from < to {
				parts = append(parts, part{e, from, to})
			}
			s.seen += n
		}
	})
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	s.found.Skipped += w.skipped
	s.found.Withheld = w.kept
	s.found.Truncated = s.seen > s.Args.Offset+s.Args.Limit
	switch mode {
	case "files_only":
		s.found.Files = &files
	case "count":
		s.found.Counts, s.found.TotalFiles = object(counts), &matching
	default:
		shown := shownLines{all: []Line{}}
		for _, each := range parts {
			if err := shown.add(each, p, s.Args.Context); err != nil {
				s.found.Skipped++
			}
			if shown.full {
				s.found.Truncated = true
				s.found.Warning = fmt.Sprintf("the page ends after %d results, as they are long: go on with offset=%d, or ask for "+
					"less context", len(shown.all), s.Args.Offset+len(shown.all))
				break
			}
		}
		s.found.Matches = &shown.all
	}
	return nil
}
