package harbor

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// buildContext is the directory whose files a Dockerfile can copy.
const buildContext = "environment"

var octal = regexp.MustCompile(`^[0-7]{3,4}$`)

// copy takes COPY, and ADD of local files.
func (d *dockerfile) copy(in instruction) error {
	mode := ""
	rest := in.rest
	for strings.HasPrefix(rest, "--") {
		flag, after, _ := strings.Cut(rest, " ")
		rest = strings.TrimSpace(after)
		name, value, _ := strings.Cut(flag, "=")
		switch {
		case name == "--chown" && slices.Contains([]string{"root", "0", "root:root", "0:0"}, value), name == "--link":
		case name == "--chmod" && octal.MatchString(value):
			mode = value
		default:
			return fmt.Errorf("%s %s", flag, build)
		}
	}
	words, err := arguments(rest)
	if err != nil {
		return err
	}
	if len(words) < 2 {
		return fmt.Errorf("%q, want what to copy and where to", in.rest)
	}
	for i := range words {
		if words[i], err = d.expand(words[i]); err != nil {
			return err
		}
	}
	sources, to := words[:len(words)-1], words[len(words)-1]
	intoDir := strings.HasSuffix(to, "/") || to == "." || len(sources) > 1
	if strings.HasPrefix(to, "/") || d.workdir != "" {
		if to, err = d.absolute(to); err != nil {
			return err
		}
	} else if to = path.Clean(to); to == ".." || strings.HasPrefix(to, "../") {
		return fmt.Errorf("%q leads out of the working directory, which is not known", to)
	}
	intoDir = intoDir || d.dirs[to]
	for _, source := range sources {
		if in.name == "ADD" && fetched.MatchString(source) {
			return fmt.Errorf("%s is fetched or unpacked, which %s", source, build)
		}
		if err := d.copySource(source, to, intoDir, mode); err != nil {
			return err
		}
	}
	return nil
}

// fetched are the sources of an ADD that are more than a copy.
var fetched = regexp.MustCompile(`(?i)^(https?://|git@|git://)|\.(tar|tgz|tbz2?|txz|tar\.[a-z0-9]+)$`)

// copySource copies what one source names: files, or what lies in directories.
func (d *dockerfile) copySource(source, to string, intoDir bool, mode string) error {
	pattern := strings.TrimPrefix(path.Clean("/"+source), "/")
	matches := []string{path.Join(buildContext, pattern)}
	if strings.ContainsAny(source, "*?[") {
		var err error
		if matches, err = doublestar.Glob(d.task.files, path.Join(buildContext, pattern), doublestar.WithNoFollow()); err != nil {
			return fmt.Errorf("%q: %w", source, err)
		}
		intoDir = intoDir || len(matches) > 1
	}
	found := false
	for _, match := range matches {
		info, err := fs.Stat(d.task.files, match)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%q is not in %s/", source, buildContext)
		case err != nil:
			return err
		case info.IsDir():
			for _, name := range d.below(match) {
				rel := strings.TrimPrefix(strings.TrimPrefix(name, match), "/")
				if err := d.take(name, path.Join(to, rel), mode); err != nil {
					return err
				}
				found = true
			}
			d.dirs[to] = true
		case d.ignored(match):
		default:
			target := to
			if intoDir {
				target = path.Join(to, path.Base(match))
				d.dirs[to] = true
			}
			if err := d.take(match, target, mode); err != nil {
				return err
			}
			found = true
		}
	}
	if !found {
		return fmt.Errorf("%q names no file in %s/", source, buildContext)
	}
	return nil
}

// below are the files of a directory of the context, but for the ignored.
func (d *dockerfile) below(dir string) (names []string) {
	err := fs.WalkDir(d.task.files, dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !d.ignored(name) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		d.task.wrongf("read %s: %v", dir, err)
	}
	return names
}

func (d *dockerfile) take(name, to, mode string) error {
	f, err := d.task.one(name)
	if err == nil {
		d.copies = append(d.copies, copied{to: to, name: path.Base(name), mode: mode, file: f})
	}
	return err
}

// place sorts the copies into files of the working directory, which is known only now, and others, which the set-up
// moves to where they belong.
func (d *dockerfile) place() {
	d.files = map[string]file{}
	for _, dir := range sortedNames(d.dirs) {
		if strings.HasPrefix(dir, "/") && dir != "/" && dir != d.cwd {
			d.setup = append(d.setup, "mkdir -p "+quote(dir))
		}
	}
	var modes []string
	for _, c := range d.copies {
		mode := c.mode
		if mode == "" && c.file.executable && !strings.HasPrefix(string(c.file.data), "#!") {
			mode = "755"
		}
		rel, inside := c.to, !strings.HasPrefix(c.to, "/")
		switch {
		case inside && d.cwd != "":
			d.task.wrongf("%s: %q is copied before the first WORKDIR, and so to a directory that is not known", d.name, c.to)
			continue
		case !inside && d.cwd == "/":
			rel, inside = strings.TrimPrefix(c.to, "/"), true
		case !inside && d.cwd != "":
			rel, inside = strings.CutPrefix(c.to, d.cwd+"/")
		}
		if inside {
			d.files[rel] = c.file
			if mode != "" {
				modes = append(modes, fmt.Sprintf("chmod %s %s", mode, quote(rel)))
			}
			continue
		}
		// The image may have a directory of that name: then the file goes into it, under its own name.
		d.staged++
		rel = fmt.Sprintf("%s/%d/%s", staging, d.staged, c.name)
		d.files[rel] = c.file
		if mode != "" {
			d.setup = append(d.setup, fmt.Sprintf("chmod %s %s", mode, quote(rel)))
		}
		d.setup = append(d.setup, fmt.Sprintf("mkdir -p %s && mv -f %s %s", quote(path.Dir(c.to)), quote(rel), quote(c.to)))
	}
	if d.staged > 0 {
		d.setup = append(d.setup, "rm -rf "+staging)
	}
	d.setup = append(d.setup, modes...)
}

// staging is where files for other places lie until the set-up moves them.
const staging = ".environment-files"

// ignores are the patterns of a .dockerignore.
func (t *task) ignores(name string) *patternmatcher.PatternMatcher {
	patterns, err := ignorefile.ReadAll(strings.NewReader(t.text(name)))
	matcher, err2 := patternmatcher.New(patterns)
	if err := errors.Join(err, err2); err != nil {
		t.wrongf("%s: %v", name, err)
		return &patternmatcher.PatternMatcher{}
	}
	return matcher
}

// ignored says whether a file of the context is left out.
func (d *dockerfile) ignored(name string) bool {
	ignored, err := d.ignore.MatchesOrParentMatches(strings.TrimPrefix(name, buildContext+"/"))
	if err != nil {
		d.task.wrongf("%s/.dockerignore: %v", buildContext, err)
	}
	return ignored
}
