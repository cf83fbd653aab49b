// Package registry turns tool names into callable tools: schema, coercion, validation, dispatch, toolsets.
//
// A Registry is an immutable value that all workers share. Select freezes the set of tools that one episode is shown; a Session is
// that set together with the state of one episode, and its Call is the only way to call a tool.
package registry

import (
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// Definition is a tool without its arguments and its function.
type Definition struct {
	Name        string
	Toolset     string
	Description string
	// Aliases are names of earlier tools whose work this one does, with the arguments which such a name says: name → member → text.
	Aliases map[string]map[string]string
	// RequiresEnv names variables of the runner's environment that the tool needs. They are secrets.
	RequiresEnv []string
	// Override lets the tool take the place of one of the same name that belongs to another toolset.
	Override bool
	// Timeout bounds one call; 0 is DefaultTimeout.
	Timeout time.Duration
	// MaxResult bounds the result's JSON text in bytes; 0 is DefaultMaxResult.
	MaxResult int
	// Payload is the JSON pointer to the main text of results, such as /output, where that is not their longest text. Optional.
	Payload string
	// Reader marks the tool with which long results are read: its own results are cut and never stored.
	Reader bool
	// Untrusted names the source of results that strangers could have written: a web page, a server.
	Untrusted string
	// Outside names who answers the tool's calls where that is not the sandbox, such as "web" or "plugin tickets": a Twin can stand
	// for the tool. Tools of one name are a family, whose calls may depend on each other's. Version is who it is, as far as answers
	// depend on it.
	Outside, Version string
	// ReadOnly says of such a tool that its calls change nothing.
	ReadOnly bool
	// Replayed does what a call does beside asking who answers it, when a Twin has answered instead. Its error is the call's. Optional.
	Replayed func(ctx context.Context, env *Env, arguments json.RawMessage, answer Answer) error
	// NoSandbox says that the tool never opens the sandbox.
	NoSandbox bool
	// Runner says that the tool runs a user's code on the runner's machine and not in the sandbox; the trace says so, too.
	Runner bool
	// Access says which paths a call reads and writes, so that calls of one turn that cannot conflict run side by
	// side. It gets the arguments as the tool would. Nil means that the call must run alone.
	Access func(arguments json.RawMessage) Access
	// Script lets scripts of execute_code call the tool, in addition to those that they always can.
	Script bool
	// OffClock says that calls are not on the agent's clock, which the tool's service turns on by itself. They run alone.
	OffClock bool
	// Memory is what the tool needs of the sandbox's memory, in bytes, beside the task.
	Memory int64
	// Wait waits, on no clock, for what a call needs and other episodes may have, until it is there or the context has ended. A call
	// must also work without it. Optional.
	Wait func(ctx context.Context, s *Session)
	// Describe makes an episode's Description from the tools that the episode has, sorted by name. Optional.
	Describe func(have []Tool) string
}

// Tool is an entry of the registry. Make one with Define.
type Tool struct {
	Definition
	// Parameters is the JSON Schema of the arguments: an object, generated from the argument struct.
	Parameters json.RawMessage

	args    reflect.Type // the struct that Parameters are generated from; nil for a given schema
	plan    func() *plan // compiles at the first call
	planned bool
	bind    func(arguments json.RawMessage) (run, error)
}

// Access is the paths that a call reads and writes, as the model wrote them. The zero Access touches none.
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
	Index   int          // of the call in its turn
	Logger  *slog.Logger // never nil
	// ExitCode is set by the tool: the exit code of the command or script that it ran, or whose end it reports.
	ExitCode *int
	// Source is set by the tool: what answered from outside of the sandbox. Its JSON stands in the trace.
	Source any

	meter *meter
}

// SessionConfig is what an episode gives its tools.
type SessionConfig struct {
	// Sandbox returns the episode's sandbox, and opens it if necessary. Many goroutines may call it at once, and get the same
	// sandbox. It is called until it succeeds; the session does not close the sandbox. With nil, tools that need a sandbox fail
	// with the class "no_sandbox".
	Sandbox func(ctx context.Context) (sandbox.Sandbox, error)
	Now     func() time.Time
	Logger  *slog.Logger
	Hooks   []Hook
	// Guardrails watch the calls; nil watches nothing.
	Guardrails *Guardrails
	// Services are further objects for the episode's tools; Service finds them by type.
	Services []any
	Secrets  *Secrets // masked in results; nil masks nothing
	Limits   ResultLimits
	// Clock starts the agent's clock for calls that begin. The context that it returns ends with the agent's time; stop stops the
	// clock. It stands still while calls wait for what other episodes have. Nil is a clock that never ends.
	Clock func(ctx context.Context) (limited context.Context, stop func())
	// Charge puts time on the agent's clock that has not passed; nil puts none.
	Charge func(time.Duration)
	// Host is the session in whose sandbox a subagent works, and whose browser it shares; nil for a sandbox of its own. Folder
	// keeps the results that are stored in a sandbox apart from the host's.
	Host   *Session
	Folder string
	// Sees says that the run's model takes images, and Images keeps those that tools attach; nil keeps none.
	Sees   bool
	Images Images
}

// ResultLimits bound the results that a model gets, in bytes of JSON text. The zero value leaves the tools' own limits.
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
	Cut       bool   // the text ends too early: the call is refused
}

// Failure is an error for the model, which can react to it. It becomes {"error": Message, ...Extra}.
type Failure struct {
	Class   string // short and stable, e.g. not_found, binary_file, ambiguous
	Message string
	Status  episode.CallStatus // "" means error
	Extra   map[string]any
	// Broken says that the tool itself is broken, not by the agent's doing: the episode ends with a tool_error.
	Broken bool
}

func (f *Failure) Error() string { return f.Message }
