package rollout

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/registry"
)

// schemaRefused is the class of a request that the server refused for the schema of a tool, and that was made again.
const schemaRefused = "schema_refused"

// plainer is the registry as the model's server takes it: the run's own until the server refuses the schema of a tool,
// which is then shown without what the server named, for the rest of the run.
type plainer struct {
	mu       sync.Mutex // guards registry
	registry *registry.Registry
}

// shown is the registry that episodes choose their tools from.
func (p *Player) shown() *registry.Registry {
	p.plainer.mu.Lock()
	defer p.plainer.mu.Unlock()
	if p.plainer.registry == nil {
		p.plainer.registry = p.Registry
	}
	return p.plainer.registry
}

// without leaves out what the server complains of, unless that was done since used was chosen. It returns whether
// there is now less to complain of.
func (p *Player) without(used *registry.Registry, complaint string) bool {
	p.plainer.mu.Lock()
	defer p.plainer.mu.Unlock()
	had := used.Quirks() // used may have tools of its task beside the run's
	if !slices.Equal(had, p.plainer.registry.Quirks()) {
		return true
	}
	more := slices.DeleteFunc(registry.QuirksFor(complaint), func(name string) bool { return slices.Contains(had, name) })
	if len(more) == 0 {
		return false
	}
	all := slices.Concat(had, more)
	p.plainer.registry = p.plainer.registry.WithQuirks(all)
	if p.Logger != nil {
		p.Logger.Warn("the server refuses a tool's schema; for the rest of the run tools are shown without what it named",
			"schema_quirks", strings.Join(p.plainer.registry.Quirks(), ", "), "said", complaint)
	}
	return true
}

// refused deals with a first request that the server refused for the schema of a tool: the tools are shown plainer, and
// the request can be made again. Later requests have shown the same tools before, so the schemas are not why they failed.
func (a *attempt) refused(turn int, err error) (episode.Fault, bool) {
	var failed *model.Error
	if turn > 0 || !errors.As(err, &failed) || failed.Class != model.ClassBadRequest && failed.Class != model.ClassServer {
		return episode.Fault{}, false
	}
	if !a.without(a.kit.registry, failed.Message) {
		return episode.Fault{}, false
	}
	if a.kit.choose() != nil {
		return episode.Fault{}, false
	}
	a.kit.session.Close() // no call was made
	a.kit.start()
	return episode.Fault{Outcome: episode.ModelError, Class: schemaRefused, Message: failed.Message}, true
}
