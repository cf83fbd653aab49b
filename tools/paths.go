package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"trajgen/registry"
	"trajgen/sandbox"
)

// maxFile is the largest file that the file tools take into the runner's memory.
const maxFile = 10 << 20

// protected are the directories that no file tool writes to.
var protected = []string{"/etc", "/boot", "/usr/lib/systemd", "/proc", "/sys", "/dev"}

func expandHome(name string, layout sandbox.Layout) string {
	if name == "~" || strings.HasPrefix(name, "~/") {
		return layout.Home + name[1:]
	}
	return name
}

// resolve makes a path absolute as a process of the sandbox would see it. Links are resolved by the sandbox.
func resolve(box sandbox.Sandbox, name string) (string, error) {
	switch {
	case name == "":
		return "", registry.Failf("invalid_path", "the path is empty")
	case strings.ContainsRune(name, 0):
		return "", registry.Failf("invalid_path", "the path contains a NUL character")
	}
	layout := box.Layout()
	name = expandHome(name, layout)
	if !path.IsAbs(name) {
		name = path.Join(layout.Workdir, name)
	}
	return path.Clean(name), nil
}

// writable refuses protected places: by the path as given, and by where its nearest existing parent really lies.
// dirs tells that the parent does not exist yet.
func writable(ctx context.Context, box sandbox.Sandbox, name, shown string) (dirs bool, err error) {
	if inProtected(name) {
		return false, denied(shown)
	}
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		info, err := box.Files().Stat(ctx, dir)
		switch {
		case err == nil && !info.Mode.IsDir():
			return dirs, registry.Failf("not_a_directory", "cannot write %s: %s is not a directory", shown, dir)
		case err == nil && inProtected(path.Join(info.Path, "x")):
			return dirs, denied(shown)
		case err == nil || dir == "/":
			return dirs, nil
		case !errors.Is(err, fs.ErrNotExist):
			return dirs, fileFailure(err, "write", shown)
		}
		dirs = true
	}
}

func inProtected(name string) bool {
	return slices.ContainsFunc(protected, func(dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") })
}

func denied(shown string) error {
	return registry.Failf("denied", "refused to write %s: system directories are not to be changed", shown)
}

// fileFailure words an error of a file operation for the model. A lost sandbox and the end of the call pass as they are.
func fileFailure(err error, doing, shown string) error {
	switch {
	case errors.Is(err, sandbox.ErrGone), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return registry.Failf("not_found", "file not found: %s", shown)
	case errors.Is(err, fs.ErrPermission):
		return registry.Failf("permission", "cannot %s %s: permission denied", doing, shown)
	case errors.Is(err, sandbox.ErrNotRegular):
		return registry.Failf("not_regular", "cannot %s %s: it is a device, pipe or another special file", doing, shown)
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return registry.Failf("io", "cannot %s %s: %v", doing, shown, pathErr.Err)
	}
	return fmt.Errorf("%s %s: %w", doing, shown, err)
}

// readWhole reads a regular file of bounded size.
func readWhole(ctx context.Context, box sandbox.Sandbox, name, shown string) ([]byte, sandbox.Info, error) {
	data, info, err := box.Files().Read(ctx, name, 0, maxFile+1)
	if err != nil {
		return nil, info, readFailure(ctx, box, err, name, shown)
	}
	if len(data) > maxFile {
		return nil, info, &registry.Failure{
			Class:   "too_large",
			Message: fmt.Sprintf("%s has %s bytes, over the limit of %s; use the terminal (sed -n, head, tail, grep)", shown, thousands(int(info.Size)), thousands(maxFile)),
			Extra:   map[string]any{"file_size": info.Size},
		}
	}
	return data, info, nil
}

// readFailure tells a directory from a missing file, and suggests names for the latter.
func readFailure(ctx context.Context, box sandbox.Sandbox, err error, name, shown string) error {
	if errors.Is(err, fs.ErrNotExist) {
		failure := &registry.Failure{Class: "not_found", Message: "file not found: " + shown}
		if similar := similarFiles(ctx, box, name, shown); len(similar) > 0 {
			failure.Extra = map[string]any{"similar_files": similar}
		}
		return failure
	}
	if info, statErr := box.Files().Stat(ctx, name); statErr == nil && info.Mode.IsDir() {
		return registry.Failf("is_directory", "%s is a directory, not a file; list it with the terminal (ls) or search_files", shown)
	}
	return fileFailure(err, "read", shown)
}

const maxSimilar = 5

// elsewhere points out that a missing relative path may have been meant to start at the terminal's directory.
func elsewhere(env *registry.Env, box sandbox.Sandbox, err error, shown string) error {
	failure, ok := errors.AsType[*registry.Failure](err)
	layout := box.Layout()
	dir := shellOf(env.Session).directory(layout)
	if !ok || failure.Class != "not_found" || path.IsAbs(shown) || strings.HasPrefix(shown, "~") || dir == layout.Workdir {
		return err
	}
	failure.Message += fmt.Sprintf(" (relative paths start at %s; the terminal is in %s)", layout.Workdir, dir)
	return failure
}

// similarFiles names the files of the same directory that the missing one may have been meant to be, best first.
func similarFiles(ctx context.Context, box sandbox.Sandbox, name, shown string) []string {
	entries, err := box.Files().List(ctx, path.Dir(name))
	if err != nil {
		return nil
	}
	type candidate struct {
		name  string
		score float64
	}
	var all []candidate
	wanted := strings.ToLower(path.Base(name))
	stem := strings.TrimSuffix(wanted, path.Ext(wanted))
	for _, entry := range entries {
		have := strings.ToLower(entry.Name)
		score := similarity(wanted, have)
		if stem != "" && strings.TrimSuffix(have, path.Ext(have)) == stem {
			score = max(score, 0.9)
		}
		if len(stem) > 2 && strings.Contains(have, stem) {
			score = max(score, 0.6)
		}
		if score >= 0.5 && !entry.Mode.IsDir() {
			all = append(all, candidate{path.Join(path.Dir(shown), entry.Name), score})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if a.score != b.score {
			return -1 * compareFloat(a.score, b.score)
		}
		return strings.Compare(a.name, b.name)
	})
	names := []string{}
	for _, each := range all[:min(len(all), maxSimilar)] {
		names = append(names, each.name)
	}
	return names
}

func compareFloat(a, b float64) int {
	if a < b {
		return -1
	}
	return 1
}
