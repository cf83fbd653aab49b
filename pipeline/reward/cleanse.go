package reward

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"trajgen/pipeline/reward/suspects"
	"trajgen/sandbox"
)

// Suspects are files that run by themselves when a verifier starts a program, by path: a conftest.py in the working directory or
// above it, what Python imports as it starts, what shells and the loader read, and programs in directories of the agent that
// come before others of their name.
type Suspects map[string]suspects.File

// cleanse gives a fork the suspects that the task brought. Those that the agent made are removed, and those that it changed are put
// back.
func (o *Own) cleanse(ctx context.Context, sb sandbox.Sandbox, trusted []string) error {
	if !o.mayBe(ctx, sb) {
		return nil
	}
	found, err := o.look(ctx, sb, false)
	if err != nil {
		return err
	}
	workdir := sb.Layout().Workdir
	brought := o.brought(workdir)
	maps.DeleteFunc(found, func(name string, file suspects.File) bool {
		return same(brought[name], file) || trusts(trusted, workdir, name)
	})
	if len(found) == 0 {
		return nil
	}
	// What else was there before the agent came is known from a sandbox that no agent was in.
	before, err := o.Before(ctx, func(ctx context.Context, sb sandbox.Sandbox) (Suspects, error) { return o.look(ctx, sb, true) })
	if err != nil {
		return err
	}
	var gone []string
	var back []sandbox.FileWrite
	for _, name := range slices.Sorted(maps.Keys(found)) {
		was, known := brought[name]
		if !known {
			was = before[name]
		}
		if same(was, found[name]) {
			continue
		}
		if gone = append(gone, name); was.Data != nil {
			back = append(back, sandbox.FileWrite{Path: name, Data: was.Data, Mode: was.Mode, Replace: true})
		}
	}
	files := sb.Files()
	if err := files.Remove(ctx, gone...); err != nil {
		return err
	}
	return files.Write(ctx, back...)
}

// mayBe looks from outside whether there can be suspects at all: in a small working directory, that costs less than a process.
func (o *Own) mayBe(ctx context.Context, sb sandbox.Sandbox) bool {
	workdir := sb.Layout().Workdir
	if o.system() || o.Spec().Env["PATH"] != "" {
		return true
	}
	for dir := path.Dir(workdir); ; dir = path.Dir(dir) {
		if _, err := sb.Files().Stat(ctx, path.Join(dir, "conftest.py")); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
		if dir == "/" {
			break
		}
	}
	info, err := sb.Files().Stat(ctx, workdir)
	return err != nil || mayHold(ctx, sb.Files(), info, func(entry sandbox.Info) bool {
		return entry.Name == "conftest.py" || strings.HasSuffix(entry.Name, "-packages") || entry.Mode&fs.ModeSymlink != 0
	})
}

// system says whether the agent could change what belongs to the system.
func (o *Own) system() bool {
	spec := o.Spec()
	return !o.Fixed || spec.Image != "" || spec.Writable
}

// brought are the task's files, which a setup may have changed.
func (o *Own) brought(workdir string) Suspects {
	files := Suspects{}
	if o.Task.Setup != "" {
		return files
	}
	for name, data := range o.Task.Files {
		files[within(workdir, name)] = suspects.File{Data: data, Sum: suspects.Sum(data)}
	}
	return files
}

func same(a, b suspects.File) bool { return a.Sum != "" && a.Sum == b.Sum }

// look finds the suspects in a sandbox.
func (o *Own) look(ctx context.Context, sb sandbox.Sandbox, data bool) (Suspects, error) {
	layout := sb.Layout()
	question, err := json.Marshal(suspects.Question{
		Workdir: layout.Workdir, Own: []string{layout.Workdir, layout.Home, layout.Tmp}, System: o.system(), Data: data,
	})
	if err != nil {
		return nil, err
	}
	var lines bytes.Buffer
	result, err := sandbox.Run(ctx, sb, sandbox.Command{
		Helper: suspects.Helper, Dir: path.Dir(layout.Tests), Stdin: bytes.NewReader(question), Stdout: &lines,
	}, sandbox.RunOptions{})
	if err == nil && (result.Exit.Code != 0 || result.TimedOut || result.Flooded) {
		err = fmt.Errorf("status %d: %s", result.Exit.Code, result.Stderr.Bytes())
	}
	if err != nil {
		return nil, fmt.Errorf("look for what the agent planted: %w", err)
	}
	found := Suspects{}
	for decoder := json.NewDecoder(&lines); ; {
		var file suspects.File
		if err := decoder.Decode(&file); err == io.EOF {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("look for what the agent planted: %w", err)
		}
		found[file.Path] = file
	}
}

// trusts reports whether one of the patterns is about a file. They begin at the working directory unless they begin with a slash.
func trusts(patterns []string, workdir, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matched, _ := doublestar.Match(within(workdir, pattern), name) // whoever read the task checked the pattern
		return matched
	})
}

// within is the path of a name in a directory.
func within(dir, name string) string {
	if strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}
