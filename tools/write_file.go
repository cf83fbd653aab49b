package tools

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"

	"trajgen/registry"
	"trajgen/sandbox"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "write_file", Toolset: fileToolset,
		Description: "Write a whole text file: creates it with its parent directories, or replaces all of its content at " +
			"once. For a change within an existing file use patch when you have it. Windows line ends and a byte order mark " +
			"of the replaced file are kept. JSON and YAML files are checked after writing (lint); a bad check does not undo " +
			"the write. Relative paths start at the initial working directory. System directories are refused.",
		Access: func(arguments json.RawMessage) registry.Access {
			return registry.Access{Writes: []string{pathOf(arguments)}}
		},
	}, writeFile))
}

type writeFileArgs struct {
	Path    string `json:"path" doc:"The file." example:"notes/todo.txt"`
	Content string `json:"content" doc:"The complete new content, without line numbers."`
}

type writeFileResult struct {
	BytesWritten int    `json:"bytes_written"`
	Path         string `json:"path"`
	DirsCreated  bool   `json:"dirs_created"`
	Lint         *lint  `json:"lint,omitempty"`
}

func writeFile(ctx context.Context, env *registry.Env, args writeFileArgs) (any, error) {
	box, err := env.Sandbox(ctx)
	if err != nil {
		return nil, err
	}
	name, err := resolve(box, args.Path)
	if err != nil {
		return nil, err
	}
	dirs, err := writable(ctx, box, name, args.Path)
	if err != nil {
		return nil, err
	}
	data := []byte(args.Content)
	if !dirs {
		if data, err = likeExisting(ctx, box, name, args); err != nil {
			return nil, err
		}
	}
	if err := box.Files().Write(ctx, sandbox.FileWrite{Path: name, Data: data}); err != nil {
		return nil, fileFailure(err, "write", args.Path)
	}
	return writeFileResult{
		BytesWritten: len(data), Path: name, DirsCreated: dirs, Lint: lintFile(name, data),
	}, nil
}

// likeExisting gives the content the line ends and the byte order mark of the file that it replaces.
func likeExisting(ctx context.Context, box sandbox.Sandbox, name string, args writeFileArgs) ([]byte, error) {
	data := []byte(args.Content)
	old, info, err := box.Files().Read(ctx, name, 0, 64<<10) // enough to see how its lines end
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return data, nil
	case err != nil:
		if info, statErr := box.Files().Stat(ctx, name); statErr == nil && info.Mode.IsDir() {
			return nil, registry.Failf("is_directory", "cannot write %s: it is a directory", args.Path)
		}
		return nil, fileFailure(err, "write", args.Path)
	case inProtected(info.Path):
		return nil, denied(args.Path)
	}
	content := args.Content
	if newlines := strings.Count(string(old), "\n"); newlines > 0 && strings.Count(string(old), "\r\n") == newlines {
		content = strings.ReplaceAll(strings.ReplaceAll(content, "\r\n", "\n"), "\n", "\r\n")
	}
	if strings.HasPrefix(string(old), byteOrderMark) && !strings.HasPrefix(content, byteOrderMark) {
		content = byteOrderMark + content
	}
	return []byte(content), nil
}
