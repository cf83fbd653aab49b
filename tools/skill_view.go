package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/skills"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "skill_view", Toolset: skillsToolset, Script: true,
		Description: "Reads a skill: its instructions, and which files it has; or with file_path one of these files. The skill's folder " +
			"lies in the sandbox at skill_dir, so that its scripts can be run there; nothing but skill_manage changes a skill.",
		Access: func(json.RawMessage) registry.Access { return registry.Access{} },
	}, skillView))
}

type skillViewArgs struct {
	Name     string `json:"name" alias:"skill,skill_name" doc:"The skill; CATEGORY/NAME if several have the name."`
	FilePath string `json:"file_path,omitempty" alias:"file,path" doc:"A file of the skill, such as references/api.md."`
}

type skillViewResult struct {
	Success      bool                `json:"success"`
	Name         string              `json:"name"`
	Description  string              `json:"description"`
	Tags         []string            `json:"tags"`
	Related      []string            `json:"related_skills"`
	AllowedTools []string            `json:"allowed_tools,omitempty"`
	LackingTools []string            `json:"missing_tools,omitempty"` // of those, what the episode does not have
	Content      string              `json:"content"`
	Path         string              `json:"path"`
	Dir          string              `json:"skill_dir"`
	Files        map[string][]string `json:"linked_files"`
	Hint         string              `json:"usage_hint,omitempty"`
	Variables    []string            `json:"required_environment_variables"`
	Missing      []string            `json:"missing_required_environment_variables"`
	SetupNeeded  bool                `json:"setup_needed"`
	Readiness    string              `json:"readiness_status"`
}

func skillView(ctx context.Context, env *registry.Env, args skillViewArgs) (any, error) {
	view, err := skillsOf(env)
	if err != nil {
		return nil, err
	}
	s, err := findSkill(env, view, args.Name)
	if err != nil {
		return nil, err
	}
	if args.FilePath != "" && args.FilePath != skills.Manual {
		return viewFile(env, s, args.FilePath)
	}
	dir, err := view.Dir(s, func() (sandbox.Sandbox, error) { return env.Sandbox(ctx) })
	if err != nil {
		return nil, err
	}
	useSkill(env, episode.SkillViewed, s, "")
	result := skillViewResult{
		Success: true, Name: s.Name, Description: s.Description, Tags: append([]string{}, s.Tags...),
		Related: append([]string{}, s.Related...), AllowedTools: s.AllowedTools, Path: path.Join(dir, skills.Manual), Dir: dir,
		Files: map[string][]string{}, Variables: append([]string{}, s.Variables...), Missing: append([]string{}, view.Variables(s)...),
		Readiness: "available",
	}
	if result.Content, err = expandSkill(ctx, env, s.Body, dir, view.Shell()); err != nil {
		return nil, err
	}
	for _, tool := range s.AllowedTools {
		if name, _, _ := strings.Cut(tool, "("); !env.Session.Toolset().Has(name) {
			result.LackingTools = append(result.LackingTools, name)
		}
	}
	for _, name := range s.Paths() {
		if name != skills.Manual {
			folder, _, in := strings.Cut(name, "/")
			if !in {
				folder = "."
			}
			result.Files[folder] = append(result.Files[folder], name)
			result.Hint = "skill_view with file_path reads a linked file; scripts are run in the sandbox by their path below skill_dir"
		}
	}
	if len(result.Missing) > 0 {
		result.SetupNeeded, result.Readiness = true, "setup_needed"
	}
	return result, nil
}

type skillFileResult struct {
	Success bool   `json:"success"`
	Name    string `json:"name"`
	File    string `json:"file"`
	Content string `json:"content,omitempty"`
	Type    string `json:"file_type,omitempty"`
	Binary  bool   `json:"is_binary,omitempty"`
	Size    int    `json:"size,omitempty"`
}

func viewFile(env *registry.Env, s *skills.Skill, name string) (any, error) {
	if !fs.ValidPath(name) || strings.ContainsAny(name, "\x00\\%") {
		return nil, refuseSkill(env, s.Name, name, registry.Failf("invalid_path",
			"file_path is a path within the skill's folder, such as references/api.md, without .. and escapes"))
	}
	data, ok := s.Files[name]
	if !ok {
		failure := registry.Failf("not_found", "skill %s has no file %.100q", s.Name, name)
		failure.Extra = map[string]any{"success": false, "available_files": s.Paths()}
		return nil, refuseSkill(env, s.Name, name, failure)
	}
	useSkill(env, episode.SkillFile, s, name)
	result := skillFileResult{Success: true, Name: s.Name, File: name}
	if bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) {
		result.Binary, result.Size = true, len(data)
		return result, nil
	}
	result.Content, result.Type = string(data), path.Ext(name)
	return result, nil
}

// skillCommand is a command whose output stands in its place.
var skillCommand = regexp.MustCompile("!`([^`\n]{1,1000})`")

const (
	maxSkillOutput   = 4000
	skillCommandTime = 10 * time.Second
)

// expandSkill fills in the skill's folder, under the names that skills for several systems use, and with shell the commands.
func expandSkill(ctx context.Context, env *registry.Env, text, dir string, shell bool) (string, error) {
	text = strings.NewReplacer("${SKILL_DIR}", dir, "${CLAUDE_SKILL_DIR}", dir, "${HERMES_SKILL_DIR}", dir).Replace(text)
	if !shell || !skillCommand.MatchString(text) {
		return text, nil
	}
	box, err := env.Sandbox(ctx)
	if err != nil {
		return "", err
	}
	text = skillCommand.ReplaceAllStringFunc(text, func(found string) string {
		command := skillCommand.FindStringSubmatch(found)[1]
		limited, cancel := context.WithTimeout(ctx, skillCommandTime)
		defer cancel()
		var ran sandbox.Result
		shell := sandbox.Command{Args: []string{"bash", "-c", command}, Dir: dir}
		if ran, err = sandbox.Run(limited, box, shell, sandbox.RunOptions{Merge: true}); err != nil {
			return fmt.Sprintf("[the command did not run: %v]", err)
		}
		return strings.TrimSpace(episode.Head(strings.ToValidUTF8(string(ran.Stdout.Bytes()), "\uFFFD"), maxSkillOutput))
	})
	return text, ctx.Err()
}
