package rows

// Meaning is what columns stand for, in words.
type Meaning struct {
	Columns []string
	Text    string
}

// TrajectoryMeanings say what each column of trajectories is, in the order in which people read them.
var TrajectoryMeanings = []Meaning{
	{[]string{"episode_id"}, "name of the episode: a hash of seed, task and sample"},
	{[]string{"run"}, "fingerprint of the experiment"},
	{[]string{"row", "task_id", "sample", "seed"}, "which episode this is: the place in the dataset, the task, the n-th try at it, the seed of the run"},
	{[]string{"attempt", "earlier_attempts", "resumed_turns"}, "which play of it, what the others died of and what they cost, and the turns from which this one went on after a crash"},
	{[]string{"parent_id", "parent_call", "fork_turn", "depth", "role", "root_reward"}, "of a subagent: the episode, the call and the turn that began it, its generation, leaf or orchestrator, and the reward of the tree's root (its own is null); null for an episode of the run"},
	{[]string{"task"}, "what was asked: prompt, system, setup, checks, limits, tags, difficulty, metadata (JSON text)"},
	{[]string{"distribution", "toolsets", "log_p"}, "which toolsets were drawn, and the natural logarithm of the draw's probability"},
	{[]string{"tools"}, "JSON of each tool, exactly as the model was shown it"},
	{[]string{"messages"}, "the whole conversation: role, content, reasoning, tool_calls (arguments are the raw text, and sent what later requests have in its place), tool_call_id, name, parts (JSON: images by their digests in media, and the texts between them), and harness where neither dataset nor model wrote it"},
	{[]string{"turns"}, "each exchange with the model: usage, times, retries, repairs, raw (fields of the server's message that were changed), what the server said of itself, and its tokens where the episode's are not one sequence"},
	{[]string{"compactions"}, "how the conversation was shortened on its way to the model; messages has everything"},
	{[]string{"mcp_servers"}, "the MCP servers whose tools the episode had: their names, versions and protocols, a digest of all that they said of themselves, whether they were shared with other episodes, and calls and reconnects"},
	{[]string{"drift", "drift_turn", "drift_position", "drift_expected", "drift_got"}, "whether the tokens can be trained on as they are (none), and where not"},
	{[]string{"token_ids", "loss_mask", "logprobs"}, "the whole episode as tokens, 1 where the model sampled; filled where drift is none"},
	{[]string{"sampling_model", "sampling_reasoning_effort", "sampling_temperature", "sampling_top_p", "sampling_max_tokens"}, "how the model was asked; null is what was left to its server"},
	{[]string{"memory", "recalled", "ephemeral"}, "what the agent remembered in the end (JSON), and the two texts at the end of the system message that the harness wrote: the list of skills and the memory, and the run's own"},
	{[]string{"skills", "skills_log_p", "skill_events", "skills_written"}, "whether the episode had the run's skills, and the natural logarithm of that draw's probability; each use of one (offered, listed, viewed, file, script, created, patched, deleted, refused), and the files of those that the agent wrote (JSON)"},
	{[]string{"user_questions", "user_model", "user_usage"}, "what the user was asked, and the tokens of a model that played one, no part of usage"},
	{[]string{"approver_usage"}, "tokens of a model that was asked to approve commands, no part of usage"},
	{[]string{"outcome", "stop"}, "how it ended (success, failure and limit are the agent's doing, the others are not) and why the agent stopped"},
	{[]string{"fault_outcome", "fault_class", "fault_message"}, "what was not the agent's doing; null together"},
	{[]string{"answer", "reward", "rewards"}, "the last message, the weighted mean (null: not judged, or not the agent's doing), the verdict of each check"},
	{[]string{"proof", "proof_gold", "proof_noop", "proof_attacks"}, "what was known of the task's verifier when the run began: the rewards of the reference solution and of doing nothing, the attacks that pass, and all verdicts with the digest of task and conditions (JSON)"},
	{[]string{"twin_role", "twin_of", "twin_class", "twin_variant", "twin_p", "twin_replicate"}, "of a twin: placebo or fault, its clean episode, the planted fault, the probability with which it was planned, and which of several; null for other episodes"},
	{[]string{"twin_turn", "twin_index", "twin_nested", "twin_ordinal", "prefix", "prefix_tokens"}, "the call where the two part, by turn, place and number among the calls of its script (from 1; 0 for the model's own), and among all calls; whether everything before it came out the same (replayed, recorded, diverged), and its tokens, which the clean episode had paid for"},
	{[]string{"reactions", "used_wrong", "used_true", "safe_success", "recoverable"}, "what the agent of a twin did after the call (retry, verify, switch, says, gives_up, ignores), whether it used the wrong or the true value, success without an effect that happened twice or a claim that the end contradicts, and whether the reference solution succeeds with the fault"},
	{[]string{"planted_level", "log_p_planted"}, "in a run that plants faults at a level: the chance at each call, and the natural logarithm of the probability of all that was drawn"},
	{[]string{"usage", "cost_usd", "model"}, "tokens (null where the server did not say), what they cost, and who answered"},
	{[]string{"sandbox"}, "what it ran in: backend, isolation, limits, connections to the outside"},
	{[]string{"web"}, "what the web tools answered from: live, record, replay or corpus"},
	{[]string{"started", "elapsed_us", "phases"}, "when (UTC) and for how long, in microseconds"},
	{[]string{"schema_version"}, "version of these columns"},
}

// ToolCallMeanings say what each column of tool_calls is.
var ToolCallMeanings = []Meaning{
	{[]string{"episode_id", "run", "row", "task_id", "sample", "attempt", "outcome"}, "the episode, as in the trajectories"},
	{[]string{"turn", "index", "call_id", "parent_id"}, "which call of it; the parent is the call whose code made this one"},
	{[]string{"tool", "toolset", "via"}, "what was called, and the bridge tool through which"},
	{[]string{"raw_arguments", "arguments"}, "the model's text, and the JSON object after repair and coercion"},
	{[]string{"ordinal", "args_sha256"}, "the place among the episode's calls, and a digest of tool and arguments (null when those were never an object)"},
	{[]string{"planted_class", "planted_variant", "planted_effect", "planted_p", "planted_target", "planted_from", "planted_retries"}, "a fault that the run put into the call: its class, what became of the real call (none, done, part, twice), the probability, JSON of what it changed, the ordinal where a lasting one began, and how often the harness repeated the call before the model learned of it; null without one"},
	{[]string{"real_status", "real_error_class", "real_result"}, "what the tool said before a planted fault; null without one, and where the tool did not run"},
	{[]string{"repaired", "coerced", "rewritten"}, "whether the text was mended; which arguments were: their types, with name:, renamed:, ignored:, surrogate: in front what else; and hooks that replaced them"},
	{[]string{"verdict", "verdict_rule", "verdict_reason", "verdict_decision"}, "what the command policy said; null without its say"},
	{[]string{"status", "error_class"}, "ok, error, timeout, denied, invalid_arguments, unknown_tool or unavailable, and its kind"},
	{[]string{"exit_code"}, "of the command or script that the call ran to its end, or whose end it tells; null without one"},
	{[]string{"result", "truncated", "result_bytes", "stored"}, "the JSON text that the model got; how large it was before it was cut, and where the whole of it lay"},
	{[]string{"untrusted", "source", "images", "runner", "masked", "same_as", "notice"}, "source of a result that strangers could have written; JSON of what answered from outside of the sandbox; JSON of the images that it showed the model; whether it ran outside of the sandbox; secrets replaced; the identical call that ran in its place; the harness's words"},
	{[]string{"started", "elapsed_us", "sandbox_us"}, "when (UTC) and for how long, in microseconds"},
	{[]string{"schema_version"}, "version of these columns"},
}
