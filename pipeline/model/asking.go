package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// The choices of Config.ToolChoice that are not the name of a tool.
const (
	ToolChoiceAuto     = "auto"
	ToolChoiceNone     = "none"
	ToolChoiceRequired = "required"
	// ToolChoiceFirst requires a call in the first turn of an episode, and leaves the other turns to the model.
	ToolChoiceFirst = "required_first"
)

// The values of Config.SendReasoning.
const (
	ReasoningAuto   = "auto"
	ReasoningAlways = "true"
	ReasoningNever  = "false"
)

// The values of Config.MaxTokensField.
const (
	LimitAuto       = "auto"
	LimitTokens     = "max_tokens"
	LimitCompletion = "max_completion_tokens"
)

// checkAsking reports what is wrong with the settings of requests.
func (c Config) checkAsking() error {
	var errs []error
	oneOf := func(name, value string, have ...string) {
		if value != "" && !slices.Contains(have, value) {
			errs = append(errs, fmt.Errorf("%s %q (want %s)", name, value, strings.Join(have, ", ")))
		}
	}
	oneOf("max_tokens_field", c.MaxTokensField, LimitAuto, LimitTokens, LimitCompletion)
	oneOf("send_reasoning", c.SendReasoning, ReasoningAuto, ReasoningAlways, ReasoningNever)
	if c.ToolChoice != "" && !toolName.MatchString(c.ToolChoice) {
		errs = append(errs, fmt.Errorf("tool_choice %q (want auto, none, required, required_first or the name of a tool)", c.ToolChoice))
	}
	if c.ReasoningEffort != strings.TrimSpace(c.ReasoningEffort) {
		errs = append(errs, fmt.Errorf("reasoning_effort %q has white space around it", c.ReasoningEffort))
	}
	if _, err := json.Marshal(c.Provider); err != nil {
		errs = append(errs, fmt.Errorf("provider: %w", err))
	}
	// A null removes a field for a server that refuses it; any other value would contradict the setting.
	for name, given := range map[string]bool{
		"temperature": c.Temperature != nil, "top_p": c.TopP != nil, "reasoning_effort": c.ReasoningEffort != "",
		LimitTokens: c.MaxTokens > 0, LimitCompletion: c.MaxTokens > 0,
		"tool_choice": c.ToolChoice != "", "parallel_tool_calls": c.ParallelToolCalls != nil, "provider": c.Provider != nil,
	} {
		if value, also := c.ExtraBody[name]; given && also && value != nil {
			errs = append(errs, fmt.Errorf("%s is given by itself and as an extra body field; leave one out", name))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,128}$`)

// ask sets the fields of a request for sampling, reasoning and tool choice.
func (w *writer) ask(req Request, offered toolList, set func(name string, value any)) {
	given := func(name string, override, own *float64) { // sends a 0, too, which the library would leave out
		if v := cmp.Or(override, own); v != nil {
			set(name, *v)
		}
	}
	given("temperature", req.Sampling.Temperature, w.cfg.Temperature)
	given("top_p", req.Sampling.TopP, w.cfg.TopP)
	if effort := cmp.Or(req.Sampling.ReasoningEffort, w.cfg.ReasoningEffort); effort != "" {
		set("reasoning_effort", effort)
	}
	if w.cfg.Provider != nil {
		set("provider", w.cfg.Provider)
	}
	if len(req.Tools) == 0 { // servers refuse these fields in a request without tools
		return
	}
	if choice := w.toolChoice(req, offered); choice != nil {
		set("tool_choice", choice)
	}
	if w.cfg.ParallelToolCalls != nil {
		set("parallel_tool_calls", *w.cfg.ParallelToolCalls)
	}
}

// toolChoice is the value of the field, or nil. It is nil for a tool that the request does not offer.
func (w *writer) toolChoice(req Request, offered toolList) any {
	switch choice := w.cfg.ToolChoice; choice {
	case "":
		return nil
	case ToolChoiceAuto, ToolChoiceNone, ToolChoiceRequired:
		return choice
	case ToolChoiceFirst:
		if req.Turn > 0 {
			return nil
		}
		return ToolChoiceRequired
	default:
		if !slices.Contains(offered.names, choice) {
			return nil
		}
		return map[string]any{"type": "function", "function": map[string]string{"name": choice}}
	}
}

func nameOf(tool json.RawMessage) string {
	var t struct {
		Function struct{ Name string }
	}
	json.Unmarshal(tool, &t) // the name stays empty if this fails
	return t.Function.Name
}

// limit is the most tokens of a reply, or 0 to send no limit. Servers refuse a request with both names of it, so an extra
// body field of either name replaces the setting.
func (w *writer) limit(req Request) int {
	if w.cfg.ExtraBody[LimitTokens] != nil || w.cfg.ExtraBody[LimitCompletion] != nil {
		return 0
	}
	return cmp.Or(req.MaxTokens, req.Sampling.MaxTokens, w.cfg.MaxTokens)
}

// limitField is the name under which the limit is sent. Most servers know only max_tokens.
func (w *writer) limitField() string {
	if learnt := w.learntLimit.Load(); learnt != nil {
		return *learnt
	}
	if own := w.cfg.MaxTokensField; own != "" && own != LimitAuto {
		return own
	}
	return cmp.Or(w.server.limit, LimitTokens)
}

// The classes of tries that the server refused because of an optional field or its name, and that were sent again without.
const (
	ClassLimitField = "max_tokens_field"
	ClassSeedField  = "seed_field"
)

// refusesField finds complaints about a field itself, not about its value; aboutSeed finds those about the seed.
var (
	refusesField = regexp.MustCompile(`unsupported parameter|not support|not permitted|unrecognized|unrecognised|unknown|unexpected|extra_forbidden|extra inputs|not allowed|no longer supported|use 'max_`)
	aboutSeed    = regexp.MustCompile(`\bseed\b`)
)

// limitFields maps each name of the limit to the other one.
var limitFields = map[string]string{LimitTokens: LimitCompletion, LimitCompletion: LimitTokens}

// relearn checks whether a request was refused because of its seed, or the name of its limit. If so, all later requests of the
// run leave out the seed, or use the other name, and the class says that this request can be sent again that way. That happens
// at most once for each field, since the change is never undone.
func (w *writer) relearn(x *exchange, failed *Error) (class string) {
	words := strings.ToLower(failed.Message)
	// LiteLLM refuses fields that a provider does not know with status 500, too.
	if failed.Class != ClassBadRequest && failed.Class != ClassServer || !refusesField.MatchString(words) {
		return ""
	}
	learnt := func(what, field string) {
		w.cfg.Logger.Warn("the server refuses a field; for the rest of the run it is sent "+what, "field", field, "said", failed.Message)
	}
	if !x.seedless && aboutSeed.MatchString(words) {
		if w.unseeded.CompareAndSwap(false, true) {
			learnt("nothing of it", "seed")
		}
		return ClassSeedField
	}
	sent, other := x.limitField, limitFields[x.limitField]
	if sent == "" || w.cfg.MaxTokensField != "" && w.cfg.MaxTokensField != LimitAuto || !strings.Contains(strings.ReplaceAll(words, other, ""), sent) {
		return ""
	}
	if w.learntLimit.CompareAndSwap(nil, &other) {
		learnt("as "+other, sent)
	}
	if w.limitField() != other {
		return ""
	}
	return ClassLimitField
}

// sendReasoning puts the reasoning of an earlier turn into its message. Details hold all of it, and go back unchanged:
// providers check signatures in them.
func (w *writer) sendReasoning(sent *wireMessage, m *episode.Message) {
	always := w.cfg.SendReasoning == ReasoningAlways
	switch {
	case w.cfg.SendReasoning == ReasoningNever:
	case len(m.ReasoningDetails) > 0 && (always || w.server.details):
		sent.ReasoningDetails = m.ReasoningDetails
	case always && w.server.details:
		sent.RouterReasoning = m.Reasoning
	case always:
		sent.Reasoning = m.Reasoning
	}
}
