package episode

// Skills are what an episode had of its run's skills, and what became of them.
type Skills struct {
	Mode   string       `json:"mode"`  // with or without
	LogP   float64      `json:"log_p"` // natural logarithm of that draw's probability; 0 when nothing was drawn
	Events []SkillEvent `json:"events,omitempty"`
	// Written are the files of skills that the agent made or changed, as they were at the end.
	Written Files `json:"written,omitempty"`
}

// SkillEvent is a use of a skill.
type SkillEvent struct {
	Turn   int    `json:"turn"`
	Kind   string `json:"kind"`
	Skill  string `json:"skill"`
	File   string `json:"file,omitempty"`   // of the skill's folder
	Digest string `json:"digest,omitempty"` // of the file, or else of the skill
	Bytes  int64  `json:"bytes,omitempty"`  // likewise
	Rank   int    `json:"rank,omitempty"`   // position in a list, from 1
}

// The kinds of skill events.
const (
	SkillOffered = "offered" // its description stands in the system message
	SkillListed  = "listed"  // by skills_list, for the first time
	SkillViewed  = "viewed"  // its SKILL.md
	SkillFile    = "file"    // another file of it
	SkillScript  = "script"  // a command ran a file of it
	SkillCreated = "created"
	SkillPatched = "patched" // any change of its files
	SkillDeleted = "deleted"
	SkillChanged = "changed" // a file of the run's, in a sandbox that cannot prevent it
	SkillRefused = "refused" // a call of skill_view or skill_manage about it
)
