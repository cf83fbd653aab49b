package harbor

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/moby/patternmatcher"

	"trajgen/sandbox"
)

// dockerfile is a parsed Dockerfile that needs no build engine: its base image is used unchanged.
type dockerfile struct {
	task *task
	name string
	environment
	staged  int               // copies to places that are not below the working directory
	args    map[string]string // declared before and after FROM
	workdir string            // so far; "" is the image's
	dirs    map[string]bool   // that are known to be directories
	copies  []copied
	ignore  *patternmatcher.PatternMatcher

	expanded int // bytes of texts with variables
}

// copied is a file in the place that it has in the machine: absolute, or relative to the image's working directory.
type copied struct {
	to   string
	name string // by itself, where it comes from
	mode string // octal, "" is the file's own
	file file
}

// instruction is one of a Dockerfile, with its continued lines.
type instruction struct {
	line int
	name string // upper case
	rest string
}

// build is advice about a Dockerfile that needs a build engine.
const build = "needs an engine to build it: build the image (docker build -t NAME environment), and name it in task.toml under [environment] as docker_image"

// dockerfile reads a Dockerfile whose instructions place files and say how the image is used. The working directory of
// the sandbox, when task.toml names one, need not be the Dockerfile's.
func (t *task) dockerfile(name, cwd string) environment {
	d := &dockerfile{task: t, name: name, args: map[string]string{}, dirs: map[string]bool{"/": true}}
	d.env, d.from = map[string]string{}, name
	d.ignore = t.ignores(buildContext + "/.dockerignore")
	list, err := instructions(t.text(name))
	if err != nil {
		t.wrongf("%s: %v", name, err)
	}
	building := 0
	for _, in := range list {
		if in.name == "RUN" {
			if building++; building == 1 {
				t.wrongf("%s:%d: RUN %s", name, in.line, build)
			}
			continue
		}
		if err := d.apply(in); err != nil {
			t.wrongf("%s:%d: %s: %v", name, in.line, in.name, err)
		}
	}
	if d.image == "" && len(list) > 0 {
		t.wrongf("%s: no image in FROM", name)
	}
	if d.cwd = d.workdir; path.IsAbs(cwd) {
		d.cwd = path.Clean(cwd)
	}
	d.place()
	return d.environment
}

// instructions splits a Dockerfile.
func instructions(text string) (list []instruction, err error) {
	var open *instruction
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "#") {
			if directive := strings.ReplaceAll(strings.ToLower(trimmed), " ", ""); strings.HasPrefix(directive, "#escape=") && directive != `#escape=\` {
				return nil, fmt.Errorf("%d: an escape character other than \\ is not understood", i+1)
			}
			continue // also between the lines of an instruction
		}
		if trimmed == "" {
			continue
		}
		more := strings.HasSuffix(trimmed, `\`)
		part := strings.TrimSuffix(trimmed, `\`)
		if open == nil {
			name, rest, _ := strings.Cut(part, " ")
			list = append(list, instruction{line: i + 1, name: strings.ToUpper(name)})
			open, part = &list[len(list)-1], rest
		}
		open.rest += " " + part
		if more {
			continue
		}
		open.rest = strings.TrimSpace(open.rest)
		if strings.Contains(open.rest, "<<") {
			if open.name != "RUN" {
				err = fmt.Errorf("%d: text within a Dockerfile (<<) is not understood; put it into a file", open.line)
			}
			return list, err // what follows may be the text
		}
		open = nil
	}
	if open != nil { // its last line says that another follows
		open.rest = strings.TrimSpace(open.rest)
	}
	return list, nil
}

func (d *dockerfile) apply(in instruction) error {
	if d.image == "" && in.name != "FROM" && in.name != "ARG" {
		return errors.New("it comes before FROM")
	}
	switch in.name {
	case "FROM":
		return d.base(in.rest)
	case "ARG":
		for _, word := range words(in.rest, white) {
			name, value, given := strings.Cut(word, "=")
			value, err := d.expand(value)
			if err != nil {
				return err
			}
			if _, known := d.args[name]; given || !known {
				d.args[name] = value
			}
		}
	case "WORKDIR":
		dir, err := d.expand(unquote(in.rest))
		if err != nil {
			return err
		}
		if d.workdir, err = d.absolute(dir); err != nil {
			return err
		}
		d.dirs[d.workdir] = true
	case "ENV":
		return d.variables(in.rest)
	case "COPY", "ADD":
		return d.copy(in)
	case "USER":
		if user, _, _ := strings.Cut(in.rest, ":"); user != "root" && user != "0" {
			return fmt.Errorf("%s, but all commands of a sandbox are its root's", in.rest)
		}
	case "SHELL", "LABEL", "EXPOSE", "CMD", "MAINTAINER", "STOPSIGNAL", "HEALTHCHECK": // of no consequence to a sandbox
	case "ENTRYPOINT", "VOLUME", "ONBUILD":
		return errors.New("it " + build)
	default:
		return errors.New("this instruction is not known")
	}
	return nil
}

func (d *dockerfile) base(rest string) error {
	words := strings.Fields(rest)
	for len(words) > 0 && strings.HasPrefix(words[0], "--platform=") {
		words = words[1:]
	}
	switch {
	case d.image != "":
		return errors.New("a second stage " + build)
	case len(words) != 1 && !(len(words) == 3 && strings.EqualFold(words[1], "AS")):
		return fmt.Errorf("%q, want an image", rest)
	}
	image, err := d.expand(words[0])
	if err != nil {
		return err
	}
	if image == "scratch" || image == "" {
		return errors.New("an empty image has no shell to run a command with")
	}
	d.image = image
	return nil
}

// absolute joins a path to the working directory so far.
func (d *dockerfile) absolute(name string) (string, error) {
	switch {
	case strings.HasPrefix(name, "/"):
		return path.Clean(name), nil
	case d.workdir == "":
		return "", fmt.Errorf("%q is relative to the image's own working directory, which is not known; begin with a WORKDIR that is absolute", name)
	}
	return path.Join(d.workdir, name), nil
}

// variables takes NAME=VALUE pairs, or the old form with one NAME and a value to the end of the line.
func (d *dockerfile) variables(rest string) error {
	pairs := words(rest, white)
	if len(pairs) > 0 && !strings.Contains(pairs[0], "=") {
		name, value, _ := strings.Cut(rest, " ")
		pairs = []string{name + "=" + unquote(strings.TrimSpace(value))}
	}
	added := map[string]string{}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || !sandbox.IsVariable(name) {
			return fmt.Errorf("%q, want NAME=VALUE", pair)
		}
		value, err := d.expand(value)
		if err != nil {
			return err
		}
		added[name] = value
	}
	maps.Copy(d.env, added)
	return nil
}
