package desk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"trajgen/sandbox"
)

// workspace is a folder of this machine that is copied into a sandbox.
type workspace struct {
	files []sandbox.FileWrite
	rest  bytes.Buffer // a shell script that makes what is not a file: folders, links, pipes
}

// readWorkspace reads a folder; none when root is empty. Links are copied and not followed: they could lead out of it.
func readWorkspace(root string) (*workspace, error) {
	w := &workspace{}
	if root == "" {
		return w, nil
	}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return w.add(path, "./"+filepath.ToSlash(name), entry)
	})
	if err != nil {
		return nil, fmt.Errorf("read workspace: %w", err)
	}
	return w, nil
}

func (w *workspace) add(path, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	mode := info.Mode()
	switch {
	case mode.IsRegular():
		data, err := os.ReadFile(path)
		w.files = append(w.files, sandbox.FileWrite{Path: name, Data: data, Mode: mode.Perm()})
		return err
	case mode.IsDir():
		fmt.Fprintf(&w.rest, "mkdir -p %s && chmod %o %[1]s\n", shellWord(name), mode.Perm()|0o700)
	case mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		fmt.Fprintf(&w.rest, "ln -s %s %s\n", shellWord(target), shellWord(name))
		return err
	case mode&fs.ModeNamedPipe != 0:
		fmt.Fprintf(&w.rest, "mkfifo %s\n", shellWord(name))
	default:
		return fmt.Errorf("%s is neither a file, a folder, a link nor a pipe", path)
	}
	return nil
}

// shellWord quotes a text for a shell.
func shellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// put copies the folder into the working directory.
func (w *workspace) put(ctx context.Context, sb sandbox.Sandbox) error {
	if err := sb.Files().Write(ctx, w.files...); err != nil {
		return err
	}
	if w.rest.Len() == 0 {
		return nil
	}
	script := "set -e\n" + w.rest.String()
	result, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"sh"}, Stdin: strings.NewReader(script)}, sandbox.RunOptions{})
	if err == nil && result.Exit.Code != 0 {
		err = errors.New("make folders and links: " + strings.TrimSpace(string(result.Stderr.Bytes())))
	}
	return err
}
