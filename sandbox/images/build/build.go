// Package build makes images of Dockerfiles, without an engine: what a command of a RUN changes in a sandbox becomes a layer.
//
// A layer's name is a hash of what it is made from: of the layers below, the instruction, the variables that it sees, and the
// content of the files that it copies. So equal steps of all Dockerfiles share layers, and a layer that is there is not made again. The image
// store makes each layer once, also for several runners, and never shows half of one.
package build

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/images"
)

// Source is a Dockerfile, and what it is built with.
type Source struct {
	Dir        string            // holds the files that can be copied
	Dockerfile string            // its path in Dir; "" is Dockerfile
	Args       map[string]string // values of ARG
	Target     string            // the stage that is wanted; "" is the last
}

// File is the Dockerfile's path in Dir.
func (s Source) File() string { return cmp.Or(s.Dockerfile, "Dockerfile") }

// Path is the Dockerfile's path.
func (s Source) Path() string { return s.Dir + "/" + s.File() }

// Engine is what builds images itself, where native sandboxes cannot run.
type Engine interface {
	// BuildImage builds a Dockerfile, whose commands reach a network that the engine has, and returns the engine's reference to
	// the image. The error wraps an *Error, unless ctx ended.
	BuildImage(ctx context.Context, source Source, network sandbox.Network) (reference string, err error)
}

// Options configure a builder. Store and Open are required, or Engine.
type Options struct {
	Store *images.Store
	// Open opens the native backend, with images that the builder knows.
	Open   func(sandbox.ImageStore) (sandbox.Backend, error)
	Engine Engine
	// Network is what commands can reach, and Allow goes with NetworkAllowlist. "" is the allow list Packages.
	Network sandbox.Network
	Allow   []string
	Map     map[string]string // reference of a base image → another one that is taken instead
	Secrets map[string][]byte // for RUN --mount=type=secret, by id
	// Parallel is how many images are built at once. 0 is 2.
	Parallel int
	// MaxBytes bounds all layers of builds in the store, as far as no run uses them. 0 is 64 GiB.
	MaxBytes int64
	Limits   sandbox.Limits // of the commands; zero values are the builder's own
	// Now returns the time, for the log.
	Now func() time.Time
	// Logger receives the beginning and the end of each build, and its steps. Nil logs nothing.
	Logger *slog.Logger
}

// Image is an image that was built.
type Image struct {
	Reference string // as the store knows it: built:DIGEST; or as Options.Engine does
	Digest    string
	Layers    int // of the instructions, without those of the base
	Made      int // of them; the others were there
}

// Packages are the sites that commands of a build can reach by default: where systems and languages have their packages, with
// the pages that install scripts usually come from.
var Packages = []string{
	"*.debian.org", "*.ubuntu.com", "*.alpinelinux.org", "*.fedoraproject.org", "*.archlinux.org", "pypi.org", "files.pythonhosted.org",
	"registry.npmjs.org", "registry.yarnpkg.com", "nodejs.org", "*.nodesource.com", "crates.io", "*.crates.io", "*.rust-lang.org",
	"proxy.golang.org", "sum.golang.org", "go.dev", "dl.google.com", "rubygems.org", "*.rubygems.org", "repo.maven.apache.org",
	"repo1.maven.org", "*.gradle.org", "cran.r-project.org", "*.anaconda.com", "conda.anaconda.org", "astral.sh",
	"github.com", "*.github.com", "*.githubusercontent.com",
}

// Reasons of an Error, by which failed builds are counted.
const (
	Parse       = "dockerfile"  // the Dockerfile cannot be read
	Unsupported = "unsupported" // an instruction that this builder does not have
	FromImage   = "base image"  // an image cannot be had
	Copy        = "files"       // what is copied is not there
	Command     = "command"     // a command of a RUN failed
	Network     = "network"     // the same, and what it wanted to reach was refused or did not answer; or a URL that is not allowed
	Download    = "download"    // a URL of an ADD
	Platform    = "platform"    // it is for machines of another kind
	Machine     = "machine"     // the sandbox or the store failed
)

// Error is why a build failed.
type Error struct {
	Dockerfile  string
	Line        int // of the instruction; 0 is the Dockerfile as a whole
	Instruction string
	Reason      string // one of the constants
	Output      string // the end of what the command printed
	Err         error
}

// Error names the place, and ends with what the command printed.
func (e *Error) Error() string {
	text := e.Dockerfile
	if e.Line > 0 {
		text = fmt.Sprintf("%s:%d", text, e.Line)
	}
	if e.Instruction != "" {
		text += ": " + shorten(e.Instruction)
	}
	text += ": " + e.Err.Error()
	if output := strings.TrimSpace(e.Output); output != "" {
		text += "\n" + output
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// shorten is the first line of an instruction, cut where it is long.
func shorten(instruction string) string {
	const most = 120
	line, rest, _ := strings.Cut(instruction, "\n")
	if len(line) > most {
		line, rest = strings.ToValidUTF8(line[:most], ""), "…"
	}
	if rest != "" {
		line += " …"
	}
	return line
}
