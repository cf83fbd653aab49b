package model_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

func TestSentArguments(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"a":[`, n/2) + "1" + strings.Repeat("]}", n/2) }
	digits := strings.Repeat("9", 400)
	tests := []struct{ name, give, ran, want string }{
		{"an object", `{"a": 1}`, "", ""},
		{"an object with white space", " {\n}\t", "", ""},
		{"an object that was mended all the same", `{"a": "1"}`, `{"a":1}`, ""},
		{"a key twice", `{"a":1,"a":2}`, "", ""},
		{"everything", `{"a":[-1.5e-3,0,true,null,{"b\"}":"\\ud800 \ud83d\ude00 \u0000 [{"}]}`, "", ""},
		{"nothing", "", "", "{}"},
		{"white space", " \n", `{"a":1}`, "{}"},
		{"null", "null", "", `{"invalid_arguments":"null"}`},
		{"an empty text", `""`, "", `{"invalid_arguments":"\"\""}`},
		{"a text", `"text"`, "", `{"invalid_arguments":"\"text\""}`},
		{"a list", `[{"a":1}]`, "", `{"invalid_arguments":"[{\"a\":1}]"}`},
		{"a number", "7", "", `{"invalid_arguments":"7"}`},
		{"an object in a text that ran", `"{\"a\":1}"`, `{"a":1}`, `{"a":1}`},
		{"broken", `{"a": "x`, "", `{"invalid_arguments":"{\"a\": \"x"}`},
		{"broken, and ran", `{a: 'x'}`, `{"a":"x"}`, `{"a":"x"}`},
		{"two objects", `{"a":1}{"b":2}`, "", `{"invalid_arguments":"{\"a\":1}{\"b\":2}"}`},
		{"NaN", `{"a": NaN}`, "", `{"invalid_arguments":"{\"a\": NaN}"}`},
		{"as deep as may be", deep(100), "", ""},
		{"too deep", deep(102), deep(102), `{"invalid_arguments":` + quoted(deep(102)) + `}`},
		{"a number that no float is", `{"a":1e999}`, `{"a":1e999}`, `{"invalid_arguments":"{\"a\":1e999}"}`},
		{"too many digits", `{"a":` + digits + `}`, "", `{"invalid_arguments":` + quoted(`{"a":`+digits+`}`) + `}`},
		{"a small number", `{"a":1e-999}`, "", ""},
		{"half of a surrogate pair", `{"a":"\uD83D x"}`, `{"a":"\uD83D x"}`, `{"a":"\ufffd x"}`},
		{"the other half", `{"a":"\udc00"}`, "", `{"a":"\ufffd"}`},
		{"two first halves", `{"a":"\ud83d\ud83d\ude00"}`, "", `{"a":"\ufffd\ud83d\ude00"}`},
		{"half behind a backslash", `{"a":"\\\ud83d"}`, "", `{"a":"\\\ufffd"}`},
		{"half in a key", `{"\ud83d":1}`, "", `{"\ufffd":1}`},
	}
	for _, tt := range tests {
		got := model.SentArguments(tt.give, json.RawMessage(tt.ran))
		if got != tt.want {
			t.Errorf("%s: SentArguments(%q, %q) = %q, want %q", tt.name, tt.give, tt.ran, got, tt.want)
		}
	}
}

func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// FuzzSentArguments: what is sent is an object, and arguments that are changed stay in it, word for word, unless others
// ran.
func FuzzSentArguments(f *testing.F) {
	for _, seed := range []string{"", `{"a":"\ud83d"}`, `{"a":1e999}`, `[1`, `{"a":"\\ud83d\"`, "{\"a\":\"\x00\"}", `{"a":{"b":[-1e5,0.1]}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "\uFFFD")
		sent := model.SentArguments(text, nil)
		if model.SentArguments(sent, nil) != "" && sent != "" {
			t.Errorf("SentArguments(%q) = %q, which is not to be sent", text, sent)
		}
		if sent == "" {
			sent = text
		}
		var object map[string]any
		if err := json.Unmarshal([]byte(sent), &object); err != nil || object == nil {
			t.Errorf("SentArguments(%q) = %q: %v", text, sent, err)
		}
	})
}

// TestArgumentsThatServersRead: a server that wants an object in each call, as most do, goes on with a conversation whose
// calls have none.
func TestArgumentsThatServersRead(t *testing.T) {
	url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages []struct {
				Calls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
			}
		}
		json.NewDecoder(r.Body).Decode(&body)
		for _, m := range body.Messages {
			for _, call := range m.Calls {
				var object map[string]any
				if err := json.Unmarshal([]byte(call.Function.Arguments), &object); err != nil || object == nil {
					http.Error(w, fmt.Sprintf(`{"error":{"message":%q}}`, call.Function.Arguments), http.StatusBadRequest)
					return
				}
			}
		}
		io.WriteString(w, `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}`)
	})
	var calls []episode.Call
	for i, arguments := range []string{"", "{", "null", `""`, "[1]", "7", `{"a":1}`, `{"a":1e999}`} {
		calls = append(calls, episode.Call{ID: fmt.Sprint("c", i), Name: "terminal", Arguments: arguments})
	}
	calls = append(calls, episode.Call{ID: "ran", Name: "terminal", Arguments: "{a:1}", Sent: `{"a":1}`})
	got := reply(t, open(t, model.Config{Settings: model.Settings{BaseURL: url}}), model.Request{Messages: append(hello, episode.Message{Role: "assistant", Calls: calls})})
	if got.Message.Content != "ok" {
		t.Errorf("reply = %+v", got)
	}
}
