package corpus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Source says how documents are read from files.
type Source struct {
	// Map has the names of columns whose rows have a field under another name, by the field: {"text": "body"}.
	Map map[string]string
	// HTML makes a title and a text of a page. The content type is as the page came with it, such as text/html; charset=latin1,
	// and the URL is "" where it is not known. Without it, a page is an error.
	HTML func(ctx context.Context, body []byte, contentType, url string) (title, text string, err error)
	// Bad receives each document that cannot be read, an *InputError, and reading goes on. Without it, the first one ends the
	// reading.
	Bad func(error)
	// Other receives the files of folders and the records of WARC files that are not documents: pictures, and pages that failed.
	Other func(place string)
}

// Fields are the fields of a document's row.
func Fields() []string { return []string{"id", "title", "url", "text"} }

// Validate says what is wrong with the mapping.
func (s Source) Validate() error {
	var errs []error
	for _, field := range slices.Sorted(maps.Keys(s.Map)) {
		if !slices.Contains(Fields(), field) {
			errs = append(errs, fmt.Errorf("a document has no field %q (have %s)", field, strings.Join(Fields(), ", ")))
		} else if s.Map[field] == "" {
			errs = append(errs, fmt.Errorf("the column of %s has no name", field))
		}
	}
	return errors.Join(errs...)
}

// Read yields the documents of files, in their order, and of the files below folders, in the order of their paths. A file's name
// says what it is: text (.txt), Markdown (.md, .markdown), a page (.html, .htm, .xhtml), a WARC file (.warc, .warc.gz, .wet.gz),
// or else rows, as package datasets reads them; in a folder these are JSON Lines, Parquet and Arrow. The id of a file is its path
// below the folder; a row has its own or else its URL, and a WARC record its own. A row with contents in place of a text begins
// with its title, unless it has that apart. Every error but an *InputError with Bad ends the iteration.
func (s Source) Read(ctx context.Context, paths ...string) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		r := &reader{Source: s, ctx: ctx, yield: yield}
		err := s.Validate()
		for _, path := range paths {
			if err != nil || r.done {
				break
			}
			err = r.path(path)
		}
		if err != nil && !r.done {
			yield(Document{}, err)
		}
	}
}

// reader is one pass over files.
type reader struct {
	Source
	ctx   context.Context // of the iteration that this is
	yield func(Document, error) bool
	done  bool // yield wants no more
}

// give hands on a document, and returns whether to go on.
func (r *reader) give(d Document) bool {
	if reason := d.check(); reason != "" {
		return r.bad(d.Place, errors.New(reason))
	}
	r.done = r.done || !r.yield(d, nil)
	return !r.done
}

// bad reports a document that cannot be read.
func (r *reader) bad(place string, reason error) bool {
	err := &InputError{place, reason.Error()}
	if r.Bad != nil && r.ctx.Err() == nil {
		r.Bad(err)
		return true
	}
	if !r.done {
		r.yield(Document{}, cmp.Or(context.Cause(r.ctx), error(err)))
	}
	r.done = true
	return false
}

func (r *reader) other(place string) {
	if r.Other != nil {
		r.Other(place)
	}
}

func (r *reader) path(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a folder", path)
	}
	if !info.IsDir() {
		return r.file(path, filepath.Base(path))
	}
	found := false
	err = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		hidden := at != path && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir():
			return nil
		}
		if info, err := os.Stat(at); err != nil || !info.Mode().IsRegular() || kindOf(at) == "" { // a link leads to its file
			r.other(at)
			return err
		}
		name, err := filepath.Rel(path, at)
		if err != nil {
			return err
		}
		found = true
		if err := r.file(at, filepath.ToSlash(name)); err != nil || r.done {
			return cmp.Or(err, fs.SkipAll)
		}
		return nil
	})
	if err == nil && !found {
		known := strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")
		err = fmt.Errorf("%s: there are no documents below this folder (files named %s)", path, known)
	}
	return err
}

// kinds are what files are by what their names end in. Packed rows and WARC files have a suffix more.
var kinds = map[string]string{
	".txt": "text", ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".xhtml": "html",
	".warc": "warc", ".wet": "warc", ".jsonl": "rows", ".ndjson": "rows", ".parquet": "rows", ".pq": "rows", ".arrow": "rows",
}

// kindOf is "" of a name that says nothing.
func kindOf(path string) string {
	suffix := strings.ToLower(filepath.Ext(path))
	if kind := kinds[suffix]; kind != "" {
		return kind
	}
	if slices.Contains([]string{".gz", ".zst", ".bz2"}, suffix) {
		inner := strings.ToLower(filepath.Ext(path[:len(path)-len(suffix)]))
		if kind := kinds[inner]; kind == "rows" || kind == "warc" {
			return kind
		}
	}
	return ""
}

// file reads the documents of one file. What can be said of it alone, and not of a document in it, is an error.
func (r *reader) file(path, name string) error {
	switch kind := kindOf(path); kind {
	case "text", "markdown", "html":
		r.page(path, name, kind)
		return nil
	case "warc":
		return r.warc(path)
	}
	return r.rows(path)
}

var heading = regexp.MustCompile(`(?m)^# +(.+?)[ #]*$`)

// page reads a file that is one document.
func (r *reader) page(path, name, kind string) bool {
	body, err := readFile(path)
	if err != nil {
		return r.bad(path, err)
	}
	base := filepath.Base(path)
	d := Document{ID: name, Title: strings.TrimSuffix(base, filepath.Ext(base)), Place: path}
	if kind == "html" {
		title, text, err := r.html(body, "text/html", "")
		if err != nil {
			return r.bad(path, err)
		}
		d.Title, d.Text = cmp.Or(title, d.Title), text
		return r.give(d)
	}
	d.Text = strings.TrimPrefix(string(body), "\ufeff")
	if found := heading.FindStringSubmatch(d.Text); kind == "markdown" && found != nil {
		d.Title = strings.TrimSpace(found[1])
	}
	return r.give(d)
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err) // without the path, which its place has
	}
	defer file.Close()
	return readAll(file)
}

// readAll reads the bytes of one document.
func readAll(from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, MaxDocument+1))
	if err == nil && len(body) > MaxDocument {
		err = fmt.Errorf("it is larger than %d MiB; divide it", MaxDocument>>20)
	}
	return body, err
}

func (r *reader) html(body []byte, contentType, url string) (title, text string, err error) {
	if r.HTML == nil {
		return "", "", errors.New("it is a page in HTML, which is not read here; convert it to Markdown")
	}
	title, text, err = r.HTML(r.ctx, body, contentType, url)
	if err == nil && !utf8.ValidString(title) {
		title = strings.ToValidUTF8(title, "\ufffd")
	}
	return title, text, err
}
