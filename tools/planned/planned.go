// Package planned holds the tools that toolsets name and that nobody has built yet: name, toolset, description and
// arguments. They exist in every registry, so that toolsets, distributions and the schema of a row do not change when
// one of them is built; until then they are unavailable.
//
// Who builds one takes its struct from here to a file of package tools.
package planned

import (
	"slices"
	"sync"

	"trajgen/registry"
)

// Tools lists them.
func Tools() []registry.Tool { return slices.Clone(all()) }

var all = sync.OnceValue(func() []registry.Tool {
	return slices.Concat(web(), browser(), media(), agent(), skills(), home(), kanban(), chat(), spotify(), training())
})

// entry is a tool whose arguments are A.
func entry[A any](toolset, name, description string, env ...string) registry.Tool {
	return registry.Planned[A](registry.Definition{Name: name, Toolset: toolset, Description: description, RequiresEnv: env})
}

type none struct{}
