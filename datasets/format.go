package datasets

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// format reads the rows of one kind of file, until its end or until yield returns false. A broken row is yielded with its reason.
// To add one, write its file and its line in formats.
type format struct {
	// suffixes are what such a file is called, lower case.
	suffixes []string
	// magic recognizes the first bytes of an uncompressed file, if they are unmistakable. Optional.
	magic func(head []byte) bool
	// text reads a format of text, which may be packed. The suffix is that of the file.
	text func(text *bufio.Reader, suffix string, yield func(row) bool) error
	// binary reads a format that is never without its magic and brings its own compression.
	binary func(file *os.File, yield func(row) bool) error
}

var formats = map[string]format{
	"arrow":   {suffixes: []string{".arrow", ".arrows", ".ipc", ".feather"}, magic: looksLikeArrow, binary: arrowRows},
	"csv":     {suffixes: []string{".csv", ".tsv"}, text: csvRows},
	"json":    {suffixes: []string{".jsonl", ".ndjson", ".json"}, magic: looksLikeJSONL, text: jsonRows},
	"parquet": {suffixes: []string{".parquet", ".pq"}, magic: looksLikeParquet, binary: parquetRows},
	"yaml":    {suffixes: []string{".yaml", ".yml"}, text: yamlRows},
}

func (f format) rows(path string, yield func(row) bool) error {
	file, err := os.Open(path)
	if err != nil {
		return bareCause(err)
	}
	defer file.Close()
	if f.binary != nil {
		return f.binary(file, yield)
	}
	text, _, err := readText(file)
	if err != nil {
		return err
	}
	return f.text(text, suffixOf(path), yield)
}

// knownSuffixes lists what data files are called, for messages.
func knownSuffixes() string {
	var list []string
	for _, format := range formats {
		list = append(list, format.suffixes...)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// formatOf goes by the name. If the name names no format or the content is clearly another one, it goes by the content, as a
// download often has a wrong name.
func formatOf(path string) (name string, err error) {
	head, packing, err := readHead(path)
	if err != nil {
		return "", err
	}
	content := ""
	for name, f := range formats {
		if f.magic != nil && f.magic(head) {
			content = name
		}
	}
	named := formatNamed(path)
	switch {
	case content != "" && formats[content].binary != nil && packing != "":
		return "", fmt.Errorf("it is a packed %s file, which compresses by itself; unpack it", content)
	case content != "" && (named == "" || formats[named].magic != nil || formats[content].binary != nil):
		return content, nil
	case named == "" && packing != "":
		return "json", nil // a compressed file without a telling name is taken for lines of JSON
	case named == "":
		return "", fmt.Errorf("its format shows neither in its name (known are %s) nor in its content", knownSuffixes())
	case formats[named].binary != nil:
		return "", fmt.Errorf("it is named like a %s file but does not begin like one", named)
	}
	return named, nil
}

// formatNamed is the format that a file's name promises, "" when it promises none.
func formatNamed(path string) string {
	for name, f := range formats {
		if slices.Contains(f.suffixes, suffixOf(path)) {
			return name
		}
	}
	return ""
}

// suffixOf is what a file's name ends in, in lower case and without the suffix of a packing.
func suffixOf(path string) string {
	name := strings.ToLower(path)
	for _, p := range packings {
		if plain, packed := strings.CutSuffix(name, p.suffix); packed && p.suffix != "" {
			return filepath.Ext(plain)
		}
	}
	return filepath.Ext(name)
}

// readHead reads the uncompressed start of a file. It refuses all but regular files, as a dataset is read more than once.
func readHead(path string) (head []byte, packing string, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, "", fmt.Errorf("%w (want a file, a directory, a pattern such as data/*.jsonl, or %q)", bareCause(err), Bundled)
	case err != nil:
		return nil, "", bareCause(err)
	case info.Mode()&os.ModeNamedPipe != 0:
		return nil, "", errors.New("it is a pipe; a dataset is read more than once, so store it in a file")
	case !info.Mode().IsRegular():
		return nil, "", errors.New("it is not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, "", bareCause(err)
	}
	defer file.Close()
	text, packing, err := readText(file)
	if err != nil {
		return nil, "", bareCause(err)
	}
	head, err = text.Peek(512)
	if err == io.EOF || packing != "" {
		err = nil // reading the file reports damage with its place
	}
	return head, packing, err
}

// bareCause drops the path, which the caller's message has.
func bareCause(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}

func looksLikeParquet(head []byte) bool { return bytes.HasPrefix(head, []byte("PAR1")) }
