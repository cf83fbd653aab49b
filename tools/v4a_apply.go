package tools

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/search"
)

type v4aResult struct {
	Success       bool       `json:"success"`
	DryRun        bool       `json:"dry_run,omitempty"` // nothing was written
	Diff          string     `json:"diff"`
	FilesModified []string   `json:"files_modified"`
	FilesCreated  []string   `json:"files_created"`
	FilesDeleted  []string   `json:"files_deleted"`
	FilesMoved    []string   `json:"files_moved"`
	Lint          []v4aCheck `json:"lint,omitempty"` // of the files that fail it
	Warning       string     `json:"_warning,omitempty"`
}

type v4aCheck struct {
	Path string `json:"path"`
	lint
}

// applyV4A first applies the patch to copies of the files. It writes only when all of it fits, and undoes the writes when a
// later one fails.
func applyV4A(ctx context.Context, env *registry.Env, box sandbox.Sandbox, args patchArgs) (any, error) {
	operations, err := parseV4A(args.Patch)
	if err != nil {
		return nil, refuse("invalid_patch", "invalid patch: %v; nothing was changed", err)
	}
	stage := &staging{env: env, box: box, files: map[string]*stagedFile{}, v4aResult: v4aResult{
		Success: true, DryRun: args.DryRun,
		FilesModified: []string{}, FilesCreated: []string{}, FilesDeleted: []string{}, FilesMoved: []string{},
	}}
	for _, op := range operations {
		if err := stage.play(ctx, op); err != nil {
			return nil, unchanged(err)
		}
	}
	stage.Diff = cutDiff(strings.Join(stage.diffs, ""))
	if args.DryRun {
		return stage.v4aResult, nil
	}
	if err := stage.commit(ctx); err != nil {
		return nil, unchanged(err)
	}
	stage.report(ctx)
	return stage.v4aResult, nil
}

// unchanged adds to a failure that no part of the patch was applied.
func unchanged(err error) error {
	if failure, ok := errors.AsType[*registry.Failure](err); ok && !strings.Contains(failure.Message, "nothing was changed") {
		if strings.Contains(failure.Message, "\n") { // it ends with lines of a file
			failure.Message = strings.TrimSuffix(failure.Message, "\n") + "\nnothing was changed"
		} else {
			failure.Message += "; nothing was changed"
		}
	}
	return err
}

// staging is the patch's own view of the files that it touches.
type staging struct {
	env   *registry.Env
	box   sandbox.Sandbox
	files map[string]*stagedFile // by absolute path
	order []*stagedFile
	size  int // bytes of the files as they were
	diffs []string
	v4aResult
}

// stagedFile is a file with what the patch makes of it.
type stagedFile struct {
	target
	existed bool
	old     []byte
}

// file loads a file, once.
func (s *staging) file(ctx context.Context, shown string) (*stagedFile, error) {
	name, err := resolve(s.box, shown)
	if err != nil {
		return nil, err
	}
	if f := s.files[name]; f != nil {
		return f, nil
	}
	f := &stagedFile{}
	f.target, err = readTarget(ctx, s.box, shown)
	switch {
	case err == nil:
		err = f.whole()
	case noFile(err):
		f.real, _, err = writable(ctx, s.box, name, shown)
	default:
		err = readFailure(ctx, s.box, err, name, shown)
	}
	if err != nil {
		return nil, err
	}
	f.existed, f.old = f.exists, f.data
	if err := s.fits(f); err != nil {
		return nil, err
	}
	s.files[name] = f
	s.order = append(s.order, f)
	return f, nil
}

// changed reports whether the patch leaves a file that is to be written.
func (f *stagedFile) changed() bool {
	return f.exists && (!f.existed || !bytes.Equal(f.data, f.old))
}

// Bounds of what a patch reads into the runner's memory.
const (
	maxStaged      = 500
	maxStagedBytes = 4 * maxFile
)

// fits refuses a file that conflicts with another path of the patch, or is one too many.
func (s *staging) fits(f *stagedFile) error {
	if s.size += len(f.old); len(s.order) >= maxStaged || s.size > maxStagedBytes {
		return refuse("too_large", "a patch may touch %d files that have %s bytes in all; split it", maxStaged, thousands(maxStagedBytes))
	}
	for _, other := range s.order {
		switch {
		case f.real == other.real:
			return refuse("same_file", "%s and %s are the same file; use one of the names for both", other.shown, f.shown)
		case other.exists && !other.existed && search.Within(f.real, other.real):
			return refuse("not_a_directory", "cannot write %s: the patch makes a file of %s", f.shown, other.shown)
		case other.exists && !f.existed && search.Within(other.real, f.real):
			return refuse("is_directory", "cannot write %s: the patch makes a directory of it, for %s", f.shown, other.shown)
		}
	}
	return nil
}

func (s *staging) play(ctx context.Context, op operation) error {
	f, err := s.file(ctx, op.path)
	if err != nil {
		return err
	}
	if op.kind == "add" {
		if f.exists {
			return refuse("exists", "cannot add %s: it exists already; use *** Update File:", op.path)
		}
		f.exists, f.data, f.mode = true, op.content, 0
		s.FilesCreated = append(s.FilesCreated, op.path)
		s.diffs = append(s.diffs, diffOf(op.path, "", []edit{{text: string(op.content)}}))
		return nil
	}
	if !f.exists {
		failure := refuse("not_found", "cannot %s %s: file not found", op.kind, op.path)
		return nameDirectory(s.env, s.box, notFound(ctx, s.box, f.name, op.path, failure), op.path)
	}
	switch op.kind {
	case "delete":
		f.exists, f.data = false, nil
		s.FilesDeleted = append(s.FilesDeleted, op.path)
		return nil
	case "update":
		if err := s.update(f, op); err != nil {
			return err
		}
	}
	if op.to == "" {
		return nil
	}
	return s.move(ctx, f, op)
}

func (s *staging) update(f *stagedFile, op operation) error {
	if len(op.hunks) == 0 {
		return nil
	}
	file, err := target{shown: op.path, data: f.data}.text()
	if err != nil {
		return err
	}
	edits, err := hunkEdits(file.text, op.hunks)
	if err != nil {
		return refuse("no_match", "cannot update %s: %v", op.path, err)
	}
	if err := checkGrowth(file, edits, op.path); err != nil {
		return err
	}
	text, data := file.apply(edits)
	if text == file.text {
		return refuse("identical", "the update leaves %s as it is", op.path)
	}
	f.data = data
	if !slices.Contains(s.FilesModified, f.shown) {
		s.FilesModified = append(s.FilesModified, f.shown)
	}
	s.diffs = append(s.diffs, diffOf(op.path, file.text, edits))
	return nil
}

func (s *staging) move(ctx context.Context, f *stagedFile, op operation) error {
	to, err := s.file(ctx, op.to)
	if err != nil {
		return err
	}
	if to.exists {
		return refuse("exists", "cannot move %s to %s: the target exists already", op.path, op.to)
	}
	to.exists, to.data, to.mode = true, f.data, f.mode
	f.exists, f.data = false, nil
	s.FilesMoved = append(s.FilesMoved, op.path+" -> "+op.to)
	return nil
}

func (s *staging) commit(ctx context.Context) error {
	var writes []sandbox.FileWrite
	var written []*stagedFile
	var remove []string
	for _, f := range s.order {
		switch {
		case f.changed():
			writes = append(writes, sandbox.FileWrite{Path: f.name, Data: f.data, Mode: f.mode, Replace: !f.existed})
			written = append(written, f)
		case f.existed && !f.exists:
			remove = append(remove, f.name)
		}
	}
	if len(writes) > 0 {
		if err := s.box.Files().Write(ctx, writes...); err != nil {
			s.undo(ctx, written)
			return fileFailure(err, "write", failedPath(err, writes[0].Path))
		}
	}
	if len(remove) == 0 {
		return nil
	}
	if err := s.box.Files().Remove(ctx, remove...); err != nil {
		s.undo(ctx, s.order)
		return fileFailure(err, "delete", failedPath(err, remove[0]))
	}
	return nil
}

func failedPath(err error, otherwise string) string {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Path
	}
	return otherwise
}

// undo restores the files. It ignores errors: the failed write is reported already.
func (s *staging) undo(ctx context.Context, files []*stagedFile) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	var remove []string
	for _, f := range files {
		if !f.existed {
			remove = append(remove, f.name)
			continue
		}
		if err := s.box.Files().Write(ctx, sandbox.FileWrite{Path: f.name, Data: f.old, Mode: f.mode}); err != nil {
			s.env.Logger.Warn("take back a patch", "path", f.name, "error", err)
		}
	}
	if len(remove) > 0 {
		if err := s.box.Files().Remove(ctx, remove...); err != nil {
			s.env.Logger.Warn("take back a patch", "error", err)
		}
	}
}

// report records what the model now knows of the files, and checks those that were written.
func (s *staging) report(ctx context.Context) {
	files := filesOf(s.env.Session)
	var warnings []string
	for _, f := range s.order {
		if f.existed {
			if warning := files.warning(f.real, f.stamp, false); warning != "" {
				warnings = append(warnings, f.shown+": "+warning)
			}
		}
		switch {
		case !f.exists:
			files.removed(f.real)
		case f.changed():
			files.wrote(f.real, f.data, !f.existed && s.env.Parent == "")
			if check := lintFile(ctx, s.box, f.name, f.old, f.data); check != nil && check.Status == "error" {
				s.Lint = append(s.Lint, v4aCheck{f.shown, *check})
			}
		}
	}
	s.Warning = strings.Join(warnings, "; ")
}
