// Package episode holds the nouns of a run: the task that is played, the key that names an episode, the messages,
// turns and tool calls that it consists of, and how it ended. It has no behaviour but identity and order.
package episode

import (
	"encoding/json"
	"time"
)

// SchemaVersion is written into every journal record and Parquet file.
const SchemaVersion = 10

// Episode is one play of one task, from the draw of its toolsets to its reward. It belongs to one goroutine until
// it is journaled and is immutable from then on.
type Episode struct {
	Schema int    `json:"schema"`
	ID     string `json:"id"`
	Key    Key    `json:"key"`
	Row    int    `json:"row"`
	Run    string `json:"run,omitempty"` // fingerprint of the run
	// Attempt counts the attempts of this key that ended, from 1; Earlier has the earlier ones.
	Attempt int      `json:"attempt"`
	Earlier Attempts `json:"earlier,omitempty"`
	// Pending says that another attempt follows at once: this one does not become a row.
	Pending bool `json:"pending,omitempty"`
	// Resumed are the turns at which the attempt continued after its runner had died: the turns before were taken from the
	// record. Differed says where its tools then gave another result, which ended the attempt.
	Resumed  []int       `json:"resumed,omitempty"`
	Differed *Difference `json:"differed,omitempty"`
	// Unplayed counts turns of the record that were paid for and have no message, as the attempt ended before them. Usage and
	// CostUSD include them.
	Unplayed int `json:"unplayed,omitempty"`

	// Origin is nil unless the episode is a subagent's. Children are the subagents of this episode: they are kept in its record, and
	// each becomes a row.
	Origin   *Origin    `json:"origin,omitempty"`
	Children []*Episode `json:"children,omitempty"`

	Task Task `json:"task"` // without Files, Gold and the verifier's files, which stay in the dataset

	Distribution string   `json:"distribution,omitempty"`
	Toolsets     []string `json:"toolsets"` // as drawn, sorted
	LogP         float64  `json:"log_p"`    // natural logarithm of the draw's probability; 0 when nothing was drawn
	// Tools are the OpenAI function tools exactly as the model was shown them, in that order.
	Tools []json.RawMessage `json:"tools"`

	// Sampling is how the model was asked, the run's own settings and what a sweep chose for this sample.
	Sampling Sampling `json:"sampling,omitzero"`
	// Web is the mode of the run's web: live, record, replay or corpus.
	Web string `json:"web,omitempty"`

	Messages []Message  `json:"messages"`
	Turns    []Turn     `json:"turns"`
	Calls    []ToolCall `json:"calls"`
	// Compactions are how the conversation was shortened on its way to the model, in order.
	Compactions []Compaction `json:"compactions,omitempty"`

	// MCP are the MCP servers whose tools the episode had.
	MCP []MCPServer `json:"mcp_servers,omitempty"`

	// Memory is the agent's memory at the end; nil without the memory tool.
	Memory *Memory `json:"memory,omitempty"`
	// Skills is nil in a run without skills.
	Skills *Skills `json:"skills,omitempty"`
	// Recalled is the end of the system message, which the harness wrote: the list of skills, and the agent's memory at the
	// beginning.
	Recalled string `json:"recalled,omitempty"`
	// Ephemeral is the run's own text that stands in the system message just before Recalled, or at its end.
	Ephemeral string     `json:"ephemeral,omitempty"`
	User      *UserTrace `json:"user,omitempty"` // nil without a question

	Outcome Outcome  `json:"outcome"`
	Stop    Stop     `json:"stop"`
	Fault   *Fault   `json:"fault,omitempty"` // set exactly when the outcome is not the agent's doing
	Answer  string   `json:"answer,omitempty"`
	Reward  *float64 `json:"reward"` // null without a verdict, or when the outcome is not the agent's doing
	Rewards []Reward `json:"rewards,omitempty"`
	Proof   *Proof   `json:"proof,omitempty"` // of the task, as the run knew it when it began; nil when it knew nothing

	Twin    *Twin         `json:"twin,omitempty"`    // nil unless the episode is the twin of another
	Planted *PlantedLevel `json:"planted,omitempty"` // nil unless the run plants faults at a level

	// Drift is nil when the server sent no token ids.
	Drift *Drift `json:"drift,omitempty"`

	Usage   Usage         `json:"usage"`
	CostUSD *float64      `json:"cost_usd,omitempty"` // of turns, summaries and models that tools asked, by the run's prices; nil when a part of it is unknown
	Model   string        `json:"model,omitempty"`
	Sandbox Sandbox       `json:"sandbox"`
	Started time.Time     `json:"started"`
	Elapsed time.Duration `json:"elapsed"`
	Phases  Phases        `json:"phases"`
}

// MCPServer is what an episode had of an MCP server.
type MCPServer struct {
	Declared   string        `json:"declared"` // name in the run
	Name       string        `json:"name"`     // this and the next two in its own words
	Version    string        `json:"version"`
	Protocol   string        `json:"protocol"`
	SHA256     string        `json:"sha256"`           // of all that it said of itself, its tools included
	Shared     bool          `json:"shared,omitempty"` // with other episodes
	Connect    time.Duration `json:"connect"`          // how long connecting took, all times together
	Calls      int           `json:"calls"`
	Reconnects int           `json:"reconnects"`
}

// Message is one chat message as it was sent to or received from the model.
type Message struct {
	Role    string `json:"role"` // system, user, assistant, tool
	Content string `json:"content"`
	// Parts are images, and texts where their order matters: then Content is all of their text, one after the other.
	Parts     []Part `json:"parts,omitempty"`
	Reasoning string `json:"reasoning,omitempty"` // assistant: reasoning that the server separated from the content
	// ReasoningDetails is that reasoning in OpenRouter's form, with signatures and encrypted parts: a JSON list, which is sent
	// back unchanged.
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
	Calls            []Call          `json:"tool_calls,omitempty"`
	ToolCallID       string          `json:"tool_call_id,omitempty"` // tool: the call that this answers
	Name             string          `json:"name,omitempty"`         // tool: the tool's name
	// Harness marks a message of the harness, which neither the dataset nor the model wrote.
	Harness bool `json:"harness,omitempty"`
}

// Call is a tool call as the model wrote it; Arguments is the raw text, valid JSON or not.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	// Cut says that the reply ended, or became unreadable, within the arguments: they are refused, not repaired.
	Cut bool `json:"cut,omitempty"`
	// Sent is a JSON object that later requests have instead of Arguments, if servers would refuse those.
	Sent string `json:"sent,omitempty"`
}

// Turn is one exchange with the model that gave a message.
type Turn struct {
	Index        int           `json:"index"`   // from 0
	Message      int           `json:"message"` // index of the assistant message in Episode.Messages
	Model        string        `json:"model,omitempty"`
	RequestID    string        `json:"request_id,omitempty"`
	Endpoint     string        `json:"endpoint,omitempty"` // the endpoint that answered, if there are several
	Fallback     string        `json:"fallback,omitempty"` // the model that answered instead of the first one
	FinishReason string        `json:"finish_reason"`
	Usage        Usage         `json:"usage"`
	Started      time.Time     `json:"started"`
	Elapsed      time.Duration `json:"elapsed"` // of the request, with retries and the pauses between them, and of all of Waited
	// Waited is the part of Elapsed in which nothing of the turn went on: for the limiter, between tries, in an outage, and before
	// its calls for a place among the run's browsers.
	Waited  time.Duration `json:"waited,omitempty"`
	Retries []Fault       `json:"retries,omitempty"`
	// Repairs lists the changes to a reply that the server did not parse properly: "parsed:" and the format of calls that were in
	// the content, their defects, such as "truncated call: write_file", and all other changes of the message; "masked secret" if
	// the server had repeated one.
	Repairs []string `json:"repairs,omitempty"`
	// Raw is a JSON object with the original of each field that the message in Episode.Messages changes or leaves out: a content
	// from which reasoning or calls were taken, a refusal beside a content, a text with invalid characters.
	Raw string `json:"raw,omitempty"`
	Service
	Tokens *TurnTokens `json:"tokens,omitempty"` // nil when the server sent none
}

// Service is a server's metadata about a reply, in its own words. Fields that it did not send are empty.
type Service struct {
	Provider           string `json:"provider,omitempty"` // the provider behind a gateway
	SystemFingerprint  string `json:"system_fingerprint,omitempty"`
	WeightVersion      string `json:"weight_version,omitempty"` // of a model that is trained meanwhile
	ServiceTier        string `json:"service_tier,omitempty"`
	NativeFinishReason string `json:"native_finish_reason,omitempty"` // the provider's, before it was translated
	// Cost is the server's price of the exchange, in its currency: US dollars, or credits of the same value.
	Cost *float64 `json:"cost,omitempty"`
}

// Usage counts tokens. Reported is false if the server sent no counts; they are then zero and meaningless.
type Usage struct {
	Prompt     int  `json:"prompt"`
	Completion int  `json:"completion"`
	Reasoning  int  `json:"reasoning,omitempty"` // part of Completion
	Cached     int  `json:"cached,omitempty"`    // part of Prompt
	Reported   bool `json:"reported"`
	Made
}

// Made is what a model made, where that is paid for by the piece.
type Made struct {
	Images     int     `json:"images,omitempty"`
	Characters int     `json:"characters,omitempty"` // that it spoke
	Seconds    float64 `json:"seconds,omitempty"`    // of video
}

// Add returns the sum; it is reported only if both are.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Prompt: u.Prompt + v.Prompt, Completion: u.Completion + v.Completion,
		Reasoning: u.Reasoning + v.Reasoning, Cached: u.Cached + v.Cached,
		Reported: u.Reported && v.Reported,
		Made:     u.Made.Add(v.Made),
	}
}

// Add returns the sum.
func (m Made) Add(n Made) Made {
	return Made{m.Images + n.Images, m.Characters + n.Characters, m.Seconds + n.Seconds}
}

// CallStatus is how a tool call ended.
type CallStatus string

// The statuses of a tool call.
const (
	CallOK               CallStatus = "ok"
	CallError            CallStatus = "error"
	CallTimeout          CallStatus = "timeout"
	CallDenied           CallStatus = "denied"
	CallInvalidArguments CallStatus = "invalid_arguments"
	CallUnknownTool      CallStatus = "unknown_tool"
	CallUnavailable      CallStatus = "unavailable"
)

// ToolCall is the trace of one call through the dispatch.
type ToolCall struct {
	ID      string `json:"id"`
	Parent  string `json:"parent,omitempty"` // the execute_code call that made this one
	Turn    int    `json:"turn"`
	Index   int    `json:"index"` // position among the calls of the turn; nested calls count within their parent
	Name    string `json:"name"`
	Toolset string `json:"toolset,omitempty"`

	RawArguments string          `json:"raw_arguments"`
	Arguments    json.RawMessage `json:"arguments,omitempty"` // after repair and coercion; absent when they were never an object
	Coerced      []string        `json:"coerced,omitempty"`   // paths of the arguments whose type was changed; other changes have a prefix such as renamed:
	Repaired     bool            `json:"repaired,omitempty"`  // the raw text was not valid JSON and was repaired
	Rewritten    []string        `json:"rewritten,omitempty"` // hooks that replaced the arguments
	Via          string          `json:"via,omitempty"`       // the bridge tool through which the model called this one
	Verdict      *Verdict        `json:"verdict,omitempty"`   // of the command policy

	Status     CallStatus `json:"status"`
	ErrorClass string     `json:"error_class,omitempty"`
	Result     string     `json:"result"` // the JSON text that the model got
	Truncated  bool       `json:"truncated,omitempty"`
	// ResultBytes is the size of the result before it was cut to the limit.
	ResultBytes int `json:"result_bytes"`
	// ExitCode is the exit code of the command or script that the call ran, or whose end it reports; nil without one.
	ExitCode *int `json:"exit_code,omitempty"`
	// Stored is the path in the sandbox of the whole result, if Result is only its beginning.
	Stored string `json:"stored,omitempty"`
	// Untrusted names the source of the result if strangers could have written it: a web page, a server.
	Untrusted string `json:"untrusted,omitempty"`
	// Source is what answered a call that went outside of the sandbox, as JSON: a provider, a recording, pages with their digests.
	Source json.RawMessage `json:"source,omitempty"`
	// Images are what the call showed the model, in the message behind the results.
	Images []Part `json:"images,omitempty"`
	// Runner says that the tool is a plugin that ran on the runner's machine and not in the sandbox.
	Runner bool `json:"runner,omitempty"`
	// Masked names the secrets that were replaced in the result.
	Masked []string `json:"masked,omitempty"`
	// SameAs is the id of an identical call earlier in the turn: this one did not run, and its result is that call's.
	SameAs string `json:"same_as,omitempty"`
	// Notice is a remark of the harness about the call. It is never part of Result.
	Notice string `json:"notice,omitempty"`
	// Planted is a fault that the run put into the call; nil without one.
	Planted *Planted `json:"planted,omitempty"`

	Started     time.Time     `json:"started"`
	Elapsed     time.Duration `json:"elapsed"`
	SandboxTime time.Duration `json:"sandbox_time"`
}

// Verdict is the policy's verdict on a call before it ran.
type Verdict struct {
	Verdict  string `json:"verdict"`            // allow, ask or block
	Rule     string `json:"rule,omitempty"`     // id of the rule that decided
	Reason   string `json:"reason,omitempty"`   // why, for people and models
	Decision string `json:"decision,omitempty"` // what was done: recorded, approved, denied or refused, and by whom
	// Usage is that of a model that decided. It is not part of the agent's.
	Usage *Usage `json:"usage,omitempty"`
}

// Reward is the verdict of one check.
type Reward struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"` // 0 to 1 for the built-in checks; any finite number for reward: stdout
	Weight float64 `json:"weight"`
	Detail string  `json:"detail,omitempty"` // what was compared, or the tail of the verifier's output
}

// Sandbox describes the episode's sandbox.
type Sandbox struct {
	Backend string `json:"backend,omitempty"`
	Level   string `json:"level,omitempty"`
	// Limits says which limits were enforced: memory, processes, cpu, disk, inodes, files → hard, soft or none.
	Limits map[string]string `json:"limits,omitempty"`
	Opened bool              `json:"opened"`
	// Forked says that the task's setup ran in another sample's sandbox, which this one is a fork of.
	Forked bool `json:"forked,omitempty"`
	// Connections are the attempts to connect to the outside, refused ones included.
	Connections []Connection `json:"connections,omitempty"`
}

// Connection is an attempt to connect from the sandbox to the outside.
type Connection struct {
	Host     string    `json:"host"` // requested name or address
	Port     int       `json:"port"`
	Address  string    `json:"address,omitempty"` // that was dialled
	Started  time.Time `json:"started"`
	Sent     int64     `json:"sent"`              // bytes that left the sandbox
	Received int64     `json:"received"`          // bytes that came in
	Refused  string    `json:"refused,omitempty"` // why it was not allowed
	Failed   string    `json:"failed,omitempty"`  // why it failed although it was allowed
}

// Phases are the wall times of an episode's parts.
type Phases struct {
	Open   time.Duration `json:"open"` // sandbox open
	Setup  time.Duration `json:"setup"`
	Agent  time.Duration `json:"agent"` // model and tools
	Model  time.Duration `json:"model"` // part of Agent that waited for the model
	Tools  time.Duration `json:"tools"` // part of Agent that waited for tools
	Verify time.Duration `json:"verify"`
	Close  time.Duration `json:"close"`
}

// Spoken are the indexes of the messages that the model wrote. Other assistant messages are the dataset's or the harness's.
func (ep *Episode) Spoken() map[int]bool {
	spoken := make(map[int]bool, len(ep.Turns))
	for i := range ep.Turns {
		if at := ep.Turns[i].Message; at >= 0 && at < len(ep.Messages) && ep.Messages[at].Role == "assistant" {
			spoken[at] = true
		}
	}
	return spoken
}
