package rollout

import (
	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// Skills are those of one episode. Its tools find them among their services.
type Skills interface {
	// Has says whether the draw gave the episode the run's skills. Without them it has no tools for skills, either.
	Has() bool
	// Begin chooses the skills that suit the toolsets, and returns the end of the system message, which lists them.
	Begin(toolsets []string) string
	// Folder is what the sandbox is opened with; nil for nothing.
	Folder() *sandbox.Folder
	// Trace is what the row keeps, when the episode has ended with these calls and these changed files of the folder.
	Trace(calls []episode.ToolCall, changed []string) *episode.Skills
}

// skillsToolset has the tools that are for skills, and skillTool is the one without which an episode cannot read any.
const (
	skillsToolset = "skills"
	skillTool     = "skill_view"
)
