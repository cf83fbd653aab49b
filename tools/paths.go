package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/search"
)

// maxFile is the largest file that the file tools read into the runner's memory.
const maxFile = 10 << 20

// protected are the directories that no file tool writes to. The working directory and the temporary one are writable even when
// they are inside. (On macOS both are below /private/var, which is therefore not in the list.)
var protected = []string{
	"/etc", "/private/etc", "/boot", "/usr/lib/systemd", "/proc", "/sys", "/dev",
	"/run/docker.sock", "/var/run/docker.sock",
}

// credentials are the paths in a home directory where programs keep keys and passwords. File tools neither read nor write them.
var credentials = []string{
	".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".config/gh", ".config/gcloud",
	".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials",
}

func expandHome(name string, layout sandbox.Layout) string {
	if name == "~" || strings.HasPrefix(name, "~/") {
		return layout.Home + name[1:]
	}
	return name
}

// resolve makes a path absolute as a process of the sandbox would. The sandbox resolves links.
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

// writable returns the path of a file that does not exist, with links resolved, and refuses protected paths. dirs says that its
// directory does not exist either.
func writable(ctx context.Context, box sandbox.Sandbox, name, shown string) (real string, dirs bool, err error) {
	for dir, rest := path.Dir(name), path.Base(name); ; dir, rest = path.Dir(dir), path.Join(path.Base(dir), rest) {
		info, err := box.Files().Stat(ctx, dir)
		switch {
		case err == nil && !info.Mode.IsDir():
			return "", dirs, registry.Failf("not_a_directory", "cannot write %s: %s is not a directory", shown, dir)
		case err == nil:
			real = path.Join(info.Path, rest)
			return real, dirs, refuseProtected(box.Layout(), real, shown)
		case dir == "/" || !errors.Is(err, fs.ErrNotExist):
			return "", dirs, fileFailure(err, "write", shown)
		}
		dirs = true
	}
}

// refuseProtected refuses to write to a protected path.
func refuseProtected(layout sandbox.Layout, name, shown string) error {
	switch {
	case layout.Workdir != "/" && search.Within(name, layout.Workdir), search.Within(name, layout.Tmp):
		return nil
	case slices.ContainsFunc(protected, func(dir string) bool { return search.Within(name, dir) }):
		return denied("refused to write %s: system directories are not to be changed", shown)
	case isCredential(layout, name):
		return denied("refused to write %s: it is where programs look for keys and passwords", shown)
	}
	return nil
}

func isCredential(layout sandbox.Layout, name string) bool {
	return slices.ContainsFunc(credentials, func(place string) bool { return search.Within(name, path.Join(layout.Home, place)) })
}

// secret reports whether a file is made for secrets. Such a file is not read, even in a disposable sandbox: the results of file
// tools go into a dataset, and a task about such a file can use the terminal. Writing one is allowed, as the content is the
// model's own.
func secret(layout sandbox.Layout, name string) bool {
	return isCredential(layout, name) || search.Secret(path.Base(name))
}

func denied(format string, args ...any) error {
	failure := registry.Failf("denied", format, args...)
	failure.Status = episode.CallDenied
	return failure
}

// fileFailure makes a failure for the model from an error of a file operation. It returns the loss of the sandbox and the end
// of the call unchanged.
func fileFailure(err error, doing, shown string) error {
	switch {
	case errors.Is(err, sandbox.ErrGone), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return registry.Failf("not_found", "file not found: %s", shown)
	case errors.Is(err, fs.ErrPermission) && search.Within(path.Clean(shown), "/tmp"):
		return registry.Failf("permission", "cannot %s %s: permission denied; the directory for temporary files is another one here: "+
			"use the home directory (~) or what $TMPDIR says in the terminal", doing, shown)
	case errors.Is(err, fs.ErrPermission):
		return registry.Failf("permission", "cannot %s %s: permission denied", doing, shown)
	case errors.Is(err, syscall.ENOTDIR):
		return registry.Failf("not_a_directory", "cannot %s %s: what stands for a directory in its path is a file", doing, shown)
	case errors.Is(err, sandbox.ErrNotRegular):
		return registry.Failf("not_regular", "cannot %s %s: it is a device, pipe or another special file", doing, shown)
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return registry.Failf("io", "cannot %s %s: %v", doing, shown, pathErr.Err)
	}
	return fmt.Errorf("%s %s: %w", doing, shown, err)
}

// target is the present state of a path that is to be changed.
type target struct {
	name, shown string // absolute, and as the model wrote it
	real        string // with links resolved
	exists      bool
	data        []byte // at most maxFile
	mode        fs.FileMode
	stamp
}

// readTarget reads the file, if there is one, and refuses paths that must not be written. Its other errors are those of the
// sandbox.
func readTarget(ctx context.Context, box sandbox.Sandbox, shown string) (target, error) {
	t := target{shown: shown}
	var err error
	if t.name, err = resolve(box, shown); err != nil {
		return t, err
	}
	if err := refuseProtected(box.Layout(), t.name, shown); err != nil {
		return t, err
	}
	data, info, err := box.Files().Read(ctx, t.name, 0, maxFile+1)
	if err != nil {
		return t, err
	}
	t.real, t.exists, t.data, t.mode, t.stamp = info.Path, true, data, info.Mode.Perm(), stampOf(data, info)
	if len(data) > maxFile {
		t.data, t.stamp = data[:maxFile], stamp{size: max(info.Size, maxFile+1), time: info.ModTime}
	}
	return t, refuseProtected(box.Layout(), info.Path, shown)
}

// whole refuses a file that is too large to be edited.
func (t target) whole() error {
	if t.size <= maxFile {
		return nil
	}
	return &registry.Failure{
		Class: "too_large",
		Message: fmt.Sprintf("%s has %s bytes, over the limit of %s; use the terminal (sed -n, head, tail, grep)",
			t.shown, thousands(int(t.size)), thousands(maxFile)),
		Extra: map[string]any{"file_size": t.size},
	}
}

// noFile reports whether an error says that the file is missing.
func noFile(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// readFailure distinguishes a directory from a missing file, for which it suggests names. It returns a failure unchanged.
func readFailure(ctx context.Context, box sandbox.Sandbox, err error, name, shown string) error {
	if _, ok := errors.AsType[*registry.Failure](err); ok {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return notFound(ctx, box, name, shown, &registry.Failure{Message: "file not found: " + shown})
	}
	if errors.Is(err, syscall.EISDIR) || isDirectory(ctx, box, name) {
		return registry.Failf("is_directory", "%s is a directory, not a file; list it with the terminal (ls) or search_files", shown)
	}
	return fileFailure(err, "read", shown)
}

func isDirectory(ctx context.Context, box sandbox.Sandbox, name string) bool {
	info, err := box.Files().Stat(ctx, name)
	return err == nil && info.Mode.IsDir()
}

// notFound adds suggestions to the failure for a missing file.
func notFound(ctx context.Context, box sandbox.Sandbox, name, shown string, failure *registry.Failure) error {
	failure.Class = "not_found"
	similar, listed := similarFiles(ctx, box, name, shown)
	if listed {
		failure.Message += " (it is a link to something that is not there)"
	}
	if len(similar) > 0 {
		if failure.Extra == nil {
			failure.Extra = map[string]any{}
		}
		failure.Extra["similar_files"] = similar
	}
	return failure
}

const maxSimilar = 5

// nameDirectory adds that a missing relative path may be relative to the terminal's directory.
func nameDirectory(env *registry.Env, box sandbox.Sandbox, err error, shown string) error {
	failure, ok := errors.AsType[*registry.Failure](err)
	layout := box.Layout()
	dir := shellOf(env.Session).directory(layout)
	if !ok || failure.Class != "not_found" || path.IsAbs(shown) || strings.HasPrefix(shown, "~") || dir == layout.Workdir {
		return err
	}
	failure.Message += fmt.Sprintf(" (relative paths start at %s; the terminal is in %s)", layout.Workdir, dir)
	return failure
}

// similarFiles returns the names in the same directory that are most like the missing one, best first. listed says that the
// directory has the missing name itself: a dangling link.
func similarFiles(ctx context.Context, box sandbox.Sandbox, name, shown string) (names []string, listed bool) {
	entries, err := box.Files().List(ctx, path.Dir(name))
	if err != nil {
		return nil, false
	}
	type candidate struct {
		name  string
		score float64
	}
	var all []candidate
	wanted := strings.ToLower(path.Base(name))
	stem := strings.TrimSuffix(wanted, path.Ext(wanted))
	for _, entry := range entries {
		if entry.Name == path.Base(name) {
			listed = true
			continue
		}
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
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.name, b.name))
	})
	for _, each := range all[:min(len(all), maxSimilar)] {
		names = append(names, each.name)
	}
	return names, listed
}
