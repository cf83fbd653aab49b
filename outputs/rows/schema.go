// Package rows holds the one row schema: what an episode and its tool calls are in Parquet and Arrow files.
package rows

import (
	"strings"

	"github.com/parquet-go/parquet-go"
)

// This file is the one row schema. Its rules, each for a reader that broke without it:
//
//   - no maps: Arrow 15 silently nulls their values when it rewrites a file; lists of pairs survive
//   - every slice is a LIST; a nil slice and an empty one are the same value
//   - null means "there was none" and is always a pointer: for the elements of a list, parquet-go 0.32 turns the zero
//     of a plain optional field into null only until the first value that is not zero
//   - times are UTC microseconds, durations int64 microseconds with the suffix _us
//   - JSON is kept as the text that it was, never as a type of its own: tools differ in their arguments, and DuckDB
//     refuses a file whose JSON column holds text that is not JSON
//
// The tag of says what of an episode a column is, see columns.go. A change here changes testdata/*.golden and wants a new episode.SchemaVersion.

// Trajectory is a row of trajectories/: one episode. Files, reference solutions and the files of verifiers stay
// in the dataset.
type Trajectory struct {
	SchemaVersion int32  `parquet:"schema_version" of:"Schema"`
	ID            string `parquet:"episode_id"`
	Run           string `parquet:"run,dict"` // fingerprint of the run
	Row           int64  `parquet:"row"`      // position in the dataset
	TaskID        string `parquet:"task_id" of:"Key.Task"`
	Sample        int32  `parquet:"sample" of:"Key.Sample"`
	Seed          uint64 `parquet:"seed" of:"Key.Seed"`
	Attempt       int32  `parquet:"attempt"`
	// EarlierAttempts says what the attempts before this one died of, when, and what they cost.
	EarlierAttempts []EarlierAttempt `parquet:"earlier_attempts,list" of:"Earlier"`
	// ResumedTurns are the turns from which this attempt went on after its runner had died.
	ResumedTurns []int32 `parquet:"resumed_turns,list" of:"Resumed"`

	// Of a subagent: who began it, in which call and turn, in which generation from 1, and the verdict on the whole tree. Its own
	// reward is null, as its root alone is judged. All are null for an episode of the run.
	ParentID   *string  `parquet:"parent_id,optional" of:"Origin.Parent,always"`
	ParentCall *string  `parquet:"parent_call,optional" of:"Origin.Call,always"`
	ForkTurn   *int32   `parquet:"fork_turn,optional" of:"Origin.Turn,always"`
	Depth      *int32   `parquet:"depth,optional" of:"Origin.Depth,always"`
	Role       *string  `parquet:"role,optional,dict" of:"Origin.Role,always"` // leaf or orchestrator
	RootReward *float64 `parquet:"root_reward,optional" of:"Origin.RootReward"`

	Task Task `parquet:"task"`

	Distribution *string  `parquet:"distribution,optional,dict"`
	Toolsets     []string `parquet:"toolsets,list" parquet-element:",dict"`
	LogP         float64  `parquet:"log_p"`
	Tools        []string `parquet:"tools,list" parquet-element:",dict"` // the JSON of each, as the model was shown it

	Messages []Message `parquet:"messages,list"`
	Turns    []Turn    `parquet:"turns,list"`

	Compactions []Compaction `parquet:"compactions,list"` // of what the model was sent; messages has everything

	MCP []MCPServer `parquet:"mcp_servers,list"` // whose tools the episode had

	// Drift says whether the tokens can be trained on as they are: none, drift, compacted, repaired or unknown. Only with none are
	// the next three columns filled, all of one length; otherwise each turn has its own tokens.
	Drift         string     `parquet:"drift,dict" of:"-"`
	TokenIDs      []int32    `parquet:"token_ids,list" of:"-"`
	LossMask      []int8     `parquet:"loss_mask,list" of:"-"`                            // 1 where the model sampled the token
	Logprobs      []*float32 `parquet:"logprobs,list" parquet-element:",optional" of:"-"` // null where it did not, or its server did not say
	DriftTurn     *int32     `parquet:"drift_turn,optional" of:"-"`                       // the first that the verdict is about; null with none
	DriftPosition *int32     `parquet:"drift_position,optional" of:"-"`                   // of the first other id in that turn's prompt
	DriftExpected []int32    `parquet:"drift_expected,list" of:"-"`                       // some ids from there on: of the turn before
	DriftGot      []int32    `parquet:"drift_got,list" of:"-"`                            // and of the prompt

	// How the model was asked; null is what was left to the server.
	SamplingModel       *string  `parquet:"sampling_model,optional,dict" of:"Sampling.Model"` // model below is the name that the server gave
	SamplingEffort      *string  `parquet:"sampling_reasoning_effort,optional,dict" of:"Sampling.ReasoningEffort"`
	SamplingTemperature *float64 `parquet:"sampling_temperature,optional" of:"Sampling.Temperature"`
	SamplingTopP        *float64 `parquet:"sampling_top_p,optional" of:"Sampling.TopP"`
	SamplingMaxTokens   *int64   `parquet:"sampling_max_tokens,optional" of:"Sampling.MaxTokens"`

	Memory    *string `parquet:"memory,optional"`    // JSON of what the agent remembered in the end
	Recalled  *string `parquet:"recalled,optional"`  // end of the system message that the harness wrote
	Ephemeral *string `parquet:"ephemeral,optional"` // the run's text just before that, likewise the harness's
	// The skills columns are null in a run without skills.
	Skills        *string      `parquet:"skills,optional,dict" of:"Skills.Mode"`         // with or without
	SkillsLogP    *float64     `parquet:"skills_log_p,optional" of:"Skills.LogP,always"` // of that draw
	SkillsWritten *string      `parquet:"skills_written,optional" of:"Skills.Written"`   // JSON of the files that the agent wrote
	SkillEvents   []SkillEvent `parquet:"skill_events,list" of:"Skills.Events"`

	Questions *int32  `parquet:"user_questions,optional" of:"User.Questions,always"` // that the user answered; the user columns are null when nothing was asked
	UserModel *string `parquet:"user_model,optional,dict" of:"User.Model"`           // null for a script
	UserUsage Usage   `parquet:"user_usage" of:"User.Usage"`                         // of that model, no part of usage

	ApproverUsage Usage `parquet:"approver_usage" of:"-"` // of the model that was asked about commands, no part of usage

	Outcome      string   `parquet:"outcome,dict"`
	Stop         string   `parquet:"stop,dict"`
	FaultOutcome *string  `parquet:"fault_outcome,optional,dict" of:"Fault.Outcome,always"` // the fault_ columns are null together
	FaultClass   *string  `parquet:"fault_class,optional,dict" of:"Fault.Class,always"`
	FaultMessage *string  `parquet:"fault_message,optional" of:"Fault.Message,always"`
	Answer       string   `parquet:"answer"`
	Reward       *float64 `parquet:"reward,optional"` // null: not judged, or not the agent's doing
	Rewards      []Reward `parquet:"rewards,list"`

	// What scripted agents scored at the task, as the run knew it when it began: its reference solution, doing nothing, and the
	// attacks on its verifier that had the reward of a success. All are null where it knew nothing.
	Proof        *string  `parquet:"proof,optional,dict"` // JSON of all of that
	ProofGold    *float64 `parquet:"proof_gold,optional" of:"-"`
	ProofNoop    *float64 `parquet:"proof_noop,optional" of:"-"`
	ProofAttacks []string `parquet:"proof_attacks,list" parquet-element:",dict" of:"-"`

	// How the episode is the twin of another, see episode.Twin; null for one that is none.
	TwinRole      *string  `parquet:"twin_role,optional,dict" of:"Twin.Role,always"`
	TwinOf        *string  `parquet:"twin_of,optional" of:"Twin.Of,always"`
	TwinClass     *string  `parquet:"twin_class,optional,dict" of:"Twin.Class,always"`
	TwinVariant   *string  `parquet:"twin_variant,optional,dict" of:"Twin.Variant"`
	TwinP         *float64 `parquet:"twin_p,optional" of:"Twin.P,always"`
	TwinTurn      *int32   `parquet:"twin_turn,optional" of:"Twin.Turn,always"`
	TwinIndex     *int32   `parquet:"twin_index,optional" of:"Twin.Index,always"`
	TwinNested    *int32   `parquet:"twin_nested,optional" of:"Twin.Nested,always"`
	TwinOrdinal   *int32   `parquet:"twin_ordinal,optional" of:"Twin.Ordinal,always"`
	TwinReplicate *int32   `parquet:"twin_replicate,optional" of:"Twin.Replicate,always"`
	Prefix        *string  `parquet:"prefix,optional,dict" of:"Twin.Prefix"`
	PrefixTokens  *int64   `parquet:"prefix_tokens,optional" of:"Twin.PrefixTokens,always"`
	Reactions     []string `parquet:"reactions,list" parquet-element:",dict" of:"Twin.Reactions"`
	UsedWrong     *bool    `parquet:"used_wrong,optional" of:"Twin.UsedWrong"`
	UsedTrue      *bool    `parquet:"used_true,optional" of:"Twin.UsedTrue"`
	SafeSuccess   *bool    `parquet:"safe_success,optional" of:"Twin.SafeSuccess"`
	Recoverable   *bool    `parquet:"recoverable,optional" of:"Twin.Recoverable"`
	PlantedLevel  *float64 `parquet:"planted_level,optional" of:"Planted.Level,always"` // null in a run that plants no faults at a level
	LogPPlanted   *float64 `parquet:"log_p_planted,optional" of:"Planted.LogP,always"`

	Usage   Usage    `parquet:"usage"`
	CostUSD *float64 `parquet:"cost_usd,optional"` // of turns, summaries and models that tools asked, by the run's prices; null when not all of it is known
	Model   *string  `parquet:"model,optional,dict"`
	Sandbox Sandbox  `parquet:"sandbox"`
	Web     *string  `parquet:"web,optional,dict"` // mode of the run's web: live, record, replay or corpus

	Started   *int64 `parquet:"started,optional,timestamp(microsecond)"`
	ElapsedUS int64  `parquet:"elapsed_us"`
	Phases    Phases `parquet:"phases"`
}

// Task is what the agent was asked.
type Task struct {
	System       *string   `parquet:"system,optional"`
	Prompt       []Message `parquet:"prompt,list"`
	Setup        *string   `parquet:"setup,optional"`
	Image        *string   `parquet:"image,optional,dict"`
	Cwd          *string   `parquet:"cwd,optional"`
	Env          []Pair    `parquet:"env,list"` // sorted by key
	Network      *string   `parquet:"network,optional,dict"`
	Toolsets     []string  `parquet:"toolsets,list" parquet-element:",dict"` // what the task fixed
	Distribution *string   `parquet:"distribution,optional,dict"`            // what the task fixed
	Verify       *string   `parquet:"verify,optional" of:"Verify,html"`      // JSON list of the checks
	LimitTurns   *int32    `parquet:"limit_turns,optional" of:"Limits.Turns"`
	LimitTokens  *int64    `parquet:"limit_tokens,optional" of:"Limits.Tokens"`
	LimitTimeUS  *int64    `parquet:"limit_time_us,optional" of:"Limits.Time"`
	Memory       *string   `parquet:"memory,optional"` // JSON of what the agent remembers from sessions before
	User         *string   `parquet:"user,optional"`   // JSON of who answers its questions
	Tags         []string  `parquet:"tags,list" parquet-element:",dict"`
	Difficulty   *string   `parquet:"difficulty,optional,dict"`
	Metadata     *string   `parquet:"metadata,optional"` // JSON object
}

// Pair is an entry of a map.
type Pair struct {
	Key   string `parquet:"key,dict"`
	Value string `parquet:"value"`
}

// Message is a chat message as it was sent or received. The names are those of the chat completions API, so that
// trainers read the column as it is.
type Message struct {
	Role       string        `parquet:"role,dict"`
	Content    string        `parquet:"content"`
	Reasoning  *string       `parquet:"reasoning,optional"`
	Details    *string       `parquet:"reasoning_details,optional" of:"ReasoningDetails"` // JSON list, as the server gave it
	ToolCalls  []MessageCall `parquet:"tool_calls,list" of:"Calls"`
	ToolCallID *string       `parquet:"tool_call_id,optional"`
	Name       *string       `parquet:"name,optional,dict"`
	Parts      *string       `parquet:"parts,optional"` // JSON list of images, by their digests in media, and of texts where their order matters
	Harness    bool          `parquet:"harness"`        // added by the harness: leave it out of training
}

// MessageCall is a tool call as the model wrote it; Arguments is the raw text, valid JSON or not.
type MessageCall struct {
	ID        string `parquet:"id"`
	Name      string `parquet:"name,dict"`
	Arguments string `parquet:"arguments"`
	Cut       bool   `parquet:"cut"` // the reply ended within the arguments
	// Sent is the JSON object that later requests have in the place of arguments which servers refuse.
	Sent *string `parquet:"sent,optional"`
}

// Turn is one exchange with the model.
type Turn struct {
	Index        int32    `parquet:"index"`
	Message      int32    `parquet:"message"` // index in messages
	Model        *string  `parquet:"model,optional,dict"`
	RequestID    *string  `parquet:"request_id,optional"`
	FinishReason string   `parquet:"finish_reason,dict"`
	Usage        Usage    `parquet:"usage"`
	Started      *int64   `parquet:"started,optional,timestamp(microsecond)"`
	ElapsedUS    int64    `parquet:"elapsed_us"`
	Retries      []Fault  `parquet:"retries,list"`
	Repairs      []string `parquet:"repairs,list"` // what was made of a reply that could not be taken as it was
	Raw          *string  `parquet:"raw,optional"` // JSON of the fields of which the message has not all, as the server sent them

	WaitedUS int64 `parquet:"waited_us"` // part of elapsed_us in which no request was under way, or calls waited for a browser's place

	Fallback           *string  `parquet:"fallback,optional,dict"` // the model that answered instead of the first one
	Endpoint           *string  `parquet:"endpoint,optional,dict"` // of several
	Provider           *string  `parquet:"provider,optional,dict"` // who answered behind the endpoint
	SystemFingerprint  *string  `parquet:"system_fingerprint,optional,dict"`
	WeightVersion      *string  `parquet:"weight_version,optional,dict"`
	ServiceTier        *string  `parquet:"service_tier,optional,dict"`
	NativeFinishReason *string  `parquet:"native_finish_reason,optional,dict"`
	Cost               *float64 `parquet:"cost,optional"` // as the server reported it

	// The turn's completion is token_ids[prompt_end:completion_end], and its prompt all before. Null but with drift none.
	PromptEnd     *int32 `parquet:"prompt_end,optional" of:"-"`
	CompletionEnd *int32 `parquet:"completion_end,optional" of:"-"`
	// Without drift these are empty. The prompt is the first shared_ids ids of the last known prompt and completion, and
	// then prompt_ids; shared_ids is null when the prompt is not known.
	SharedIDs     *int32    `parquet:"shared_ids,optional" of:"-"`
	PromptIDs     []int32   `parquet:"prompt_ids,list" of:"-"`
	CompletionIDs []int32   `parquet:"completion_ids,list" of:"-"`
	Logprobs      []float32 `parquet:"logprobs,list" of:"-"` // of completion_ids
}

// Usage counts tokens; all null when the server did not say.
type Usage struct {
	Prompt     *int64 `parquet:"prompt_tokens,optional"`
	Completion *int64 `parquet:"completion_tokens,optional"`
	Reasoning  *int64 `parquet:"reasoning_tokens,optional"` // part of completion_tokens
	Cached     *int64 `parquet:"cached_tokens,optional"`    // part of prompt_tokens
}

// Fault is an event that was not the agent's doing.
type Fault struct {
	Outcome string `parquet:"outcome,dict"`
	Class   string `parquet:"class,dict"`
	Message string `parquet:"message"`
	PauseUS *int64 `parquet:"pause_us,optional"` // before the model call was tried again
}

// EarlierAttempt is a play of the episode that was followed by another.
type EarlierAttempt struct {
	Attempt   int32    `parquet:"attempt"`
	Outcome   string   `parquet:"outcome,dict"`
	Class     *string  `parquet:"class,optional,dict" of:"Fault.Class,always"` // of the fault
	Message   *string  `parquet:"message,optional" of:"Fault.Message,always"`
	Started   *int64   `parquet:"started,optional,timestamp(microsecond)"`
	ElapsedUS int64    `parquet:"elapsed_us"`
	Turns     int32    `parquet:"turns"`
	Usage     Usage    `parquet:"usage"`
	CostUSD   *float64 `parquet:"cost_usd,optional"`
	AtOnce    bool     `parquet:"at_once"` // it was played again in the same run
	// Differed is JSON of where it could not go on from its record after its runner had died: turn, call, name, at, was, got.
	Differed *string `parquet:"differed,optional" of:"Differed,html"`
}

// Compaction is a shortening of the conversation: from its turn on, messages are sent with other contents, and a
// summary stands for those from from_message up to to_message.
type Compaction struct {
	Turn     int32         `parquet:"turn"`
	Strategy string        `parquet:"strategy,dict"`
	Refused  bool          `parquet:"refused"` // the server had found the conversation too long
	Before   int64         `parquet:"before_tokens"`
	After    int64         `parquet:"after_tokens"`
	Counted  int64         `parquet:"counted_tokens"` // of before_tokens; the rest is estimated
	Replaced []Replacement `parquet:"replaced,list"`
	From     *int32        `parquet:"from_message,optional" of:"From,always"`
	To       *int32        `parquet:"to_message,optional" of:"To,always"`
	Summary  *string       `parquet:"summary,optional"`
	Model    *string       `parquet:"model,optional,dict"` // that wrote it
	Usage    Usage         `parquet:"usage"`               // of that model, no part of usage
	Failed   *string       `parquet:"failed,optional"`     // why the conversation stayed as it was
}

// MCPServer is what the episode had of an MCP server.
type MCPServer struct {
	Declared   string `parquet:"declared,dict"` // name in the run
	Name       string `parquet:"name,dict"`     // this and the next two are the server's own words
	Version    string `parquet:"version,dict"`
	Protocol   string `parquet:"protocol,dict"`
	SHA256     string `parquet:"sha256,dict"` // of all that it said of itself, its tools included
	Shared     bool   `parquet:"shared"`      // with other episodes
	ConnectUS  int64  `parquet:"connect_us"`
	Calls      int32  `parquet:"calls"`
	Reconnects int32  `parquet:"reconnects"`
}

// SkillEvent is a use of a skill.
type SkillEvent struct {
	Turn   int32   `parquet:"turn"`
	Kind   string  `parquet:"kind,dict"`
	Skill  string  `parquet:"skill,dict"`
	File   *string `parquet:"file,optional,dict"`   // of the skill's folder
	Digest *string `parquet:"digest,optional,dict"` // of the file, or else of the skill
	Bytes  int64   `parquet:"bytes"`                // likewise
	Rank   *int32  `parquet:"rank,optional"`        // position in a list, from 1
}

// Replacement is what is sent as the content of a message.
type Replacement struct {
	Message int32  `parquet:"message"`
	Content string `parquet:"content"`
}

// Reward is the verdict of one check.
type Reward struct {
	Name   string  `parquet:"name,dict"`
	Value  float64 `parquet:"value"`
	Weight float64 `parquet:"weight"`
	Detail *string `parquet:"detail,optional"`
}

// Sandbox says what the episode ran in.
type Sandbox struct {
	Backend     *string      `parquet:"backend,optional,dict"`
	Level       *string      `parquet:"level,optional,dict"`
	Limits      []Pair       `parquet:"limits,list"` // name → hard, soft or none, sorted by name
	Opened      bool         `parquet:"opened"`
	Forked      bool         `parquet:"forked"` // of a sandbox in which the task's setup ran for all its samples
	Connections []Connection `parquet:"connections,list"`
}

// Connection is an attempt to reach something outside of the sandbox.
type Connection struct {
	Host     string  `parquet:"host"`
	Port     int32   `parquet:"port"`
	Address  *string `parquet:"address,optional"`
	Started  *int64  `parquet:"started,optional,timestamp(microsecond)"`
	Sent     int64   `parquet:"sent"`
	Received int64   `parquet:"received"`
	Refused  *string `parquet:"refused,optional"` // why it was not allowed
	Failed   *string `parquet:"failed,optional"`  // why it could not be made although allowed
}

// Phases holds the wall times of an episode's parts.
type Phases struct {
	OpenUS   int64 `parquet:"open_us"`
	SetupUS  int64 `parquet:"setup_us"`
	AgentUS  int64 `parquet:"agent_us"`
	ModelUS  int64 `parquet:"model_us"` // part of agent_us
	ToolsUS  int64 `parquet:"tools_us"` // part of agent_us
	VerifyUS int64 `parquet:"verify_us"`
	CloseUS  int64 `parquet:"close_us"`
}

// ToolCall is a row of tool_calls/: one call, in the order of the episodes and of the calls in them.
type ToolCall struct {
	SchemaVersion int32  `parquet:"schema_version" of:"-"`
	EpisodeID     string `parquet:"episode_id" of:"-"`
	Run           string `parquet:"run,dict" of:"-"`
	Row           int64  `parquet:"row" of:"-"`
	TaskID        string `parquet:"task_id,dict" of:"-"`
	Sample        int32  `parquet:"sample" of:"-"`
	Attempt       int32  `parquet:"attempt" of:"-"`

	Turn     int32   `parquet:"turn"`
	Index    int32   `parquet:"index"`
	CallID   string  `parquet:"call_id" of:"ID"`
	ParentID *string `parquet:"parent_id,optional" of:"Parent"` // the call whose code made this one
	Tool     string  `parquet:"tool,dict" of:"Name"`
	Toolset  *string `parquet:"toolset,optional,dict"` // null for a tool that does not exist

	RawArguments string   `parquet:"raw_arguments"`
	Arguments    *string  `parquet:"arguments,optional"` // JSON object after repair and coercion; null when never one
	Coerced      []string `parquet:"coerced,list" parquet-element:",dict"`
	Repaired     bool     `parquet:"repaired"`
	Rewritten    []string `parquet:"rewritten,list" parquet-element:",dict"` // hooks that replaced the arguments
	Via          *string  `parquet:"via,optional,dict"`                      // bridge tool of the call

	Verdict         *string `parquet:"verdict,optional,dict" of:"Verdict.Verdict"` // the verdict columns are null without a policy's say
	VerdictRule     *string `parquet:"verdict_rule,optional,dict" of:"Verdict.Rule"`
	VerdictReason   *string `parquet:"verdict_reason,optional,dict" of:"Verdict.Reason"`
	VerdictDecision *string `parquet:"verdict_decision,optional,dict" of:"Verdict.Decision"`

	Status      string  `parquet:"status,dict"`
	ErrorClass  *string `parquet:"error_class,optional,dict"`
	Result      string  `parquet:"result"`
	Truncated   bool    `parquet:"truncated"`
	ResultBytes int64   `parquet:"result_bytes"`       // before it was cut
	ExitCode    *int32  `parquet:"exit_code,optional"` // of the command or script that the call ran to its end, or whose end it tells

	Stored    *string  `parquet:"stored,optional"`                     // where in the sandbox the whole result lay
	Untrusted *string  `parquet:"untrusted,optional,dict"`             // source of a result that anybody could have written
	Source    *string  `parquet:"source,optional"`                     // JSON: what answered from outside of the sandbox
	Images    *string  `parquet:"images,optional"`                     // JSON list of what it showed the model
	Runner    bool     `parquet:"runner"`                              // a plugin's, which ran outside of the sandbox
	Masked    []string `parquet:"masked,list" parquet-element:",dict"` // secrets that were replaced in the result
	SameAs    *string  `parquet:"same_as,optional"`                    // call of the turn whose result it shares: it did not run
	Notice    *string  `parquet:"notice,optional"`                     // the harness's words, not in the result

	Ordinal    int32   `parquet:"ordinal" of:"-"`              // place among the episode's calls
	ArgsSHA256 *string `parquet:"args_sha256,optional" of:"-"` // of tool and arguments; null when they were never an object

	// A fault that the run put into the call, and what the tool said before it; null without one.
	PlantedClass   *string  `parquet:"planted_class,optional,dict" of:"Planted.Class,always"`
	PlantedVariant *string  `parquet:"planted_variant,optional,dict" of:"Planted.Variant"`
	PlantedEffect  *string  `parquet:"planted_effect,optional,dict" of:"Planted.Effect,always"`
	PlantedP       *float64 `parquet:"planted_p,optional" of:"Planted.P,always"`
	PlantedTarget  *string  `parquet:"planted_target,optional" of:"Planted.Target"` // JSON
	PlantedFrom    *int32   `parquet:"planted_from,optional" of:"Planted.From,always"`
	PlantedRetries *int32   `parquet:"planted_retries,optional" of:"Planted.Retries"`
	RealStatus     *string  `parquet:"real_status,optional,dict" of:"Planted.RealStatus"`
	RealErrorClass *string  `parquet:"real_error_class,optional,dict" of:"Planted.RealErrorClass"`
	RealResult     *string  `parquet:"real_result,optional" of:"Planted.RealResult"`

	Started   *int64 `parquet:"started,optional,timestamp(microsecond)"`
	ElapsedUS int64  `parquet:"elapsed_us"`
	SandboxUS int64  `parquet:"sandbox_us" of:"SandboxTime"`

	Outcome string `parquet:"outcome,dict" of:"-"` // of the episode
}

// Media is a row of media/: an image that rows name by its digest.
type Media struct {
	SHA256   string  `parquet:"sha256"`
	MIME     string  `parquet:"mime,dict"`
	Width    int32   `parquet:"width"`
	Height   int32   `parquet:"height"`
	Bytes    []byte  `parquet:"bytes,optional"`    // as the model got them; null when the image is missing
	Original *string `parquet:"original,optional"` // digest of what it was made of, where that is something else
	Origin   string  `parquet:"origin,dict"`       // the tool that showed it first, or prompt
}

var (
	Medias       = parquet.NewSchema("media", parquet.SchemaOf(Media{}))
	Trajectories = parquet.NewSchema("trajectory", parquet.SchemaOf(Trajectory{}))
	ToolCalls    = parquet.NewSchema("tool_call", parquet.SchemaOf(ToolCall{}))
)

// bounded are the text columns whose least and greatest value may stand in a file's footer: short, and ours. Every
// other text has none, because parquet-go writes bounds whole: a 5 MB message would stand in the file six times,
// outside its compression.
var bounded = map[string]bool{"id": true, "episode_id": true, "sha256": true, "outcome": true, "stop": true, "status": true}

// Unbounded lists the text columns without bounds.
func Unbounded(schema *parquet.Schema) (columns [][]string) {
	for _, path := range schema.Columns() {
		leaf, ok := schema.Lookup(path...)
		if ok && leaf.Node.Type().Kind() == parquet.ByteArray && !bounded[strings.Join(path, ".")] {
			columns = append(columns, path)
		}
	}
	return columns
}
