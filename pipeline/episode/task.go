package episode

import (
	"encoding/json"
	"time"
)

// NoToolsets is the name for no tools at all. An empty list would mean the same, but encoders lose it.
const NoToolsets = "none"

// Task is one row of a dataset: the agent's prompt, the files in its working directory and how it is judged.
type Task struct {
	ID  string `json:"id"`  // unique within the dataset; duplicates in the source get "#2", "#3", ...
	Row int    `json:"row"` // position in the dataset, from 0, broken rows counted

	System string    `json:"system,omitempty"`
	Prompt []Message `json:"prompt"` // at least one user message; later user messages are sent in turn

	Files Files             `json:"files,omitempty"` // path relative to the working directory → content
	Setup string            `json:"setup,omitempty"` // shell command run before the episode
	Image string            `json:"image,omitempty"`
	Root  string            `json:"root,omitempty"`  // "writable": commands can write everywhere, also without an image
	Build *Build            `json:"build,omitempty"` // how the image is made, instead of Image
	Cwd   string            `json:"cwd,omitempty"`
	Env   map[string]string `json:"env,omitempty"`
	Reach

	World
	Resources Resources `json:"resources,omitzero"`

	Tools

	Verify   []Check   `json:"verify,omitempty"`
	Verifier *Verifier `json:"verifier,omitempty"` // of checks that name none; nil is the run's
	Gold     []Step    `json:"gold,omitempty"`     // reference solution
	// Subagents are reference solutions of those to whom Gold delegates, by their goals.
	Subagents map[string][]Step `json:"gold_subagents,omitempty"`
	Limits    Limits            `json:"limits,omitzero"`

	Memory *Memory `json:"memory,omitempty"` // the agent's memory at the beginning, if it has the memory tool
	User   *User   `json:"user,omitempty"`   // answers the agent's questions

	Labels
	Metadata json.RawMessage `json:"metadata,omitempty"` // one JSON object: every key that belongs to no field above
}

// Labels are what tasks are sorted by.
type Labels struct {
	Tags       []string `json:"tags,omitempty"`
	Difficulty string   `json:"difficulty,omitempty"`
}

// Reach is what a task's sandbox reaches; "" is the run's.
type Reach struct {
	Network string   `json:"network,omitempty"`
	Allow   []string `json:"allow,omitempty"` // targets of network allowlist; without any, the run's
}

// World is what an agent finds beside its sandbox.
type World struct {
	Sites    []string        `json:"sites,omitempty"`    // web sites that come with trajgen, as SITE or SITE:SEED
	Home     json.RawMessage `json:"home,omitempty"`     // what differs in the home that comes along: entity → state, area, attributes
	Channels []string        `json:"channels,omitempty"` // where messages can be sent; without any, the usual ones

	Services []Companion `json:"services,omitempty"` // in the order in which they start
	Hosts    []string    `json:"hosts,omitempty"`    // names of the sandbox itself, which the services can use, too
}

// Tools is what a task says of its agent's tools; what it does not say, the run does.
type Tools struct {
	// MCP names the MCP servers of the run that the task has, whatever is drawn; it has no others then.
	MCP []string `json:"mcp,omitempty"`
	// Servers are MCP servers that the task declares itself, by name, as the run file declares its own: a JSON object. A task that
	// has any has those of MCP beside them, and no others.
	Servers json.RawMessage `json:"mcp_servers,omitempty"`

	Toolsets     []string `json:"toolsets,omitempty"`     // overrides the run's choice: fixed, not sampled; NoToolsets alone for none
	Distribution string   `json:"distribution,omitempty"` // overrides the run's distribution
}

// Build says how an image is made: from a Dockerfile, and files that it copies. The player of the task makes it, and caches it by
// content.
type Build struct {
	// Dir holds the files that can be copied. It is a directory of this machine, and not part of what the task is: Digest is.
	Dir        string            `json:"dir,omitempty"`
	Dockerfile string            `json:"dockerfile,omitempty"` // its path in Dir; "" is Dockerfile
	Args       map[string]string `json:"args,omitempty"`       // values of ARG
	Target     string            `json:"target,omitempty"`     // the stage that is wanted; "" is the last
	Digest     string            `json:"digest,omitempty"`     // of the Dockerfile and the files, by whoever read the task
}

// Files maps a path to its content. Text is a plain JSON string; bytes that are not UTF-8 are {"base64": "..."}.
type Files map[string]File

// Step is one assistant turn of a reference solution: tool calls, or the final answer.
type Step struct {
	Content   string     `json:"content,omitempty"`
	Reasoning string     `json:"reasoning,omitempty"`
	Calls     []GoldCall `json:"tool_calls,omitempty"`
}

// GoldCall is a call that a reference solution makes.
type GoldCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// Resources are the resources of a task's sandbox. Zero means the run's.
type Resources struct {
	Memory int64   `json:"memory,omitempty"` // bytes
	Disk   int64   `json:"disk,omitempty"`   // bytes that the sandbox can write
	CPUs   float64 `json:"cpus,omitempty"`
}

// Limits end an episode with the outcome "limit". Zero means the run's default.
type Limits struct {
	Turns  int           `json:"turns,omitempty"`  // model calls
	Tokens int           `json:"tokens,omitempty"` // prompt and completion tokens of all turns
	Time   time.Duration `json:"time,omitempty"`   // wall time of the agent's part, judging not counted
}
