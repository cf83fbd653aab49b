package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/page"
)

// Bounds of a page.
const (
	defaultPage = 500
	maxPage     = 2000
	maxLine     = page.MaxLine
	// carried is the size up to which the runner reads a whole file; of a larger one it reads the page only.
	carried = 512_000
	// narrowPage is the largest recommended page of a larger file, in lines.
	narrowPage  = 200
	readTimeout = 60 * time.Second
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "read_file", Toolset: fileToolset,
		Description: "Read a text file, page by page. content has one line of the file per line, as NUMBER|TEXT; the number " +
			"and the bar are not part of the file. Prefer it to cat, head and tail in the terminal. Lines over 2,000 " +
			"characters are cut; a page of over 100,000 is refused; truncated=true means that more lines follow, and hint has " +
			"the next offset. Of .ipynb, .docx and .xlsx files the text is shown. Relative paths start at the initial working " +
			"directory, whatever the terminal's is. Other binary files, directories, devices and files made for secrets " +
			"(.env, keys) are refused; for a missing file similar names are suggested. A page that you have already is not " +
			"sent again while the file is unchanged.",
		MaxResult: 8 * page.MaxContent, Reader: true,
		Access: func(arguments json.RawMessage) registry.Access {
			return registry.Access{Reads: []string{pathOf(arguments)}}
		},
	}, readFile))
}

// pathOf returns the path argument of a call; without one, the working directory.
func pathOf(arguments json.RawMessage) string {
	var args struct {
		Path string `json:"path"`
	}
	_ = json.Unmarshal(arguments, &args) // arguments have been validated
	return cmp.Or(args.Path, ".")
}

type readFileArgs struct {
	_ struct{} `idle:"encoding=utf-8,encoding=utf8,line_numbers=true,show_line_numbers=true"`

	Path   string `json:"path" alias:"file_path,filename,file,target_file" doc:"The file." example:"src/main.py"`
	Offset int    `json:"offset,omitempty" alias:"start_line,line_start,from_line" doc:"First line to show, from 1." default:"1"`
	Limit  *int   `json:"limit,omitempty" alias:"max_lines,num_lines,line_count" last:"offset:end_line,line_end,to_line" doc:"Number of lines, at most 2000." default:"500"`
}

type readFileResult struct {
	Content    string `json:"content"`
	TotalLines int    `json:"total_lines"`
	FileSize   int64  `json:"file_size"`
	Truncated  bool   `json:"truncated"`
	Extracted  string `json:"extracted_from,omitempty"` // the kind of document
	Hint       string `json:"hint,omitempty"`
}

// unchangedResult replaces a page that the model already has.
type unchangedResult struct {
	Status   string `json:"status"`
	Message  string `json:"message"`
	Path     string `json:"path"`
	Dedup    bool   `json:"dedup"`
	Returned bool   `json:"content_returned"`
}

const unchangedMessage = "the file is unchanged since you read these lines, and nothing but reading was done since; " +
	"use what is above instead of reading it again"

func readFile(ctx context.Context, env *registry.Env, args readFileArgs) (any, error) {
	box, err := env.Sandbox(ctx)
	if err != nil {
		return nil, err
	}
	name, err := resolve(box, args.Path)
	if err != nil {
		return nil, err
	}
	if err := refuseReading(box.Layout(), name, args.Path); err != nil {
		return nil, err
	}
	limit := defaultPage
	if args.Limit != nil {
		limit = min(max(*args.Limit, 1), maxPage)
	}
	args.Offset = max(args.Offset, 1)
	files := filesOf(env.Session)
	answer, err := readPage(ctx, box, page.Args{Path: name, Offset: args.Offset, Limit: limit}, args.Path, files.large(name))
	if err == nil {
		err = refuseReading(box.Layout(), answer.Path, args.Path) // links are resolved now
	}
	if err == nil {
		err = answerFailure(ctx, env, box, answer, name, args.Path)
	}
	if err != nil {
		return nil, nameDirectory(env, box, err, args.Path)
	}
	if answer.TooLarge() {
		return nil, pageTooLarge(answer, args)
	}
	now := stamp{size: answer.FileSize, sum: answer.Sum, summed: answer.Extracted == "", time: answer.ModTime}
	if env.Parent != "" { // the model does not see what a script reads
		return pageResult(answer, args.Offset, limit), nil
	}
	switch n := files.repeated(env, pageKey{answer.Path, args.Offset, limit}, now); {
	case n == 1:
		return unchangedResult{Status: "unchanged", Message: unchangedMessage, Path: args.Path, Dedup: true}, nil
	case n > 1:
		return nil, &registry.Failure{
			Class: "repeated", Message: fmt.Sprintf("BLOCKED: you have read these lines of %s %d times, and they are "+
				"unchanged; go on with what you have", args.Path, n+1),
			Extra: map[string]any{"path": args.Path, "repeats": n + 1},
		}
	}
	files.read(answer.Path, now, args.Offset, answer.Lines, answer.TotalLines)
	return pageResult(answer, args.Offset, limit), nil
}

// refuseReading refuses files by their path.
func refuseReading(layout sandbox.Layout, name, shown string) error {
	switch {
	case page.Forbidden(name):
		return notRegular(shown)
	case secret(layout, name):
		return denied("refused to read %s: such files are for secrets; if the task is about this one, use the terminal", shown)
	}
	return nil
}

func notRegular(shown string) error {
	return registry.Failf("not_regular", "cannot read %s: it is a device, a pipe or another special file", shown)
}

// readPage makes the page, usually with one round trip to the sandbox: it reads a small file whole; for a document, or a file
// known to be large, it asks the helper at once. Only a file that turns out to be large or special takes another round trip.
func readPage(ctx context.Context, box sandbox.Sandbox, args page.Args, shown string, large bool) (page.Answer, error) {
	if args.Path == "/dev/null" { // some sandboxes do not allow opening it
		return pageOf(nil, sandbox.Info{Path: args.Path}, args), nil
	}
	if !page.Document(args.Path) && !large {
		data, info, err := box.Files().Read(ctx, args.Path, 0, carried+1)
		switch {
		case err == nil && page.Document(info.Path):
		case err == nil && len(data) <= carried:
			return pageOf(data, info, args), nil
		case err != nil && !errors.Is(err, sandbox.ErrNotRegular):
			return page.Answer{}, readFailure(ctx, box, err, args.Path, shown)
		}
	}
	var answer page.Answer
	err := askHelper(ctx, box, page.Helper, "reading", readTimeout, args, &answer)
	return answer, err
}

func pageOf(data []byte, info sandbox.Info, args page.Args) page.Answer {
	answer := page.Answer{Path: info.Path, FileSize: int64(len(data)), ModTime: info.ModTime}
	var err error
	if answer.Page, err = page.Make(bytes.NewReader(data), args.Offset, args.Limit); err != nil {
		answer.Failed = page.NotText(err) // Make of bytes fails in this way only
	}
	return answer
}

// answerFailure makes the failure for a page that could not be made.
func answerFailure(ctx context.Context, env *registry.Env, box sandbox.Sandbox, answer page.Answer, name, shown string) error {
	extension := strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
	failure := &registry.Failure{Class: "binary_file", Extra: map[string]any{"is_binary": true, "file_size": answer.FileSize}}
	switch answer.Failed {
	case "":
		if slices.Contains(binaryExtensions, extension) {
			return binaryFile(env, failure, shown, extension)
		}
		return nil
	case page.Binary:
		return binaryFile(env, failure, shown, extension)
	case page.NotFound:
		return readFailure(ctx, box, fs.ErrNotExist, name, shown)
	case page.Directory:
		return readFailure(ctx, box, syscall.EISDIR, name, shown)
	case page.Permission:
		return registry.Failf("permission", "cannot read %s: permission denied", shown)
	case page.NotRegular:
		return notRegular(shown)
	case page.Wide:
		failure.Message = fmt.Sprintf("%s is text in UTF-16; read it in the terminal with iconv -f UTF-16 -t UTF-8", shown)
		return failure
	case page.Unreadable:
		delete(failure.Extra, "is_binary")
		failure.Class = "unreadable_document"
		failure.Message = fmt.Sprintf("cannot take the text out of %s: %s; inspect it with the terminal", shown, answer.Detail)
		return failure
	}
	return registry.Failf("io", "cannot read %s: %s", shown, answer.Detail)
}

// binaryFile completes the failure for a file that is not text.
func binaryFile(env *registry.Env, failure *registry.Failure, shown, extension string) error {
	kind, advice := "a binary file", "inspect it with the terminal (file, xxd, strings, python3)"
	if slices.Contains(imageExtensions, extension) {
		kind = "an image"
		failure.Extra["is_image"] = true
		if env.Session.Toolset().Has("vision_analyze") {
			advice = "look at it with vision_analyze"
		}
	}
	failure.Message = fmt.Sprintf("%s is %s; %s", shown, kind, advice)
	return failure
}

func pageTooLarge(answer page.Answer, args readFileArgs) error {
	advice := fmt.Sprintf("limit=%d fits from offset=%d", answer.Fit, args.Offset)
	return &registry.Failure{
		Class: "too_large",
		Message: fmt.Sprintf("lines %d-%d of %s have %s characters, over the limit of %s; ask for fewer lines (%s), or look for "+
			"what you need with search_files", args.Offset, args.Offset+answer.Lines-1, args.Path, thousands(answer.Chars),
			thousands(page.MaxContent), advice),
		Extra: map[string]any{"total_lines": answer.TotalLines, "file_size": answer.FileSize},
	}
}

func pageResult(answer page.Answer, offset, limit int) readFileResult {
	result := readFileResult{
		Content: answer.Content, TotalLines: answer.TotalLines, FileSize: answer.FileSize, Extracted: answer.Extracted,
	}
	last := offset + answer.Lines - 1
	switch {
	case answer.TotalLines == 0:
		result.Hint = "the file is empty"
	case answer.Lines == 0:
		result.Hint = fmt.Sprintf("offset %d is past the end: the file has %d lines", offset, answer.TotalLines)
	case last < answer.TotalLines:
		result.Truncated = true
		result.Hint = fmt.Sprintf("lines %d-%d of %d; go on with offset=%d", offset, last, answer.TotalLines, last+1)
	}
	more := func(hint string) { result.Hint = strings.TrimPrefix(result.Hint+"; "+hint, "; ") }
	if answer.FileSize > carried && limit > narrowPage {
		more("the file is large: read only what you need, with offset and limit")
	}
	if answer.Garbled {
		more("the text is not all UTF-8: what is not is shown as \uFFFD, and patch refuses the file")
	}
	return result
}

// No page is made of files with these endings, whatever their content. Endings that text files have as well, such as dat, db or
// obj, are not among them: there the content decides.
var (
	binaryExtensions = strings.Fields("7z aac aiff avi bmp bz2 deb dll dylib ear eot exe fla flac flv gif gz ico iso jar jpeg jpg " +
		"lockb m4a m4v mdb mkv mov mp3 mp4 mpeg mpg msi odp ods odt ogg opus otf png ppt pptx psd pyc pyo rar rlib rpm so " +
		"sqlite sqlite3 swf tar tgz tif tiff ttf war wasm wav webm webp wma wmv woff woff2 xls xz zip pdf")
	imageExtensions = strings.Fields("bmp gif ico jpeg jpg png webp")
)
