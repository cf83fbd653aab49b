// Package registry turns tool names into callable tools: schema, coercion, validation, dispatch, toolsets.
//
// A Registry is a value that all workers share; what adds to it or takes from it makes another. Select freezes the set
// of tools that one episode is shown; a Session is that set together with the state of one episode, and its Call is the
// only way to a tool.
package registry

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// Tool is an entry of the registry. Make one with Define.
type Tool struct {
	Name        string
	Toolset     string
	Description string
	// Parameters is the JSON Schema of the arguments: an object, generated from the argument struct.
	Parameters json.RawMessage
	// Emoji goes in front of the tool's name where people watch.
	Emoji string
	// RequiresEnv names what the runner's environment must hold. Without one of them the tool is unavailable, and the
	// reason names what is missing.
	RequiresEnv []string
	// Available is nil for a tool that always works. It is asked at most every 30 s, whatever the number of workers.
	// The error says what is missing.
	Available func(ctx context.Context) error
	// Override lets the tool take the place of one of the same name that belongs to another toolset.
	Override bool
	// Timeout bounds one call; 0 is DefaultTimeout.
	Timeout time.Duration
	// MaxResult bounds the result's JSON text in bytes; 0 is DefaultMaxResult.
	MaxResult int
	// Reader is for the tool that long results are read with: its own are cut and never stored.
	Reader bool
	// Untrusted names where results come from when anybody could have written them: a web page, a server.
	Untrusted string
	// NoSandbox says that the tool never opens the sandbox.
	NoSandbox bool
	// Runner says that the tool runs a user's code on the runner's machine and not in the sandbox; the trace says so, too.
	Runner bool
	// Access says which paths a call reads and writes, so that calls of one turn that cannot conflict run side by
	// side. It gets the arguments as the tool would. Nil means that the call must run alone.
	Access func(arguments json.RawMessage) Access
	// Script says that scripts of execute_code can call the tool although it is none of those that they always can.
	Script bool
	// Describe replaces Description for an episode, from the tools that the episode has, sorted by name. Optional.
	Describe func(have []Tool) string
	// Reshape replaces Parameters for an episode, in what is shown and in what is checked, from the names of the tools
	// that the episode has; nil leaves them as they are. What it returns must be a part of Parameters. Optional.
	Reshape func(names []string) json.RawMessage

	plan    func() *plan // compiles at the first call
	ours    bool         // Parameters are generated
	args    reflect.Type // that they are generated from
	planned bool
	bind    func(arguments json.RawMessage) (run, error)
}

// Access is what a call touches. Paths are as the model wrote them. A zero Access touches nothing.
type Access struct {
	Reads  []string
	Writes []string
}

// The defaults of a Tool.
const (
	DefaultTimeout   = 300 * time.Second
	DefaultMaxResult = 100_000

	DefaultTurnResults = 200_000
)

// Env is what a call may use. It belongs to one call and must not be kept.
type Env struct {
	// Session is the episode's; nested calls (execute_code) go through Session.Call with CallID as their parent.
	Session *Session
	CallID  string
	Parent  string // the call that made this one; "" for one of the model's own
	Turn    int
	// Sandbox opens the episode's sandbox at the first call and returns it. Time spent in it is counted for this call.
	Sandbox func(ctx context.Context) (sandbox.Sandbox, error)
	Logger  *slog.Logger // never nil
	// ExitCode is for the tool to set: that of the command or script that it ran to its end, or whose end it tells.
	ExitCode *int
}

// SessionConfig is what an episode gives its tools.
type SessionConfig struct {
	// Sandbox returns the episode's sandbox, and opens it before if need be. Many goroutines may call it at once, which get
	// the same. It is called until it has succeeded, and the session closes nothing that it returns. Nil when the episode
	// has none: tools that need one then fail with the class "no_sandbox".
	Sandbox func(ctx context.Context) (sandbox.Sandbox, error)
	Rand    *rand.Rand
	Now     func() time.Time
	Logger  *slog.Logger
	Hooks   []Hook
	// Services are what else the episode has for its tools; Service finds them by their type.
	Services []any
	Secrets  *Secrets // masked in results; nil masks nothing
	Limits   ResultLimits
}

// ResultLimits bound what a model gets, in bytes of JSON text. The zero value is that of the tools.
type ResultLimits struct {
	Tools map[string]int // by tool name, in place of MaxResult
	Turn  int            // all results of one turn together; 0 is DefaultTurnResults
}

// Request is a call as the model made it.
type Request struct {
	ID        string
	Parent    string
	Turn      int
	Index     int
	Name      string
	Arguments string // raw text, valid JSON or not
	Cut       bool   // the text ends too early: it is refused as it is
}

// Failure is an error that the model is meant to read and can mend. It becomes {"error": Message, ...Extra}.
type Failure struct {
	Class   string // short and stable, e.g. not_found, binary_file, ambiguous
	Message string
	Status  episode.CallStatus // "" means error
	Extra   map[string]any
	// Broken says that the tool itself is, by no doing of the agent: the episode ends with a tool_error.
	Broken bool
}

func (f *Failure) Error() string { return f.Message }
