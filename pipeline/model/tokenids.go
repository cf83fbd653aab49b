package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"trajgen/pipeline/episode"
)

// TokenIDsAuto asks for token ids in the ways of all servers; servers ignore fields that they do not know.
const TokenIDsAuto = "auto"

// asksFor returns the body fields that ask for token ids.
func (c Config) asksFor() (fields []string) {
	for _, s := range servers {
		if c.TokenIDs == s.name || c.TokenIDs == TokenIDsAuto && (s.whole == "" || !c.Stream) {
			fields = append(fields, s.tokens...)
		}
	}
	return fields
}

// checkTokenIDs says why the servers cannot send token ids.
func (c Config) checkTokenIDs() error {
	asked := c.TokenServer()
	if asked == "" {
		return nil
	}
	names := []string{TokenIDsAuto}
	var none error
	for _, s := range servers {
		if s.tokens != nil {
			names = append(names, s.name)
		}
		switch {
		case asked == s.name && s.whole != "" && c.Stream:
			return errors.New(s.whole + " (want no stream)")
		case s.noTokens && slices.ContainsFunc(c.bases(), s.at):
			none = fmt.Errorf("%s sends no token ids (want a server of vLLM, SGLang or llama.cpp)", s.hosts[0])
		}
	}
	if !slices.Contains(names, asked) {
		return fmt.Errorf("token ids are asked of %q (want one of %s)", asked, strings.Join(names, ", "))
	}
	return none
}

// missTokens warns once of a server that does not send the token ids that were asked for. The run goes on, and its rows say
// that their tokens are unknown.
func (r *reader) missTokens(reply *Reply) {
	if r.cfg.TokenIDs == "" || len(reply.Tokens.Prompt) > 0 && len(reply.Tokens.Completion) > 0 {
		return
	}
	r.missed.Do(func() {
		r.cfg.Logger.Warn("a reply has not all of the token ids that were asked for; its row cannot be trained on as it is",
			"token_ids", r.cfg.TokenIDs, "prompt_ids", len(reply.Tokens.Prompt), "completion_ids", len(reply.Tokens.Completion),
			"repairs", reply.Repairs)
	})
}

// wireIDs is a list of token ids. With an invalid list the reply only loses its ids, and problem says why.
type wireIDs struct {
	ids     episode.IDs
	problem string
}

func (w *wireIDs) UnmarshalJSON(data []byte) error {
	*w = wireIDs{}
	if err := w.ids.UnmarshalJSON(data); err != nil {
		w.problem = err.Error()
	}
	return nil
}

// add appends a later part of the same list.
func (w *wireIDs) add(more wireIDs) {
	if w.problem == "" {
		w.problem = more.problem
	}
	if len(w.ids)+len(more.ids) > episode.MaxIDs {
		w.problem = fmt.Sprintf("more than %d token ids", episode.MaxIDs)
	}
	if w.problem != "" {
		w.ids = nil
		return
	}
	w.ids = append(w.ids, more.ids...)
}

// wireLogprobs are the log probabilities of sampled tokens, in any of their shapes. Some servers put the ids in them.
type wireLogprobs struct {
	ids     wireIDs
	values  []float32
	problem string
}

func (w *wireLogprobs) UnmarshalJSON(data []byte) error {
	*w = wireLogprobs{}
	var shape struct {
		Content []struct { // OpenAI
			Token   string      `json:"token"` // "token_id:7" from vLLM with return_tokens_as_token_ids
			ID      json.Number `json:"id"`    // llama.cpp
			Logprob wireNumber  `json:"logprob"`
		} `json:"content"`
		Values []wireNumber `json:"token_logprobs"` // Together
		IDs    wireIDs      `json:"token_ids"`
	}
	json.Unmarshal(data, &shape) // a field of an unexpected type does not stop the others
	for _, entry := range shape.Content {
		w.value(entry.Logprob)
		name, ok := strings.CutPrefix(entry.Token, "token_id:")
		if !ok {
			name = entry.ID.String()
		}
		w.id(name)
	}
	if shape.Content == nil {
		for _, value := range shape.Values {
			w.value(value)
		}
		w.ids = shape.IDs
	}
	return nil
}

// wireNumber is a number; ok is false for any other value, of which encoding/json would make a 0.
type wireNumber struct {
	value float64
	ok    bool
}

func (n *wireNumber) UnmarshalJSON(data []byte) error {
	value, err := strconv.ParseFloat(string(data), 64)
	*n = wireNumber{value, err == nil}
	return nil
}

// value adds a log probability, which must be finite as a float32, the type that trainers use.
func (w *wireLogprobs) value(v wireNumber) {
	switch {
	case !v.ok:
		w.problem = "a token has none"
	case !(math.Abs(v.value) <= math.MaxFloat32):
		w.problem = fmt.Sprintf("%v is none", v.value)
	case len(w.values) == episode.MaxIDs:
		w.problem = fmt.Sprintf("more than %d", episode.MaxIDs)
	default:
		w.values = append(w.values, float32(v.value))
	}
}

// id adds the token id of an entry, which most servers leave out.
func (w *wireLogprobs) id(text string) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		w.ids.problem = "some entries of logprobs have none"
		return
	}
	w.ids.ids = append(w.ids.ids, int32(n))
}

func (w *wireLogprobs) add(more wireLogprobs) {
	if w.problem == "" {
		w.problem = more.problem
	}
	if w.problem == "" && len(w.values)+len(more.values) > episode.MaxIDs {
		w.problem = fmt.Sprintf("more than %d", episode.MaxIDs)
	}
	w.ids.add(more.ids)
	if w.problem != "" {
		w.values = nil
		return
	}
	w.values = append(w.values, more.values...)
}

// tokenDraft collects the tokens of a reply while its parts arrive.
type tokenDraft struct {
	prompt, completion wireIDs
	logprobs, meta     wireLogprobs
}

// asked takes the prompt's ids. A server that repeats them sends the same.
func (t *tokenDraft) asked(prompt wireIDs) {
	if len(t.prompt.ids) == 0 && t.prompt.problem == "" {
		t.prompt = prompt
	}
}

// tokens ends the draft. It drops lists that do not fit together, and notes that as a repair.
func (t *tokenDraft) tokens(usage episode.Usage) (tokens episode.Tokens, repairs []string) {
	note := func(format string, args ...any) { repairs = append(repairs, fmt.Sprintf(format, args...)) }
	if t.prompt.problem != "" {
		note("dropped prompt ids: %s", t.prompt.problem)
	}
	if t.completion.problem != "" {
		note("dropped token ids: %s", t.completion.problem)
	}
	logprobs := t.logprobs
	if len(logprobs.values) == 0 && logprobs.problem == "" {
		logprobs = t.meta
	}
	tokens.Prompt, tokens.Completion = t.prompt.ids, t.completion.ids
	for _, other := range []wireIDs{t.meta.ids, t.logprobs.ids} {
		if len(tokens.Completion) == 0 && t.completion.problem == "" && other.problem == "" {
			tokens.Completion = other.ids
		}
	}
	n := len(tokens.Completion)
	switch {
	case logprobs.problem != "":
		note("dropped logprobs: %s", logprobs.problem)
	case n > 0 && len(logprobs.values) > 0 && len(logprobs.values) != n:
		note("dropped logprobs: %d for %d tokens", len(logprobs.values), n)
	default:
		tokens.Logprobs = logprobs.values
	}
	if p := len(tokens.Prompt); usage.Reported && p > 0 && p != usage.Prompt {
		note("prompt ids: %d, and %d in the usage", p, usage.Prompt)
	}
	if usage.Reported && n > 0 && n != usage.Completion {
		note("token ids: %d, and %d in the usage", n, usage.Completion)
	}
	return tokens, repairs
}
