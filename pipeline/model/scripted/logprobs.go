package scripted

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
)

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
	// Four digits are enough, and the same on every machine.
	t := tokenLogprob{Token: tokenName(id), Logprob: math.Round(math.Log(share)*1e4) / 1e4}
	text, _ := decode(id)
	for _, b := range []byte(text) {
		t.Bytes = append(t.Bytes, int(b))
	}
	return t
}

// tokenName is the text of a token, as far as it is text.
func tokenName(id int32) string {
	if id >= 0x80 && id < firstMark {
		return `bytes:\x` + strconv.FormatInt(int64(id), 16)
	}
	text, _ := decode(id)
	return text
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
