package harbor

import (
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"strings"
)

// collected is what a verifier in another image always gets.
const collected = "/logs/artifacts"

// artifact is a path, or a table with one as its source.
type artifact string

func (a *artifact) UnmarshalJSON(data []byte) error {
	var table struct{ Source *artifact }
	if table.Source = a; data[0] == '{' {
		return json.Unmarshal(data, &table)
	}
	return json.Unmarshal(data, (*string)(a))
}

// verifier is where a check runs, as a row says it: in a fork of the agent's sandbox with a network of its own, or with the files
// that the agent left in another image. It is empty for all that a row's default is. dir holds the Dockerfile, if there is one.
func (c *config) verifier(t *task, p part, dir string) map[string]any {
	v := map[string]any{}
	mode, allow := c.Environment.reach(t, "environment", p.network)
	if p.Place != "separate" {
		if p.Environment != nil || len(c.Artifacts) > 0 {
			t.wrongf("%s: artifacts and verifier.environment only go with environment_mode separate", configName)
		}
		if agentMode, agentAllow := c.network(t); mode != agentMode || strings.Join(allow, ",") != strings.Join(agentAllow, ",") {
			v["network"] = mode
			if len(allow) > 0 {
				v["allow"] = allow
			}
		}
		return v
	}
	own, image, build := c.Environment, c.made.image, c.made.build
	if p.Environment != nil {
		own = *p.Environment
		mode, allow = own.reach(t, "verifier.environment", p.network)
		image, build = own.Image, nil
	}
	switch {
	case t.composeFile(dir) != "":
		t.wrongf("%s: a verifier here is one machine: want a Dockerfile", t.composeFile(dir))
	case p.Environment != nil && own.Image != "":
	case t.has(path.Join(dir, "Dockerfile")):
		image, build = "", t.build(dir, "Dockerfile")
	case image == "" && build == nil:
		image, build = c.made.image, c.made.build
	}
	v["network"], v["artifacts"] = mode, c.artifacts()
	maps.Copy(v, own.resources())
	switch {
	case image != "":
		v["image"] = image
	case build != nil:
		v["build"] = build
	default:
		t.wrongf("%s: a verifier with environment_mode separate has no image: want verifier.environment.docker_image, or %s/Dockerfile", configName, dir)
	}
	if len(allow) > 0 {
		v["allow"] = allow
	}
	return v
}

// artifacts are the files that a verifier in another image gets.
func (c *config) artifacts() []string {
	all := []string{collected}
	for _, a := range c.Artifacts {
		if at := path.Clean(string(a)); at != collected && !strings.HasPrefix(at, collected+"/") {
			all = append(all, string(a))
		}
	}
	return all
}

// variables are those of a part's verifier, with those of its own environment.
func (p part) variables() map[string]string {
	env := map[string]string{}
	if p.Environment != nil {
		maps.Copy(env, p.Environment.Env)
	}
	maps.Copy(env, p.Env)
	return env
}

// merged is a step's own verifier over the task's.
func merged(whole, own part) part {
	env := map[string]string{}
	maps.Copy(env, whole.Env)
	maps.Copy(env, own.Env)
	return part{
		Seconds: cmp.Or(own.Seconds, whole.Seconds), Each: cmp.Or(own.Each, whole.Each), Env: env, network: whole.network,
		Place: cmp.Or(own.Place, whole.Place), Environment: cmp.Or(own.Environment, whole.Environment),
	}
}
