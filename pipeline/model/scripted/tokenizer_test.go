package scripted

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzTokenizer: nothing is lost, nothing is counted otherwise than it is encoded, however a client writes its JSON.
func FuzzTokenizer(f *testing.F) {
	for _, s := range []string{"", "a<b", "<|im_start|>user\nhé ☁<|im_end|>", "<think>\n</think>", "<|im_<|im_end|>", "\\ \" / < > & \u2028", "\x80<", "<tool_call", "\x00\x1f"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		ids := encode(s)
		var b strings.Builder
		for _, id := range ids {
			text, ok := decode(id)
			if !ok {
				t.Fatalf("token %d of %q does not exist", id, s)
			}
			b.WriteString(text)
		}
		if b.String() != s {
			t.Errorf("%q comes back as %q", s, b.String())
		}
		if n := countTokens(s); n != len(ids) {
			t.Errorf("%q: %d tokens are counted, %d encoded", s, n, len(ids))
		}
		if limit >= 0 && limit < 1<<20 {
			short := start(s, limit)
			if !strings.HasPrefix(s, short) || countTokens(short) > limit || utf8.ValidString(s) && !utf8.ValidString(short) {
				t.Errorf("start(%q, %d) = %q", s, limit, short)
			}
		}
		plain, _ := json.Marshal(s)
		for _, raw := range []string{string(plain), literal(s), strings.ReplaceAll(string(plain), "/", `\/`), `[{"type":"text","text":` + string(plain) + `}]`, "\"" + s + "\""} {
			if !json.Valid([]byte(raw)) {
				continue
			}
			var got content
			if err := json.Unmarshal([]byte(raw), &got); err != nil || countTokens(got.text) != len(encode(got.text)) {
				t.Errorf("content %s: %d tokens are counted, %d encoded, %v", raw, countTokens(got.text), len(encode(got.text)), err)
			}
		}
	})
}
