package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"trajgen/registry"
	"trajgen/sandbox"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "write_file", Toolset: fileToolset,
		Description: "Write a whole text file: creates it with its parent directories, or replaces all of its content at " +
			"once; with append=true it adds to its end. For a change within an existing file use patch when you have it. Mode, Windows line ends and a byte order " +
			"mark of the replaced file are kept. The syntax of Python, JSON, YAML, TOML, Go, JavaScript, TypeScript and Rust " +
			"files is checked afterwards (lint); a bad check does not undo the write. _warning says when the file had changed " +
			"since you read it, or when you had not read all of it. Relative paths start at the initial working directory. " +
			"System directories and places for keys are refused.",
		Access: func(arguments json.RawMessage) registry.Access {
			return registry.Access{Writes: []string{pathOf(arguments)}}
		},
	}, writeFile))
}

type writeFileArgs struct {
	_ struct{} `idle:"encoding=utf-8,encoding=utf8,overwrite=true,create_dirs=true,create_directories=true,make_dirs=true,parents=true"`

	Path    string `json:"path" alias:"file_path,filename,file,target_file" doc:"The file." example:"notes/todo.txt"`
	Content string `json:"content" alias:"contents,text,file_text,file_content" doc:"The complete new content, without line numbers."`
	Append  bool   `json:"append,omitempty" doc:"Add content at the end of the file instead; a file that is not there is created." default:"false"`
}

type writeFileResult struct {
	BytesWritten  int      `json:"bytes_written"`
	DirsCreated   bool     `json:"dirs_created"`
	Lint          *lint    `json:"lint,omitempty"`
	ResolvedPath  string   `json:"resolved_path"`
	FilesModified []string `json:"files_modified"`
	Warning       string   `json:"_warning,omitempty"`
}

func writeFile(ctx context.Context, env *registry.Env, args writeFileArgs) (any, error) {
	box, err := env.Sandbox(ctx)
	if err != nil {
		return nil, err
	}
	old, err := readTarget(ctx, box, args.Path)
	dirs := false
	switch {
	case err != nil && noFile(err):
		if old.real, dirs, err = writable(ctx, box, old.name, args.Path); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, writeFailure(ctx, box, err, old.name, args.Path)
	}
	if err := refuseEcho(args, old); err != nil {
		return nil, err
	}
	added := old.like(args.Content)
	data, appended := added, args.Append && old.exists
	if appended {
		if old.size+int64(len(added)) > maxFile {
			return nil, registry.Failf("too_large", "%s would be larger than %s bytes; append to it in the terminal", args.Path, thousands(maxFile))
		}
		added = bytes.TrimPrefix(added, []byte(byteOrderMark)) // the file begins with one already
		data = slices.Concat(old.data, added)
	}
	// Replace a dangling link: following it could lead to a protected path.
	if err := box.Files().Write(ctx, sandbox.FileWrite{Path: old.name, Data: data, Replace: !old.exists}); err != nil {
		return nil, fileFailure(err, "write", args.Path)
	}
	files := filesOf(env.Session)
	result := writeFileResult{
		BytesWritten: len(added), DirsCreated: dirs, ResolvedPath: old.real, FilesModified: []string{args.Path},
	}
	if old.exists {
		result.Warning = files.warning(old.real, old.stamp, !appended)
	}
	files.wrote(old.real, data, env.Parent == "" && !appended) // the model has not seen what a script wrote
	result.Lint = lintFile(ctx, box, old.name, old.data, data)
	return result, nil
}

// writeFailure distinguishes a directory from other files that cannot be written. It returns a failure unchanged.
func writeFailure(ctx context.Context, box sandbox.Sandbox, err error, name, shown string) error {
	if _, ok := errors.AsType[*registry.Failure](err); ok {
		return err
	}
	if isDirectory(ctx, box, name) {
		return registry.Failf("is_directory", "cannot write %s: it is a directory", shown)
	}
	return fileFailure(err, "write", shown)
}

// like gives a text the line ends and the byte order mark of the replaced file.
func (t target) like(content string) []byte {
	old := string(t.data)
	if newlines := strings.Count(old, "\n"); newlines > 0 && strings.Count(old, "\r\n") == newlines {
		content = strings.ReplaceAll(unixLines(content), "\n", "\r\n")
	}
	if strings.HasPrefix(old, byteOrderMark) && !strings.HasPrefix(content, byteOrderMark) {
		content = byteOrderMark + content
	}
	return []byte(content)
}

var numbered = regexp.MustCompile(`^ *(\d+)\|`)

// refuseEcho refuses a text that is a tool's output and not the content of a file: read_file's message about an unchanged page,
// or its lines with numbers.
func refuseEcho(args writeFileArgs, old target) error {
	if strings.Contains(args.Content, unchangedMessage) && len(args.Content) < 2*len(unchangedMessage)+len(args.Path) {
		return registry.Failf("echo", "refused to write %s: the content is a message of read_file and not that of a file", args.Path)
	}
	if isNumbered(args.Content) && !isNumbered(string(old.data)) && !slices.Contains(tables, strings.ToLower(path.Ext(args.Path))) {
		return registry.Failf("echo", "refused to write %s: the content has read_file's line numbers (1|, 2|, ...) in front of "+
			"its lines; write it without them, or in the terminal if they belong there", args.Path)
	}
	return nil
}

// tables are the endings of files whose lines may begin with a number and a bar.
var tables = []string{".csv", ".tsv", ".psv", ".dsv"}

// isNumbered reports whether all lines, and at least two, have ascending numbers as in read_file's output.
func isNumbered(content string) bool {
	n, before := 0, 0
	for line := range strings.Lines(content) {
		match := numbered.FindStringSubmatch(line)
		if match == nil {
			if strings.TrimSpace(line) == "" {
				continue
			}
			return false
		}
		number, err := strconv.Atoi(match[1])
		if err != nil || n > 0 && number != before+1 {
			return false
		}
		before = number
		n++
	}
	return n >= 2
}
