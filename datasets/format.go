package datasets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// format reads the rows of one kind of file. To add one, write its file and its line in formats.
type format struct {
	// suffixes are what such a file is called, lower case.
	suffixes []string
	// magic recognizes the first bytes of an uncompressed file, if they are unmistakable. Optional.
	magic func(head []byte) bool
	// binary formats are never without their magic, and bring their own compression.
	binary bool
	// rows yields the rows of the file until its end or until yield returns false. A broken row is yielded with its reason.
	rows func(path string, yield func(row) bool) error
}

var formats = map[string]format{
	"arrow":   {suffixes: []string{".arrow", ".arrows", ".ipc", ".feather"}, magic: looksLikeArrow, binary: true, rows: arrowRows},
	"csv":     {suffixes: packedSuffixes(".csv", ".tsv"), rows: csvRows},
	"json":    {suffixes: jsonlSuffixes, magic: looksLikeJSONL, rows: jsonlRows},
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

// formatOf goes by the name. If the name names no format or the content is clearly another one, it goes by the content, as a
// download often has a wrong name.
func formatOf(path string) (name string, err error) {
	head, packed, err := readHead(path)
	if err != nil {
		return "", err
	}
	content := ""
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		if f := formats[name]; f.magic != nil && f.magic(head) {
			content = name
		}
	}
	named := formatNamed(path)
	switch {
	case content != "" && formats[content].binary && packed:
		return "", fmt.Errorf("it is a packed %s file, which compresses by itself; unpack it", content)
	case content != "" && (named == "" || formats[named].magic != nil || formats[content].binary):
		return content, nil
	case named == "" && packed:
		return "json", nil // a compressed file without a telling name is taken for lines of JSON
	case named == "":
		return "", fmt.Errorf("its format shows neither in its name (known are %s) nor in its content", strings.Join(Suffixes(), ", "))
	case formats[named].binary:
		return "", fmt.Errorf("it is named like a %s file but does not begin like one", named)
	}
	return named, nil
}

// formatNamed is the format that a file's name promises, "" when it promises none.
func formatNamed(path string) string {
	lower := strings.ToLower(path)
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		if slices.ContainsFunc(formats[name].suffixes, func(suffix string) bool { return strings.HasSuffix(lower, suffix) }) {
			return name
		}
	}
	return ""
}

// readHead reads the uncompressed start of a file. It refuses all but regular files, as a dataset is read more than once.
func readHead(path string) (head []byte, packed bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, false, fmt.Errorf("%w (want a file, a directory, a pattern such as data/*.jsonl, or %q)", bareCause(err), Bundled)
		}
		return nil, false, bareCause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, false, fmt.Errorf("it is not a regular file but %s", describeMode(info.Mode()))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, false, bareCause(err)
	}
	defer file.Close()
	text, closeText, err := decompress(file)
	if foreign, ok := errors.AsType[foreignPacking](err); ok {
		return nil, false, foreign
	}
	if err != nil {
		return nil, true, nil // reading the file reports damage with its place
	}
	defer closeText()
	_, packed = text.(*compressed)
	head = make([]byte, 512)
	n, err := io.ReadFull(text, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF && !packed {
		return nil, false, bareCause(err)
	}
	return head[:n], packed, nil
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
	parquetMagic = []byte("PAR1")
	byteOrder    = []byte("\xef\xbb\xbf") // the mark that some editors put in front of UTF-8
)

func looksLikeParquet(head []byte) bool { return bytes.HasPrefix(head, parquetMagic) }
