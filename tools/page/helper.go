package page

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"trajgen/sandbox"
)

// Helper is the name of this helper for sandbox.Command; it reads Args from its standard input, and writes an Answer to its
// standard output, both as JSON.
const Helper = "read_file"

func init() { sandbox.RegisterHelper(Helper, helper) }

// Args ask for a page.
type Args struct {
	Path   string `json:"path"` // absolute
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

// Answer is the page, or why there is none.
type Answer struct {
	Page
	Path      string    `json:"path"` // links resolved
	FileSize  int64     `json:"file_size"`
	ModTime   time.Time `json:"mod_time"`
	Extracted string    `json:"extracted,omitempty"` // the kind of document

	Failed string `json:"failed,omitempty"` // one of the reasons below
	Detail string `json:"detail,omitempty"`
}

// Why there is no page.
const (
	NotFound   = "not_found"
	Permission = "permission"
	Directory  = "is_directory"
	NotRegular = "not_regular"
	Binary     = "binary_file"
	Wide       = "utf16"
	Unreadable = "unreadable" // a document that cannot be parsed; Detail says why
	Failure    = "io"
)

func helper(_ []string, stdin io.Reader, stdout, _ io.Writer) int {
	var args Args
	if json.NewDecoder(stdin).Decode(&args) != nil {
		return 2
	}
	answer := Read(args)
	if json.NewEncoder(stdout).Encode(answer) != nil {
		return 1
	}
	return 0
}

// Secret files of processes, and those that are endless or have side effects when read.
var forbidden = regexp.MustCompile(`^/proc/([^/]+/)?(task/[^/]+/)?(fd|fdinfo|map_files)(/|$)|` +
	`^/proc/[^/]+/(task/[^/]+/)?(environ|cmdline|maps|smaps|smaps_rollup|numa_maps|mem|auxv|pagemap|stack|syscall)$|` +
	`^/proc/(kcore|kmsg|kpage.*|vmcore)$`)

// Forbidden reports whether a path is a device, or a file of a process that must not be read.
func Forbidden(name string) bool {
	return strings.HasPrefix(name, "/dev/") && name != os.DevNull && !strings.HasPrefix(name, "/dev/shm/") || forbidden.MatchString(name)
}

// maxSpecial bounds files of /proc and /sys, whose size is not known before they are read.
const maxSpecial = 4 << 20

// Read makes the page of a file as this process sees it.
func Read(args Args) Answer {
	name, err := filepath.EvalSymlinks(args.Path)
	if err != nil {
		return failed(err)
	}
	answer := Answer{Path: name}
	if Forbidden(name) {
		answer.Failed = NotRegular
		return answer
	}
	// A pipe must not block, and the file may have been replaced by a link since links were resolved.
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return failed(err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return failed(err)
	case info.IsDir():
		answer.Failed = Directory
		return answer
	case !info.Mode().IsRegular() && name != os.DevNull:
		answer.Failed = NotRegular
		return answer
	}
	answer.FileSize, answer.ModTime = info.Size(), info.ModTime()
	content, err := answer.text(file)
	if err == nil {
		answer.Page, err = Make(content, args.Offset, args.Limit)
	}
	switch {
	case errors.Is(err, ErrBinary), errors.Is(err, ErrWide):
		answer.Failed = NotText(err)
	case err != nil && answer.Extracted != "":
		answer.Failed, answer.Detail = Unreadable, err.Error()
	case err != nil:
		return failed(err)
	}
	if answer.FileSize == 0 && answer.Extracted == "" {
		answer.FileSize = answer.Size // files of /proc have none before they are read
	}
	return answer
}

// text returns the text of a file.
func (a *Answer) text(file *os.File) (io.Reader, error) {
	if a.Path == os.DevNull {
		return strings.NewReader(""), nil
	}
	if strings.HasPrefix(a.Path, "/proc/") || strings.HasPrefix(a.Path, "/sys/") {
		return io.LimitReader(file, maxSpecial), nil
	}
	if extract := documents[extension(a.Path)]; extract != nil {
		a.Extracted = extension(a.Path)
		return extract(file, a.FileSize)
	}
	return file, nil
}

// NotText returns the reason for an error of Make.
func NotText(err error) string {
	if errors.Is(err, ErrWide) {
		return Wide
	}
	return Binary
}

func failed(err error) Answer {
	answer := Answer{Failed: Failure, Detail: err.Error()}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		answer.Failed = NotFound
	case errors.Is(err, fs.ErrPermission):
		answer.Failed = Permission
	case errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ELOOP):
		answer.Failed = NotRegular
	default:
		if inner, ok := errors.AsType[*fs.PathError](err); ok {
			answer.Detail = inner.Err.Error()
		}
	}
	return answer
}

func extension(name string) string {
	return strings.ToLower(strings.TrimPrefix(filepath.Ext(name), "."))
}
