package rented

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"trajgen/sandbox"
)

// Arch is the setting that NewAgent takes.
var Arch = sandbox.Setting{Name: "arch", Help: "what the machines are: amd64 (the default) or arm64"}

// Agent is the program that serves a sandbox from inside a machine.
type Agent struct {
	Content []byte
	Path    string // in the machine; derived from the content
}

// NewAgent returns the agent for machines of an architecture.
func NewAgent(arch string) (Agent, error) {
	switch arch {
	case "":
		arch = "amd64"
	case "amd64", "arm64":
	default:
		return Agent{}, fmt.Errorf("setting %s: %q is neither amd64 nor arm64", Arch.Name, arch)
	}
	content, err := sandbox.Agent(arch)
	if err != nil {
		return Agent{}, err
	}
	sum := sha256.Sum256(content)
	return Agent{Content: content, Path: "/opt/trajgen/agent-" + hex.EncodeToString(sum[:12])}, nil
}

// Environment returns the variables of a process that come from its image: without those of the process itself and those of the
// service, whose names begin with prefix.
func Environment(environ, prefix string) map[string]string {
	env := map[string]string{}
	for kv := range strings.SplitSeq(environ, "\x00") {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || !variable.MatchString(name) || strings.HasPrefix(name, prefix) || slices.Contains(own, name) {
			continue
		}
		env[name] = value
	}
	return env
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// own are variables of the process itself, and those that a backend sets.
var own = []string{"HOME", "HOSTNAME", "LANG", "LC_CTYPE", "LOGNAME", "OLDPWD", "PWD", "SHELL", "SHLVL", "TERM", "TMPDIR", "TZ", "USER", "_"}
