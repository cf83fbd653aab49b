package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/skills"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "skill_manage", Toolset: skillsToolset,
		Description: "Makes and changes skills, so that what was learnt can be used again. create writes a new skill from content, a " +
			"whole SKILL.md: front matter with name and description between lines of ---, then the instructions. edit replaces its " +
			"SKILL.md; patch replaces old_string, which must occur once, by new_string in SKILL.md or file_path; write_file and " +
			"remove_file are for files in references, templates, scripts and assets; delete removes the skill.",
	}, skillManage))
}

type skillManageArgs struct {
	Action     string  `json:"action" doc:"What to do." enum:"create,patch,edit,delete,write_file,remove_file"`
	Name       string  `json:"name" alias:"skill,skill_name" doc:"The skill: lower-case letters, digits, '.', '_' and '-', at most 64."`
	Content    string  `json:"content,omitempty" doc:"create and edit: the whole SKILL.md, at most 100,000 characters."`
	OldString  *string `json:"old_string,omitempty" alias:"old_str,old_text" doc:"patch: the text to find."`
	NewString  *string `json:"new_string,omitempty" alias:"new_str,new_text" doc:"patch: what replaces it; empty deletes it."`
	ReplaceAll bool    `json:"replace_all,omitempty" doc:"patch: replace every occurrence." default:"false"`
	Category   string  `json:"category,omitempty" doc:"create: the category."`
	FilePath   string  `json:"file_path,omitempty" alias:"path" doc:"A file of the skill, such as references/api.md."`
	File       *string `json:"file_content,omitempty" doc:"write_file: the file's whole content, at most 1 MiB."`
	Absorbed   string  `json:"absorbed_into,omitempty" doc:"delete: the skill that has its content now."`
}

type skillManageResult struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
	Path    string `json:"path"`
	Diff    string `json:"diff,omitempty"`
}

// The bounds of what an agent writes.
const (
	maxSkillFile = 1 << 20
	maxOwnSkills = 20
)

func skillManage(ctx context.Context, env *registry.Env, args skillManageArgs) (any, error) {
	view, err := skillsOf(env)
	if err != nil {
		return nil, err
	}
	change := skillChange{ctx: ctx, env: env, view: view, args: args}
	if args.Action != "create" {
		if change.was, err = findSkill(env, view, args.Name); err != nil {
			return nil, err
		}
	}
	do := map[string]func() (any, error){
		"create": change.create, "edit": change.edit, "patch": change.patch, "delete": change.remove, "write_file": change.writeFile,
		"remove_file": change.removeFile,
	}[args.Action]
	result, err := do()
	if err != nil {
		return nil, refuseSkill(env, args.Name, args.FilePath, err)
	}
	return result, nil
}

// skillChange is one call.
type skillChange struct {
	ctx  context.Context
	env  *registry.Env
	view *skills.View
	args skillManageArgs
	was  *skills.Skill // nil when the skill is created
}

func (c *skillChange) call() skills.Call {
	return skills.Call{Turn: c.env.Turn, Parent: c.env.Parent, ID: c.env.CallID}
}

func (c *skillChange) create() (any, error) {
	own := 0
	for _, s := range c.view.List("") {
		if s.Name == c.args.Name {
			return nil, refuse("exists", "there is a skill %s already: use edit or patch", s.Name)
		}
		if c.view.Own(s) {
			own++
		}
	}
	if own >= maxOwnSkills {
		return nil, refuse("too_many", "you have written %d skills; delete one first", own)
	}
	if err := skills.CheckName(c.args.Name); err != nil {
		return nil, refuse("invalid_name", "%v", err)
	}
	if c.args.Category != "" && skills.CheckName(c.args.Category) != nil {
		return nil, refuse("invalid_name", "category %.80q: want a name like a skill's", c.args.Category)
	}
	made, err := skills.New(c.args.Name, episode.Files{skills.Manual: episode.File(c.args.Content)}, true)
	if err != nil {
		return nil, refuse("invalid_skill", "content cannot be a SKILL.md: %v", err)
	}
	made.Category = c.args.Category
	return c.keep(episode.SkillCreated, made, skills.Manual, "")
}

func (c *skillChange) edit() (any, error) {
	made, err := c.was.With(skills.Manual, []byte(c.args.Content))
	if err != nil {
		return nil, refuse("invalid_skill", "content cannot be a SKILL.md: %v", err)
	}
	return c.keep(episode.SkillPatched, made, skills.Manual, "")
}

func (c *skillChange) patch() (any, error) {
	name := c.args.FilePath
	if name == "" {
		name = skills.Manual
	}
	data, there := c.was.Files[name]
	switch {
	case !there:
		return nil, c.noFile(name)
	case c.args.OldString == nil || c.args.NewString == nil || *c.args.OldString == "":
		return nil, refuse("missing_argument", "patch needs old_string and new_string")
	}
	file, ok := parseText(data)
	if !ok {
		return nil, refuse("binary_file", "%s is not a text file", name)
	}
	found, err := findReplacement(file, patchArgs{
		Path: name, OldString: c.args.OldString, NewString: c.args.NewString, ReplaceAll: c.args.ReplaceAll,
	})
	if err != nil {
		return nil, err
	}
	_, changed := file.apply(found.edits)
	made, err := c.was.With(name, changed)
	if err != nil {
		return nil, refuse("invalid_skill", "the change would leave no valid SKILL.md: %v", err)
	}
	return c.keep(episode.SkillPatched, made, name, diffOf(name, file.text, found.edits))
}

func (c *skillChange) writeFile() (any, error) {
	name := c.args.FilePath
	switch {
	case c.args.File == nil:
		return nil, refuse("missing_argument", "write_file needs file_path and file_content")
	case len(*c.args.File) > maxSkillFile:
		return nil, refuse("too_large", "file_content has %s bytes, over the limit of %s",
			thousands(len(*c.args.File)), thousands(maxSkillFile))
	}
	if err := c.allowed(name); err != nil {
		return nil, err
	}
	made, err := c.was.With(name, []byte(*c.args.File))
	if err != nil {
		return nil, refuse("invalid_skill", "%v", err)
	}
	if most := maxSkillFile + skills.MaxSize; len(made.Files) > skills.MaxFiles || made.Size() > most {
		return nil, refuse("too_large", "the skill would have more than %d files or %d kB", skills.MaxFiles, most>>10)
	}
	return c.keep(episode.SkillPatched, made, name, "")
}

func (c *skillChange) removeFile() (any, error) {
	name := c.args.FilePath
	if err := c.allowed(name); err != nil {
		return nil, err
	}
	if _, there := c.was.Files[name]; !there {
		return nil, c.noFile(name)
	}
	made, err := c.was.With(name, nil)
	if err != nil {
		return nil, refuse("invalid_skill", "%v", err)
	}
	return c.keep(episode.SkillPatched, made, name, "")
}

func (c *skillChange) noFile(name string) error {
	failure := refuse("not_found", "skill %s has no file %.100q", c.was.Name, name)
	failure.Extra["available_files"] = c.was.Paths()
	return failure
}

// skillFolders may have files that agents write.
var skillFolders = []string{"references", "templates", "scripts", "assets"}

func (c *skillChange) allowed(name string) error {
	folder, rest, _ := strings.Cut(name, "/")
	strange := !fs.ValidPath(name) || strings.ContainsAny(name, "\x00\\%:") || len(name) > maxEventName
	if strange || rest == "" || !slices.Contains(skillFolders, folder) {
		return refuse("invalid_path", "file_path is a path in one of the folders %s, such as references/api.md",
			strings.Join(skillFolders, ", "))
	}
	return nil
}

func (c *skillChange) remove() (any, error) {
	if into := c.args.Absorbed; into != "" {
		if found := c.view.Find(into); len(found) != 1 || found[0] == c.was {
			return nil, refuse("not_found", "absorbed_into names no other skill: %.100q", into)
		}
	}
	box, err := c.env.Sandbox(c.ctx)
	if err != nil {
		return nil, err
	}
	dir, err := c.view.Dir(c.was, func() (sandbox.Sandbox, error) { return box, nil })
	if err == nil && c.view.Own(c.was) { // the run's stays where it lies; episodes are not offered it any more
		err = box.Files().Remove(c.ctx, dir)
	}
	if err != nil {
		return nil, fileFailure(err, "remove", dir)
	}
	c.view.Remove(c.call(), c.was)
	useSkill(c.env, episode.SkillDeleted, c.was, "")
	return skillManageResult{Success: true, Message: "Skill " + c.was.Name + " deleted.", Path: dir}, nil
}

// keep judges what the skill would be, writes the file, and makes it the episode's.
func (c *skillChange) keep(kind string, made *skills.Skill, name, diff string) (any, error) {
	if report := skills.Scan(made); skills.Decide(skills.Agent, report.Verdict, false) != skills.Allow {
		failure := refuse("unsafe_content", "not saved: %s; nothing was changed", report.Findings[0])
		failure.Extra["findings"] = report.Findings
		return nil, failure
	}
	c.view.Name(made)
	box, err := c.env.Sandbox(c.ctx)
	if err != nil {
		return nil, err
	}
	dir := c.view.OwnDir(made, box)
	target := path.Join(dir, name)
	names := []string{name}
	if c.was != nil && !c.view.Own(c.was) {
		names = made.Paths() // of the run's skill, which is not changed, the agent gets a copy
	}
	_, there := made.Files[name]
	if !there {
		err = box.Files().Remove(c.ctx, target)
		names = slices.DeleteFunc(names, func(other string) bool { return other == name })
	}
	for _, each := range names {
		w := skills.Write(path.Join(dir, each), made.Files[each])
		w.Replace = true
		err = errors.Join(err, box.Files().Write(c.ctx, w))
	}
	if err != nil {
		return nil, fileFailure(err, "write", target)
	}
	c.view.Put(c.call(), c.was, made)
	done := map[string]string{episode.SkillCreated: "created", episode.SkillPatched: "changed"}[kind]
	file := name
	if name == skills.Manual || !there {
		file = ""
	}
	useSkill(c.env, kind, made, file)
	return skillManageResult{Success: true, Message: fmt.Sprintf("Skill %s %s.", made.Name, done), Path: target, Diff: diff}, nil
}
