package scripted

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// endless is the length of a conversation where Config.Context sets none.
const endless = 1 << 30

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
	if err := json.Unmarshal(body, &ask); err != nil {
		notJSON(err).write(w)
		return
	}
	if ask.Prompt == nil {
		req, no := parse(body)
		if no != nil {
			no.write(w)
			return
		}
		prompt, _ := s.cfg.render(req)
		ask.Prompt = &prompt
	}
	var answer struct {
		Count   int      `json:"count"`
		Room    int      `json:"max_model_len"`
		Tokens  []int32  `json:"tokens"`
		Strings []string `json:"token_strs"`
	}
	answer.Tokens, answer.Room = encode(*ask.Prompt), cmp.Or(s.cfg.Context, endless)
	answer.Count = len(answer.Tokens)
	if ask.Strings {
		for _, id := range answer.Tokens {
			answer.Strings = append(answer.Strings, tokenName(id))
		}
	}
	writeJSON(w, answer)
}

// detokenize is the way back.
func detokenize(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Tokens []int32 `json:"tokens"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&ask); err != nil {
		notJSON(err).write(w)
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
	writeJSON(w, map[string]string{"prompt": b.String()})
}
