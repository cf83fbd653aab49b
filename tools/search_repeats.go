package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/search"
)

// searches are those that the model has made, to notice that it repeats itself.
type searches struct {
	mu         sync.Mutex // guards what follows
	last, turn int        // the last two turns with a search
	made       repeats[search.Args]
}

// The same search gets a warning the third time, and then no results.
const (
	warnSearches     = 2
	withholdSearches = 3
)

const thirdSearch = "the third search in a row that is the same and finds the same: go on with what it found"

// repeated records a search and its results, and returns how many times in a row the model has had these results before.
func (s *searches) repeated(env *registry.Env, args search.Args, found []byte) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != env.Turn {
		s.last, s.turn = s.turn, env.Turn
	}
	if before := s.made[args].turn; before != s.last && before != s.turn {
		delete(s.made, args) // the last search was another one
	}
	return s.made.again(env, args, stampOf(found, sandbox.Info{}), "search_files")
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
	all := registry.State(env.Session, "tools.searches", func() *searches { return &searches{made: repeats[search.Args]{}} })
	switch n := all.repeated(env, args, data); {
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
