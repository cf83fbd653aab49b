package datasets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
)

// format reads the rows of one kind of file. To add one, write its file and its line in formats.
type format struct {
	// suffixes are what such a file is called, lower case.
	suffixes []string
	// magic tells by the first bytes of a file; it must not claim what it is not sure of. Optional.
	magic func(head []byte) bool
	// binary formats are never without their magic.
	binary bool
	// rows streams the file until its end or until it is not asked for more. An error ends the stream; a row that is
	// broken by itself is a row with its reason.
	rows func(path string) iter.Seq2[row, error]
}

var formats = map[string]format{
	"jsonl":   {suffixes: jsonlSuffixes, magic: looksLikeJSONL, rows: jsonlRows},
	"parquet": {suffixes: []string{".parquet", ".pq"}, magic: looksLikeParquet, binary: true, rows: parquetRows},
	"yaml":    {suffixes: []string{".yaml", ".yml"}, rows: yamlFileRows},
}

// Suffixes lists the file names that Open knows, sorted.
func Suffixes() []string {
	var list []string
	for _, format := range formats {
		list = append(list, format.suffixes...)
	}
	slices.Sort(list)
	return list
}

// formatOf goes by the name. Where the name says nothing, and where the content is plainly something else, it goes by
// the content: a download often keeps the wrong name.
func formatOf(path string) (format, error) {
	head, err := readHead(path)
	if err != nil {
		return format{}, err
	}
	byContent, contentKnown := format{}, false
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		if f := formats[name]; f.magic != nil && f.magic(head) {
			byContent, contentKnown = f, true
		}
	}
	lower := strings.ToLower(path)
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		f := formats[name]
		if !slices.ContainsFunc(f.suffixes, func(suffix string) bool { return strings.HasSuffix(lower, suffix) }) {
			continue
		}
		if contentKnown && f.magic != nil {
			return byContent, nil
		}
		if f.binary {
			return format{}, fmt.Errorf("it is named like a %s file but does not begin like one", name)
		}
		return f, nil
	}
	if contentKnown {
		return byContent, nil
	}
	return format{}, fmt.Errorf("its format shows neither in its name (known are %s) nor in its content", strings.Join(Suffixes(), ", "))
}

// readHead reads what the formats need to see. Only regular files will do: a dataset is read more than once.
func readHead(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w (want a file or %q)", bareCause(err), Bundled)
		}
		return nil, bareCause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is not a regular file but %s", describeMode(info.Mode()))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, bareCause(err)
	}
	defer file.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(file, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, bareCause(err)
	}
	return head[:n], nil
}

// bareCause drops the path, which the caller's message has.
func bareCause(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}

func describeMode(mode os.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&os.ModeNamedPipe != 0:
		return "a pipe; a dataset is read more than once, so store it in a file"
	}
	return "a special file"
}

var (
	gzipMagic    = []byte{0x1f, 0x8b}
	zstdMagic    = []byte{0x28, 0xb5, 0x2f, 0xfd}
	parquetMagic = []byte("PAR1")
	byteOrder    = []byte("\xef\xbb\xbf") // the mark that some editors put in front of UTF-8
)

func looksLikeParquet(head []byte) bool { return bytes.HasPrefix(head, parquetMagic) }
