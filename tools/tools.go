// Package tools has the built-in tools, one file each: the terminal and its processes, the file tools, execute_code, and those
// of the agent itself: todo, memory, session_search, clarify.
//
// Every tool acts in the episode's sandbox or on the episode's own state, never on the host, and its results do not depend on
// time or chance: they have no process numbers, durations or dates. The same calls in a fresh sandbox give the same bytes;
// timing belongs in the trace.
package tools

import (
	"cmp"
	"slices"

	"trajgen/registry"
)

var builtin []registry.Tool

func add(tool registry.Tool) { builtin = append(builtin, tool) }

// Builtin returns the built-in tools and, as unavailable, the planned ones, sorted by name. The set never depends on the
// machine.
func Builtin() []registry.Tool {
	tools := slices.Concat(builtin, plannedTools())
	slices.SortFunc(tools, func(a, b registry.Tool) int { return cmp.Compare(a.Name, b.Name) })
	return tools
}

// The toolsets of the built-in tools.
const (
	terminalToolset   = "terminal"
	fileToolset       = "file"
	codeToolset       = "code_execution"
	todoToolset       = "todo"
	memoryToolset     = "memory"
	clarifyToolset    = "clarify"
	searchToolset     = "session_search"
	delegationToolset = "delegation"
	webToolset        = "web"
	crawlToolset      = "crawl"
	corpusToolset     = "corpus"
	browserToolset    = "browser"
	cdpToolset        = "browser-cdp"
	moreToolset       = "browser-more"
	skillsToolset     = "skills"
)
