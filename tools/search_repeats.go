package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"trajgen/registry"
	"trajgen/tools/page"
	"trajgen/tools/search"
)

// searches are those of the last two turns with a search, to notice a model that repeats itself.
type searches struct {
	mu            sync.Mutex // guards what follows
	before, those turnSearches
}

type turnSearches struct {
	turn int
	made map[search.Args]madeSearch
}

type madeSearch struct {
	sum     uint32 // of the results
	shown   shown
	repeats int
}

// The same search gets a warning the third time, and then no results.
const (
	warnSearches     = 2
	withholdSearches = 3
)

const thirdSearch = "the third search in a row that is the same and finds the same: go on with what it found"

// repeated records a search and its results, and returns how many times in a row the model has had these results before, if
// they are still in the conversation. Calls of one turn do not count, as they may run in any order.
func (s *searches) repeated(env *registry.Env, args search.Args, sum uint32) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.those.made == nil || s.those.turn != env.Turn {
		s.before, s.those = s.those, turnSearches{env.Turn, map[search.Args]madeSearch{}}
	}
	made := madeSearch{sum: sum, shown: shownBy(env)}
	last, ok := s.before.made[args]
	if ok && last.sum == sum && last.shown.still(env.Session) && !env.Session.CalledBetween(s.before.turn, env.Turn, "search_files") {
		if made.repeats = last.repeats + 1; made.repeats >= withholdSearches {
			made.shown = last.shown
		}
	}
	s.those.made[args] = made
	return made.repeats
}

// stopRepeating adds a warning to results that the model has got twice, and withholds them after that.
func stopRepeating(env *registry.Env, args search.Args, found *search.Found) error {
	if env.Parent != "" { // the model does not see what a script finds
		return nil
	}
	data, err := json.Marshal(found)
	if err != nil {
		return fmt.Errorf("encode what was found: %w", err)
	}
	all := registry.State(env.Session, "tools.searches", func() *searches { return &searches{} })
	switch n := all.repeated(env, args, page.Sum(data)); {
	case n == warnSearches:
		found.Warning = strings.TrimPrefix(found.Warning+"; "+thirdSearch, "; ")
	case n >= withholdSearches:
		return &registry.Failure{
			Class: "repeated", Message: fmt.Sprintf("BLOCKED: you have made this search %d times in a row, and it finds the same; "+
				"go on with what it found, or search for something else", n+1),
			Extra: map[string]any{"repeats": n + 1},
		}
	}
	return nil
}
