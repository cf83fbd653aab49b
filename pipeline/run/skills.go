package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
	"trajgen/tools/skills"
	"trajgen/tools/skills/hub"
)

// SkillsHub is the folder that trajgen skills install keeps skills in.
func SkillsHub() string { return filepath.Join(StateDir(), "skills") }

// OpenSkills reads the skills of the settings.
func OpenSkills(settings skills.Settings, warn func(string)) (_ *skills.Set, err error) {
	var sources []skills.Source
	for _, dir := range settings.Dirs {
		if dir == skills.BundledDir {
			sources = append(sources, skills.Source{Name: dir, Files: skills.Bundled(), Trust: skills.Builtin})
			continue
		}
		if dir == skills.HubDir {
			dir = SkillsHub()
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, fmt.Errorf("skills: %w", err)
		}
		defer root.Close()
		source := skills.Source{Name: dir, Files: root.FS(), Trust: skills.Trusted}
		lock, err := (&hub.Hub{Dir: dir}).Lock()
		if err != nil {
			return nil, fmt.Errorf("skills: %w", err)
		}
		if len(lock.Skills) > 0 { // a hub, of which nothing else is used than what was judged
			source.Check = lock.Check
		}
		sources = append(sources, source)
	}
	return skills.Open(settings, sources, warn)
}

// openSkills opens the run's skills, and leaves out the tools for them in a run without any.
func (e *Experiment) openSkills(context.Context) (err error) {
	if !e.File.Skills.Given() {
		e.Registry = without(e.Registry, "skills", "the run has no skills: name some with --skills, or skills: {dirs: [...]} in its run file")
		return nil
	}
	e.skills, err = OpenSkills(e.File.Skills, func(line string) { fmt.Fprintln(e.warnings, line) })
	e.parts.Skills = e.skills.Digest()
	return err
}

// skillsOf are the skills of an episode; nil in a run without any.
func (e *Experiment) skillsOf(task *episode.Task, ep *episode.Episode) rollout.Skills {
	root := ep.Key
	root.Path = "" // a subagent has what its root has
	view := e.skills.View(skills.ViewConfig{Rand: root.Rand("skills"), Guarantees: e.Backend.Guarantees(), Env: task.Env})
	if view == nil { // a nil view would make a non-nil interface
		return nil
	}
	return tools.Skills{View: view}
}

// CallSkills are the skills of calls outside of a run: those of the run file, or else those that come along.
func CallSkills(settings skills.Settings, g sandbox.Guarantees, set *registry.Toolset, warn func(string)) (tools.Skills, error) {
	if !settings.Given() {
		settings.Dirs = []string{skills.BundledDir}
	}
	settings.Mode, settings.Share = skills.With, 0
	all, err := OpenSkills(settings, warn)
	if err != nil {
		return tools.Skills{}, err
	}
	view := all.View(skills.ViewConfig{Guarantees: g})
	view.Begin(set.Toolsets())
	return tools.Skills{View: view}, nil
}
