package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"trajgen/pipeline/run"
	"trajgen/registry"
	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// Survey says what toolsets need: keys, and sections of a run file.
type Survey struct {
	Keys    []*Key    `json:"keys"`
	Lacking []Lacking `json:"lacking"`
	Free    []string  `json:"free"` // toolsets that need neither
}

// Key is a variable that a service reads. Its value is not in it.
type Key struct {
	Toolset  string `json:"toolset"`
	Service  string `json:"service"`
	Variable string `json:"variable"` // "" for a model's endpoint that takes any key
	Set      bool   `json:"set"`
	RunFile  string `json:"run_file,omitempty"` // the part of a run file that uses the service, where the variable does not suffice
	Result   string `json:"result,omitempty"`   // of a try
	Detail   string `json:"detail,omitempty"`

	declared provider.Key
}

// Lacking are tools of a toolset that cannot be used for a reason.
type Lacking struct {
	Toolset string   `json:"toolset"`
	Tools   []string `json:"tools"`
	Why     string   `json:"why"`
}

// The results of a try.
const (
	Works   = "works"
	Refused = "refused"
	Silent  = "could not be reached"
	Untried = "cannot be tried"
)

// Examine surveys a run file and the environment.
func Examine(f run.File) (Survey, error) {
	reg, err := run.NewRegistry(f)
	if err != nil {
		return Survey{}, err
	}
	all, err := reg.Select([]string{"all"}, nil)
	if err != nil {
		return Survey{}, err
	}
	s := Survey{Keys: []*Key{}, Lacking: []Lacking{}}
	seen := map[[3]string]bool{}
	needs := map[string]bool{}
	for _, declared := range f.Keys(reg) {
		needs[declared.Toolset] = true
		key := Key{
			Toolset: declared.Toolset, Service: declared.Service, Variable: declared.Variable,
			RunFile: strings.NewReplacer("VALUE", "...", "HOST", "...").Replace(declared.Use), Set: os.Getenv(declared.Variable) != "",
		}
		if same := [3]string{key.Toolset, key.Service, key.Variable}; !seen[same] {
			seen[same] = true
			key.declared = declared
			s.Keys = append(s.Keys, &key)
		}
	}
	sets := map[string]bool{}
	for _, tool := range reg.Tools() {
		if tool.Planned() {
			continue
		}
		sets[tool.Toolset] = true
		if why := all.Missing()[tool.Name]; why != "" {
			s.lack(tool, why)
			needs[tool.Toolset] = true
		}
	}
	s.Free = slices.DeleteFunc(slices.Sorted(maps.Keys(sets)), func(name string) bool { return needs[name] })
	return s, nil
}

func (s *Survey) lack(tool registry.Tool, why string) {
	i := slices.IndexFunc(s.Lacking, func(l Lacking) bool { return l.Toolset == tool.Toolset && l.Why == why })
	if i < 0 {
		i = len(s.Lacking)
		s.Lacking = append(s.Lacking, Lacking{Toolset: tool.Toolset, Why: why})
	}
	s.Lacking[i].Tools = append(s.Lacking[i].Tools, tool.Name)
}

// Toolset is what one toolset needs, in words.
type Toolset struct {
	Name          string
	Keys, Lacking []string
}

// Toolsets are the toolsets by name, those that need nothing as one. What sandboxes need, their settings say.
func (s Survey) Toolsets() (all []Toolset) {
	by := map[string]*Toolset{}
	of := func(name string) *Toolset {
		if by[name] == nil {
			by[name] = &Toolset{Name: "toolset " + name}
		}
		if name == "model" { // which no toolset has
			by[name].Name = name
		}
		return by[name]
	}
	for _, key := range s.Keys {
		if !strings.HasPrefix(key.Toolset, "sandbox ") {
			t := of(key.Toolset)
			t.Keys = append(t.Keys, strings.TrimSpace(fmt.Sprintf("%s (%s) %s", cmp.Or(key.Variable, key.RunFile), key.Service, key.State())))
		}
	}
	for _, l := range s.Lacking {
		t := of(l.Toolset)
		t.Lacking = append(t.Lacking, strings.Join(l.Tools, ", ")+": "+l.Why)
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		all = append(all, *by[name])
	}
	return append(all, Toolset{Name: "other toolsets", Keys: []string{strings.Join(s.Free, ", ") + " need neither a key nor a section of the run file"}})
}

const tryTime = 15 * time.Second // of one key

// Try asks the services whose keys are set, each once, and tells what came of it. It ends early with ctx.
func (s Survey) Try(ctx context.Context, tell func(*Key)) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	type asked struct{ service, variable string }
	known := map[asked]*Key{}
	for _, key := range s.Keys {
		if ctx.Err() != nil || !key.Set && (key.Variable != "" || key.declared.Try == nil) {
			continue
		}
		if earlier := known[asked{key.Service, key.Variable}]; earlier != nil {
			key.Result, key.Detail = earlier.Result, earlier.Detail
			continue
		}
		known[asked{key.Service, key.Variable}] = key
		key.try(ctx, transport)
		tell(key)
	}
}

func (k *Key) try(ctx context.Context, transport http.RoundTripper) {
	if k.declared.Try == nil {
		k.Result, k.Detail = Untried, "no harmless request shows whether it is taken"
		return
	}
	late := source.Errorf(source.Outage, source.Unavailable, "no answer within %s", tryTime)
	ctx, cancel := context.WithTimeoutCause(ctx, tryTime, late)
	defer cancel()
	err := k.declared.Try(ctx, provider.Config{Key: os.Getenv(k.Variable), Transport: transport, Now: time.Now})
	if err == nil {
		k.Result = Works
		return
	}
	k.Result, k.Detail = Silent, err.Error()
	if failed, ok := errors.AsType[*source.Error](err); ok {
		switch failed.Class {
		case source.Refused:
			k.Result = Refused
		case source.Unsupported:
			k.Result = Untried
		}
	}
}
