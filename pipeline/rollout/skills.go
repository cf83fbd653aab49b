package rollout

import (
	"context"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// Skills are those of one episode. Its tools find them among their services.
type Skills interface {
	// Has says whether the draw gave the episode the run's skills. Without them it has no tools for skills, either.
	Has() bool
	// Begin chooses the skills that suit the toolsets, and returns the end of the system message, which lists them.
	Begin(toolsets []string) string
	// Furnish puts them into the sandbox when it has been opened.
	Furnish(ctx context.Context, box sandbox.Sandbox) error
	// Trace is what the row keeps, when the episode has ended with these calls.
	Trace(calls []episode.ToolCall) *episode.Skills
}

// skillsToolset has the tools that are for skills, and skillTool is the one without which an episode cannot read any.
const (
	skillsToolset = "skills"
	skillTool     = "skill_view"
)
