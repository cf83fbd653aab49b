package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"trajgen/registry"
)

// The bounds of a page.
const (
	defaultPage = 500
	maxPage     = 2000
	maxLine     = 2000
	maxContent  = 100_000 // characters
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "read_file", Toolset: fileToolset,
		Description: "Read a text file, page by page. content has one line of the file per line, as NUMBER|TEXT; the number " +
			"and the bar are not part of the file. Prefer it to cat, head and tail in the terminal. Lines over 2,000 " +
			"characters are cut; truncated=true means that more lines follow, and hint has the next offset. Relative paths " +
			"start at the initial working directory, whatever the terminal's is. Binary files and directories are refused; " +
			"for a missing file similar names are suggested.",
		MaxResult: 8 * maxContent,
		Access: func(arguments json.RawMessage) registry.Access {
			return registry.Access{Reads: []string{pathOf(arguments)}}
		},
	}, readFile))
}

// pathOf is the path argument of a call.
func pathOf(arguments json.RawMessage) string {
	var args struct {
		Path string `json:"path"`
	}
	_ = json.Unmarshal(arguments, &args) // arguments have been validated
	return args.Path
}

type readFileArgs struct {
	Path   string `json:"path" doc:"The file." example:"src/main.py"`
	Offset int    `json:"offset,omitempty" doc:"First line to show, from 1." default:"1"`
	Limit  int    `json:"limit,omitempty" doc:"Number of lines, at most 2000." default:"500"`
}

type readFileResult struct {
	Content    string `json:"content"`
	TotalLines int    `json:"total_lines"`
	FileSize   int64  `json:"file_size"`
	Truncated  bool   `json:"truncated"`
	Hint       string `json:"hint,omitempty"`
}

func readFile(ctx context.Context, env *registry.Env, args readFileArgs) (any, error) {
	box, err := env.Sandbox(ctx)
	if err != nil {
		return nil, err
	}
	name, err := resolve(box, args.Path)
	if err != nil {
		return nil, err
	}
	data, info, err := readWhole(ctx, box, name, args.Path)
	if err != nil {
		return nil, elsewhere(env, box, err, args.Path)
	}
	if err := checkText(data, name, args.Path, info.Size); err != nil {
		return nil, err
	}
	return page(data, info.Size, args.Offset, args.Limit), nil
}

// checkText refuses what is not for reading: by the name's ending, or because of a NUL near the beginning.
func checkText(data []byte, name, shown string, size int64) error {
	extension := strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
	if !binaryExtensions[extension] && bytes.IndexByte(data[:min(len(data), 8192)], 0) < 0 {
		return nil
	}
	kind := "a binary file"
	if imageExtensions[extension] {
		kind = "an image"
	}
	return &registry.Failure{
		Class:   "binary_file",
		Message: fmt.Sprintf("%s is %s; inspect it with the terminal (file, xxd, strings, python3)", shown, kind),
		Extra:   map[string]any{"is_binary": true, "file_size": size},
	}
}

func page(data []byte, size int64, offset, limit int) readFileResult {
	text := strings.ToValidUTF8(strings.TrimPrefix(string(data), byteOrderMark), "\uFFFD")
	lines, _ := splitLines(text)
	if limit == 0 {
		limit = defaultPage
	}
	from := max(offset, 1) - 1
	limit = min(max(limit, 1), maxPage)
	result := readFileResult{TotalLines: len(lines), FileSize: size}
	if from >= len(lines) {
		result.Hint = fmt.Sprintf("offset %d is past the end: the file has %d lines", from+1, len(lines))
		if len(lines) == 0 {
			result.Hint = "the file is empty"
		}
		return result
	}
	var b strings.Builder
	chars, next := 0, from
	for ; next < len(lines) && next < from+limit; next++ {
		line := strconv.Itoa(next+1) + "|" + cutLine(strings.TrimSuffix(lines[next], "\r"))
		if chars += utf8.RuneCountInString(line) + 1; chars > maxContent && next > from {
			break
		}
		if next > from {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	result.Content = b.String()
	if next < len(lines) {
		result.Truncated = true
		result.Hint = fmt.Sprintf("lines %d-%d of %d; go on with offset=%d", from+1, next, len(lines), next+1)
	}
	return result
}

func cutLine(line string) string {
	if len(line) <= maxLine || utf8.RuneCountInString(line) <= maxLine {
		return line
	}
	return strings.TrimSuffix(firstChars(line, maxLine), "...") + "... [truncated]"
}

var (
	binaryExtensions = wordSet("3ds 7z a aac ai aiff app avi bin blend bmp bz2 class dat data db deb dll doc docx dylib ear " +
		"eot eps exe fig fla flac flv gif gz ico idx iso jar jpeg jpg lib lockb m4a m4v max mdb mkv mov mp3 mp4 mpeg mpg msi " +
		"node o obj odp ods odt ogg opus otf png ppt pptx psd pyc pyo rar rlib rpm sketch so sqlite sqlite3 swf tar tgz tif " +
		"tiff ttf war wasm wav webm webp wma wmv woff woff2 xd xls xlsx xz z zip pdf")
	imageExtensions = wordSet("bmp gif ico jpeg jpg png webp")
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}
