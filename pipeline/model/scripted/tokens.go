package scripted

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The tokenizer has a token for every byte, whose id is its value, and one for each mark below. Encoding loses
// nothing: detokenizing gives the text back byte by byte.
var marks = [...]string{
	"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>",
	"<tool_response>", "</tool_response>",
}

const firstMark = 256

// firstToken is the token that a text begins with, and its length.
func firstToken(s string) (id int32, size int) {
	if s[0] == '<' {
		for i, m := range marks {
			if strings.HasPrefix(s, m) {
				return firstMark + int32(i), len(m)
			}
		}
	}
	return int32(s[0]), 1
}

// countTokens is the number of tokens of a text.
func countTokens(s string) int {
	n := len(s)
	for _, m := range marks {
		n -= strings.Count(s, m) * (len(m) - 1)
	}
	return n
}

// encode gives the tokens of a text.
func encode(s string) []int32 {
	ids := make([]int32, 0, len(s))
	for s != "" {
		id, size := firstToken(s)
		ids = append(ids, id)
		s = s[size:]
	}
	return ids
}

// decode is the text of a token; false when there is none with that id.
func decode(id int32) (string, bool) {
	switch {
	case id >= 0 && id < firstMark:
		return string([]byte{byte(id)}), true
	case id >= firstMark && int(id) < firstMark+len(marks):
		return marks[id-firstMark], true
	}
	return "", false
}

// start is the start of a text that has at most so many tokens and ends between two characters.
func start(s string, limit int) string {
	at := 0
	for n := 0; n < limit && at < len(s); n++ {
		_, size := firstToken(s[at:])
		at += size
	}
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at]
}

// tokenize is vLLM's endpoint: the tokens of a text, or of the prompt that a conversation becomes.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		tooLarge.write(w)
		return
	}
	var ask struct {
		Prompt *string `json:"prompt"`
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
		prompt, _, _ := s.cfg.render(req)
		ask.Prompt = &prompt
	}
	tokens := encode(*ask.Prompt)
	writeJSON(w, map[string]any{"count": len(tokens), "max_model_len": cmp.Or(s.cfg.Context, 1<<30), "tokens": tokens})
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

// maxTop is how many alternatives to a token can be asked for.
const maxTop = 20

// logprobs of a reply, in OpenAI's shape. There is an entry for every token, marks and the end of the turn among them,
// as vLLM has it: entry n belongs to token_ids[n].
type logprobs struct {
	Content []tokenLogprob `json:"content"`
}

type tokenLogprob struct {
	Token   string         `json:"token"`
	Logprob float64        `json:"logprob"`
	Bytes   []int          `json:"bytes"`
	Top     []tokenLogprob `json:"top_logprobs,omitempty"`
}

func newTokenLogprob(id int32, share float64) tokenLogprob {
	text, _ := decode(id)
	// Four digits are enough, and the same on every machine.
	t := tokenLogprob{Token: text, Logprob: math.Round(math.Log(share)*1e4) / 1e4}
	for _, b := range []byte(text) {
		t.Bytes = append(t.Bytes, int(b))
	}
	if id >= 0x80 && id < firstMark { // not a text by itself
		t.Token = `bytes:\x` + strconv.FormatInt(int64(id), 16)
	}
	return t
}

// logprobs draws the probability of each token from the seed, the episode, the turn and the place in the reply. The
// token that was taken has more than half, its alternatives halve what is left.
func (r *reply) logprobs(ids []int32, from int) *logprobs {
	out := &logprobs{}
	for i, id := range ids {
		place := binary.LittleEndian.AppendUint64(nil, uint64(from+i))
		sum := hash("logprob", r.key, string(place))
		draw := rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:16])))
		share := 0.5 + draw.Float64()/2
		entry := newTokenLogprob(id, share)
		if top := r.req.TopLogprobs; top != nil && *top > 0 {
			entry.Top = []tokenLogprob{entry}
			for n := 1; n < *top; n++ {
				entry.Top = append(entry.Top, newTokenLogprob((id+int32(n)*97)%firstMark, (1-share)/float64(int(1)<<n)))
			}
		}
		out.Content = append(out.Content, entry)
	}
	return out
}
