package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/rawtext"
)

// The wire shapes, decoded from the raw bytes. Fields in which servers differ stay raw and are decoded tolerantly: go-openai's
// types drop vendor fields, and fail for the whole reply if one field has an unexpected type.

type wireReply struct {
	ID      json.RawMessage `json:"id"`
	Object  json.RawMessage `json:"object"`
	Model   json.RawMessage `json:"model"`
	Choices []wireChoice    `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`

	SystemFingerprint json.RawMessage `json:"system_fingerprint"`
	ServiceTier       json.RawMessage `json:"service_tier"`
	addedToReply
}

type wireChoice struct {
	Index        wireIndex       `json:"index"`
	Message      *wireDelta      `json:"message"` // of a plain reply
	Delta        *wireDelta      `json:"delta"`   // of a stream
	FinishReason json.RawMessage `json:"finish_reason"`
	Error        json.RawMessage `json:"error"` // of a gateway, when the provider behind it died
	Logprobs     wireLogprobs    `json:"logprobs"`
	addedToChoice
}

type wireDelta struct {
	Content          json.RawMessage `json:"content"` // text, null, or a list of parts
	Refusal          json.RawMessage `json:"refusal"`
	ReasoningContent json.RawMessage `json:"reasoning_content"` // DeepSeek, older vLLM, SGLang
	Reasoning        json.RawMessage `json:"reasoning"`         // OpenRouter, newer vLLM, Ollama
	ReasoningDetails json.RawMessage `json:"reasoning_details"` // OpenRouter, beside reasoning or alone
	ToolCalls        []wireCall      `json:"tool_calls"`
	FunctionCall     json.RawMessage `json:"function_call"` // the form before tool_calls
}

// wireIndex is a number, which some proxies write as a string or with a fraction.
type wireIndex struct {
	n     int32
	given bool
}

func (w *wireIndex) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	*w = wireIndex{int32(max(math.MinInt32, min(f, math.MaxInt32))), err == nil && f == f}
	return nil
}

type wireCall struct {
	Index    wireIndex       `json:"index"`
	ID       json.RawMessage `json:"id"`
	Function struct {
		Name      json.RawMessage `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // text; from some servers the object itself
	} `json:"function"`
}

type wireUsage struct {
	Prompt         *float64 `json:"prompt_tokens"`
	Completion     *float64 `json:"completion_tokens"`
	PromptCacheHit float64  `json:"prompt_cache_hit_tokens"` // DeepSeek
	PromptDetails  struct {
		Cached float64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetail struct {
		Reasoning float64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// refusal is the error of a response with status 200 that is not a usable reply.
type refusal struct {
	class, message string
	said           problem
}

func (r *refusal) Error() string { return r.message }

// draft is a reply while its parts arrive. A plain reply is a single part, so both ways give equal messages.
type draft struct {
	id, model  string
	usage      episode.Usage
	finish     string
	choices    bool
	content    wireText
	refused    wireText
	reasonings [3]wireText // by field; servers that send two send the same text in both
	calls      []*draftCall
	oldCall    bool // there is a function_call
	lastCall   int  // the call that a fragment without index continues
	details    details
	tokens     tokenDraft
	service    episode.Service
	repairs    []string
	kept       []episode.Member // original fields
	err        *refusal
}

type draftCall struct {
	index    int32
	id, name string
	args     wireText
}

// wireText is a JSON string whose fragments are joined before it is decoded, as a fragment may end within a character: between
// two escapes, or two bytes.
type wireText json.RawMessage

// add appends raw if it is a string. It may keep the memory and write into it.
func (t *wireText) add(raw json.RawMessage) {
	switch {
	case len(raw) < 2 || raw[0] != '"':
	case *t == nil:
		*t = wireText(raw)
	default:
		*t = append((*t)[:len(*t)-1], raw[1:]...)
	}
}

func (t wireText) String() string { return text(json.RawMessage(t)) }

// noCalls finds an empty object of calls, which some proxies send for an empty list. In a string its quotes would be escaped.
var noCalls = regexp.MustCompile(`"tool_calls"\s*:\s*\{\s*\}`)

// add takes one JSON document: a plain reply or a chunk of a stream.
func (d *draft) add(data []byte) {
	if d.err != nil {
		return
	}
	var reply wireReply
	err := json.Unmarshal(data, &reply)
	if err != nil && noCalls.Match(data) {
		reply = wireReply{}
		err = json.Unmarshal(noCalls.ReplaceAll(data, []byte(`"tool_calls":[]`)), &reply)
	}
	if err != nil {
		d.err = &refusal{class: ClassMalformed, message: fmt.Sprintf("the reply is not a chat completion (%v): %s", err, excerpt(data))}
		return
	}
	if present(reply.Error) || text(reply.Object) == "error" {
		d.fail(data)
		return
	}
	if d.id == "" {
		d.id = scalar(reply.ID)
	}
	if name := text(reply.Model); name != "" {
		d.model = name
	}
	if u, ok := readUsage(reply.Usage); ok {
		d.usage = u // the last one counts, as some servers send it with each chunk
	}
	addService(&d.service, &reply)
	for _, s := range servers {
		if s.reply != nil {
			s.reply(d, &reply)
		}
	}
	for i := range reply.Choices {
		choice := &reply.Choices[i]
		if !choice.first(i) {
			continue // we ask for a single choice
		}
		d.choices = d.choices || choice.Delta != nil || choice.Message != nil
		if present(choice.Error) {
			d.fail(choice.Error)
			return
		}
		if choice.Delta != nil {
			d.addPart(choice.Delta, false)
		} else if choice.Message != nil {
			d.addPart(choice.Message, true)
		}
		d.tokens.logprobs.add(choice.Logprobs)
		for _, s := range servers {
			if s.choice != nil {
				s.choice(d, choice)
			}
		}
		if reason := text(choice.FinishReason); reason != "" {
			d.finish = reason
		}
		if choice.Delta == nil {
			return // further choices are ignored, whatever their index
		}
	}
}

// first reports whether the choice has index 0; without an index its place in the list counts.
func (c *wireChoice) first(place int) bool {
	if c.Index.given {
		return c.Index.n == 0
	}
	return place == 0
}

// fail takes an error from a body with status 200.
func (d *draft) fail(data []byte) {
	said := parseProblem(data)
	class, message := classify(200, said)
	d.err = &refusal{class: class, message: message, said: said}
}

func (d *draft) addPart(part *wireDelta, whole bool) {
	d.addContent(part.Content)
	d.refused.add(part.Refusal)
	d.reasonings[0].add(part.ReasoningContent)
	d.reasonings[1].add(part.Reasoning)
	d.addDetails(part.ReasoningDetails)
	d.oldCall = d.oldCall || text(field(part.FunctionCall, "name")) != ""
	for i := range part.ToolCalls {
		d.addCall(&part.ToolCalls[i], whole)
	}
}

// addContent takes a string or a list of parts; Mistral puts its reasoning among the parts.
func (d *draft) addContent(raw json.RawMessage) {
	if len(raw) == 0 || raw[0] != '[' {
		d.content.add(raw)
		return
	}
	for _, part := range contentParts(raw) {
		if part.Text == nil && part.Thinking == nil {
			d.note("left out a part of the content: %s", lineOf(cmp.Or(text(part.Type), "without a type"), longestWord))
		}
		d.content.add(part.Text)
		d.reasonings[0].add(part.Thinking)
		for _, thought := range contentParts(part.Thinking) {
			d.reasonings[0].add(thought.Text)
		}
	}
}

// addDetails takes OpenRouter's reasoning_details. Their texts are the reasoning if no other field has it; encrypted entries
// have none.
func (d *draft) addDetails(raw json.RawMessage) {
	d.details.add(raw)
	var parts []struct{ Text, Summary json.RawMessage }
	if !present(raw) || json.Unmarshal(raw, &parts) != nil {
		return
	}
	for _, part := range parts {
		d.reasonings[2].add(part.Text)
		d.reasonings[2].add(part.Summary)
	}
}

// addCall adds a call, or appends a fragment to its call. In a whole message every entry is a separate call, whatever its id.
func (d *draft) addCall(part *wireCall, whole bool) {
	id, name, index := text(part.ID), text(part.Function.Name), part.Index
	if id == "" && name == "" && !index.given && !present(part.Function.Arguments) {
		return
	}
	at := -1
	switch {
	case whole:
	case index.given:
		// The last with that index: some servers give every call the index 0 and different ids.
		for i := len(d.calls) - 1; i >= 0 && at < 0; i-- {
			if d.calls[i].index == index.n {
				at = i
			}
		}
	case id == "" && name == "" && len(d.calls) > 0:
		at = d.lastCall
	case id != "":
		at = slices.IndexFunc(d.calls, func(c *draftCall) bool { return c.id == id })
	}
	if at >= 0 && id != "" && name != "" && d.calls[at].id != "" && d.calls[at].id != id {
		at = -1
	}
	if at < 0 {
		at = len(d.calls)
		if !index.given {
			index.n = int32(at)
		}
		d.calls = append(d.calls, &draftCall{index: index.n})
	}
	call := d.calls[at]
	d.lastCall = at
	if call.id == "" {
		call.id = id
	}
	if !strings.HasPrefix(call.name, name) { // some servers repeat the name in each fragment
		if strings.HasPrefix(name, call.name) {
			call.name = name
		} else {
			call.name += name
		}
	}
	call.args.add(argumentText(part.Function.Arguments))
}

// reader turns drafts into replies.
type reader struct {
	cfg     Config
	missed  sync.Once // warns of a reply without the token ids that were asked for
	unreads sync.Once // warns of a reply with a call in its text
}

// reply turns the draft into a reply. An empty reply comes with an error, and is accepted if retries give no other.
func (r *reader) reply(d *draft, req *Request) (*Reply, error) {
	if d.err != nil {
		return nil, d.err
	}
	if !d.choices {
		return nil, &refusal{class: ClassMalformed, message: "the reply has no message"}
	}
	switch d.finish {
	case "content_filter":
		return nil, &refusal{class: ClassContentPolicy, message: "the server's content filter cut the reply"}
	case "error", "abort", "network_error", "insufficient_system_resource":
		return nil, &refusal{class: ClassServer, message: "the server ended the reply with finish reason " + strconv.Quote(d.finish)}
	}
	reply := &Reply{FinishReason: d.finish, Usage: d.usage, Model: d.model, RequestID: d.id, Service: d.service}
	m, messages := &reply.Message, len(req.Messages)
	d.texts(m)
	d.think(m, rawtext.LoneOf(r.cfg.Name))
	m.Calls = d.finishedCalls(messages)
	var tokens []string
	reply.Tokens, tokens = d.tokens.tokens(d.usage)
	d.repairs = append(d.repairs, tokens...)
	if cutLast(m.Calls, d.finish) {
		d.note("truncated call: %s", m.Calls[len(m.Calls)-1].Name)
	}
	err := r.readRawCalls(req, m, d)
	reply.Repairs, reply.Raw = d.repairs, d.raw()
	switch {
	case err != nil || len(m.Calls) > 0:
		return reply, err
	case d.lost() && len(req.Tools) > 0:
		return reply, &refusal{class: ClassMalformed, message: d.loss()}
	case strings.TrimSpace(m.Content) == "" && d.finish != "length":
		return reply, &refusal{class: ClassEmpty, message: "the reply has neither text nor calls"}
	}
	return reply, nil
}

// readUsage reads the token counts. Prompt and reply have at least one token, so a 0 is not a count, and would make the request
// free.
func readUsage(raw json.RawMessage) (episode.Usage, bool) {
	if !present(raw) {
		return episode.Usage{}, false
	}
	var w wireUsage
	json.Unmarshal(raw, &w) // a field of an unexpected type does not stop the others
	if w.Prompt == nil || w.Completion == nil || *w.Prompt < 1 || *w.Completion < 1 {
		return episode.Usage{}, false
	}
	count := func(f float64) int { return int(max(0, min(f, 1<<40))) }
	return episode.Usage{
		Prompt: count(*w.Prompt), Completion: count(*w.Completion),
		Cached:    count(max(w.PromptDetails.Cached, w.PromptCacheHit)),
		Reasoning: count(w.CompletionDetail.Reasoning), Reported: true,
	}, true
}

// present reports whether a value is neither absent nor null.
func present(raw json.RawMessage) bool {
	return len(raw) > 0 && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

// excerpt is the start of a body, for an error message.
func excerpt(data []byte) string {
	const longest = 200
	data = bytes.TrimSpace(data)
	start, _ := clip(string(data[:min(len(data), 2*longest)]), longest)
	return strconv.Quote(start)
}
