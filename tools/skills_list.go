package tools

import (
	"context"
	"encoding/json"
	"slices"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools/skills"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "skills_list", Toolset: skillsToolset, NoSandbox: true, Script: true,
		Description: "Lists the skills: folders of instructions, and scripts, for particular kinds of work, each with a sentence about " +
			"what it is for. skill_view reads one.",
		Access: func(json.RawMessage) registry.Access { return registry.Access{} },
	}, skillsList))
}

type skillsListArgs struct {
	Category string `json:"category,omitempty" doc:"Only the skills of this category."`
}

type skillLine struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Category    string `json:"category"`
}

type skillsListResult struct {
	Success    bool        `json:"success"`
	Skills     []skillLine `json:"skills"`
	Categories []string    `json:"categories"`
	Count      int         `json:"count"`
	Hint       string      `json:"hint"`
}

func skillsList(_ context.Context, env *registry.Env, args skillsListArgs) (any, error) {
	view, err := skillsOf(env)
	if err != nil {
		return nil, err
	}
	result := skillsListResult{Success: true, Skills: []skillLine{}, Categories: []string{}, Hint: "skill_view reads a skill"}
	for _, s := range view.List("") {
		if category := skills.CategoryOf(s); !slices.Contains(result.Categories, category) {
			result.Categories = append(result.Categories, category)
		}
	}
	slices.Sort(result.Categories)
	var listed skillUse
	for i, s := range view.List(args.Category) {
		result.Skills = append(result.Skills, skillLine{s.Name, s.Description, skills.CategoryOf(s)})
		listed.Events = append(listed.Events, episode.SkillEvent{
			Kind: episode.SkillListed, Skill: s.Name, Digest: s.Digest(), Bytes: int64(s.Size()), Rank: i + 1,
		})
	}
	env.Source = listed
	if result.Count = len(result.Skills); result.Count == 0 {
		result.Hint = "you have no skill yet; skill_manage makes one"
	}
	return result, nil
}

// skillsOf is what the episode has of skills.
func skillsOf(env *registry.Env) (*skills.View, error) {
	if own, ok := registry.Service[Skills](env.Session); ok && own.Has() {
		return own.View, nil
	}
	return nil, registry.Failf("no_skills", "this episode has no skills")
}

// findSkill finds the one skill that a name means. Its failure is an event, too.
func findSkill(env *registry.Env, view *skills.View, name string) (*skills.Skill, error) {
	found := view.Find(name)
	if len(found) == 1 {
		return found[0], nil
	}
	names := func(list []*skills.Skill) (all []string) {
		for _, s := range list {
			all = append(all, skills.Qualified(s))
		}
		return all
	}
	failure := registry.Failf("not_found", "skill %.100q does not exist; skills_list lists them", name)
	if len(found) > 1 {
		failure = registry.Failf("ambiguous", "%d skills are called %s: give the category, too", len(found), name)
		failure.Extra = map[string]any{"success": false, "matches": names(found)}
	} else {
		failure.Extra = map[string]any{"success": false, "available_skills": names(view.List(""))}
	}
	return nil, refuseSkill(env, name, "", failure)
}

// skillUse is the source of a call of these tools: what it did with which skills.
type skillUse struct {
	Events []episode.SkillEvent `json:"skill_events"`
}

func useSkill(env *registry.Env, kind string, s *skills.Skill, file string) {
	e := episode.SkillEvent{Kind: kind, Skill: s.Name, File: file, Digest: s.Digest(), Bytes: int64(s.Size())}
	if file != "" {
		e.Digest, e.Bytes = s.FileDigest(file), int64(len(s.Files[file]))
	}
	env.Source = skillUse{[]episode.SkillEvent{e}}
}

// maxEventName bounds what a model called a skill or a file, in characters.
const maxEventName = 200

// refuseSkill notes that a call was refused.
func refuseSkill(env *registry.Env, name, file string, why error) error {
	env.Source = skillUse{[]episode.SkillEvent{{
		Kind: episode.SkillRefused, Skill: episode.Head(name, maxEventName), File: episode.Head(file, maxEventName),
	}}}
	return why
}
