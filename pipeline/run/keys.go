package run

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/web/provider"
)

// Keys are the variables of the environment that what the run file names may read, and those of the services that it could name.
func (f *File) Keys(reg *registry.Registry) []provider.Key {
	all := f.modelKeys()
	add := func(toolset, service string, variables ...string) {
		for _, name := range variables {
			if name != "" && !slices.ContainsFunc(all, func(key provider.Key) bool { return key.Variable == name }) {
				all = append(all, provider.Key{Toolset: toolset, Service: service, Variable: name})
			}
		}
	}
	for section := range sections[interface{ Keys() []provider.Key }](f) {
		all = append(all, section.Keys()...)
	}
	for about, field := range fieldsOf(reflect.ValueOf(f).Elem()) {
		if about.Tag.Get("section") == "" {
			continue
		}
		if section, ok := field.Addr().Interface().(interface{ Variables() []string }); ok {
			key := keyOf(about)
			add(key, "section "+key, section.Variables()...)
		}
	}
	for _, tool := range reg.Tools() {
		add(tool.Toolset, tool.Name, tool.RequiresEnv...)
	}
	for _, name := range sandbox.Names() {
		for _, s := range sandbox.Kinds()[name].Settings {
			if s.Secret {
				add("sandbox "+name, s.Name, s.Env)
			}
		}
	}
	return all
}

// modelKeys are the keys of endpoints that can be tried: that of the agent's model, with a key or without, and those of models
// beside it.
func (f *File) modelKeys() []provider.Key {
	own := provider.Key{Toolset: "model", Service: baseURL(f.Model), Variable: f.Model.APIKeyEnv}
	if own.Variable == "" && isOpenAI(own.Service) {
		own.Variable = usualKey
	}
	own.Try = tryModel(own.Service, own.Variable, f.Model.Headers, f.Model.HeaderEnv)
	all := []provider.Key{own}
	add := func(base, variable string) {
		if base = cmp.Or(base, baseURL(f.Model)); variable != "" {
			all = append(all, provider.Key{Toolset: "model", Service: base, Variable: variable, Try: tryModel(base, variable, nil, nil)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Model.HeaderEnv)) {
		all = append(all, provider.Key{Toolset: "model", Service: "header " + name, Variable: f.Model.HeaderEnv[name]})
	}
	for _, m := range f.Sweep.Model {
		add(m.BaseURL, m.APIKeyEnv)
	}
	for _, m := range f.Model.Fallbacks {
		add(m.BaseURL, m.APIKeyEnv)
	}
	add(f.User.BaseURL, f.User.APIKeyEnv)
	add(f.Context.SummaryBaseURL, f.Context.SummaryAPIKeyEnv)
	add(f.Web.Summary.BaseURL, f.Web.Summary.APIKeyEnv)
	add(f.Commands.ApproverBaseURL, f.Commands.ApproverAPIKeyEnv)
	add(f.Media.VisionBaseURL, f.Media.VisionAPIKeyEnv)
	for _, m := range f.MOA.All() {
		add(m.BaseURL, m.APIKeyEnv)
	}
	return all
}

// tryModel asks an endpoint for its models, or OpenRouter, whose list is for all, for the key. The headers are the
// agent's endpoint's, whose secrets are for it alone.
func tryModel(base, variable string, headers, headerEnv map[string]string) provider.Try {
	return func(ctx context.Context, c provider.Config) (err error) {
		r := provider.Request{Method: http.MethodGet, Path: "/models"}
		if at, err := url.Parse(base); err == nil && at.Hostname() == "openrouter.ai" {
			r.Path = "/key"
		}
		if r.Header, _, err = secretHeaders(headers, headerEnv); err != nil {
			return err
		}
		c.Name, c.BaseURL = "the model's endpoint", base
		client := provider.NewClient(provider.ClientConfig{Config: c, Variable: variable, Auth: "Authorization:Bearer "})
		_, err = client.Send(ctx, r)
		return err
	}
}

// MaskVariable is the variable with the names, with commas between, of those that a file of keys has set. It is in the environment
// as they are, so that processes that inherit them know, too.
const MaskVariable = "TRAJGEN_KEYS"

// Secrets are the values that are masked in results, each named by its variable.
func (f *File) Secrets(reg *registry.Registry) *registry.Secrets {
	values := map[string]string{}
	for _, key := range f.Keys(reg) {
		if !key.Public {
			values[key.Variable] = os.Getenv(key.Variable)
		}
	}
	for name := range strings.SplitSeq(os.Getenv(MaskVariable), ",") {
		values[name] = os.Getenv(name)
	}
	return registry.NewSecrets(values)
}
