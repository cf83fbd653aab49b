package rented

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/agent"
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

// Environment returns the variables of a process that come from its image, without those of the service, whose names begin with
// prefix.
func Environment(environ, prefix string) map[string]string {
	return agent.Environment(environ, func(name, _ string) bool { return strings.HasPrefix(name, prefix) })
}
