package scripted

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// tokenize is vLLM's endpoint: the tokens of a text, or of the prompt that a conversation becomes.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		tooLarge.write(w)
		return
	}
	var ask struct {
		Prompt  *string `json:"prompt"`
		Strings bool    `json:"return_token_strs"`
	}
	prompt := tally{keep: true}
	switch err := json.Unmarshal(body, &ask); {
	case err != nil:
		invalid("", fmt.Sprintf("We could not parse the JSON body of your request: %v", err)).write(w)
		return
	case ask.Prompt != nil:
		prompt.text(*ask.Prompt)
	default:
		req, complaint := parse(body)
		if complaint != "" {
			invalid("", complaint).write(w)
			return
		}
		s.render(req, &prompt)
	}
	answer := struct {
		Count   int             `json:"count"`
		Room    int             `json:"max_model_len"`
		Tokens  json.RawMessage `json:"tokens"`
		Strings []string        `json:"token_strs"`
	}{len(prompt.ids), s.room(), list(prompt.ids), nil}
	if ask.Strings {
		for _, id := range prompt.ids {
			answer.Strings = append(answer.Strings, newTokenLogprob(id, 1).Token)
		}
	}
	writeJSON(w, http.StatusOK, answer)
}

// detokenize is the way back.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Tokens []int32 `json:"tokens"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&ask); err != nil {
		invalid("", fmt.Sprintf("We could not parse the JSON body of your request: %v", err)).write(w)
		return
	}
	var b strings.Builder
	for _, id := range ask.Tokens {
		text, ok := decode(id)
		if !ok {
			invalid("", fmt.Sprintf("there is no token %d (want 0 to %d)", id, firstMark+len(marks)-1)).write(w)
			return
		}
		b.WriteString(text)
	}
	writeJSON(w, http.StatusOK, map[string]string{"prompt": b.String()})
}

// endless is the length of a conversation where Config.Context sets none.
const endless = 1 << 30

// room is the number of tokens that a conversation may have.
func (s *Server) room() int {
	if s.cfg.Context == 0 {
		return endless
	}
	return s.cfg.Context
}
