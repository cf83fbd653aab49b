package model_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// TestSaidNothing asks again where a reply lost its calls, has a call in its text that was not read, or says nothing, each
// time with another seed. What stays so is an error, but for a reply that says nothing.
func TestSaidNothing(t *testing.T) {
	const text = `"message":{"content":"x"}`
	const raw = `"message":{"content":"I look.\n<tool_call>\n{\"name\": \"terminal\", \"arguments\": {}}\n</tool_call>"}`
	tests := []struct {
		name, choice string // of every reply
		format       string
		noTools      bool
		class        string // of the retries and, unless it is empty, of the error; "" is a reply at once
		tries        int
	}{
		{"no calls", `"message":{"content":null},"finish_reason":"tool_calls"`, "auto", false, model.ClassMalformed, 4},
		{"no calls, and a text", text + `,"finish_reason":"tool_calls"`, "auto", false, model.ClassMalformed, 4},
		{"a text where no tools are", text + `,"finish_reason":"tool_calls"`, "auto", true, "", 1},
		{"an old finish reason", text + `,"finish_reason":"function_call"`, "auto", false, model.ClassMalformed, 4},
		{"an old call", `"message":{"content":null,"function_call":{"name":"terminal","arguments":"{}"}},"finish_reason":"stop"`, "auto", false, model.ClassMalformed, 4},
		{"no old call", `"message":{"content":"x","function_call":null},"finish_reason":"stop"`, "auto", false, "", 1},
		{"Gemini's", `"message":{"content":""},"finish_reason":"MALFORMED_FUNCTION_CALL"`, "auto", false, model.ClassMalformed, 4},
		{"Gemini's through a proxy", `"message":{"content":""},"finish_reason":"malformed_function_call"`, "auto", false, model.ClassMalformed, 4},
		{"Gemini's behind OpenRouter", `"message":{"content":""},"finish_reason":"stop","native_finish_reason":"MALFORMED_FUNCTION_CALL"`, "auto", false, model.ClassMalformed, 4},
		{"calls in the text", raw + `,"finish_reason":"tool_calls"`, "auto", false, "", 1},

		{"nothing", `"message":{"content":null},"finish_reason":"stop"`, "auto", false, model.ClassEmpty, 3},
		{"white space", `"message":{"content":" \n\t"},"finish_reason":"stop"`, "auto", false, model.ClassEmpty, 3},
		{"reasoning alone", `"message":{"content":"","reasoning_content":"hm"},"finish_reason":"stop"`, "auto", false, model.ClassEmpty, 3},
		{"thinking that never ends", `"message":{"content":"<think>hm"},"finish_reason":"stop"`, "auto", false, model.ClassEmpty, 3},
		{"where no tools are", `"message":{"content":null},"finish_reason":"stop"`, "auto", true, model.ClassEmpty, 3},
		{"cut at its limit", `"message":{"content":"<think>hm"},"finish_reason":"length"`, "auto", false, "", 1},
		{"a refusal", `"message":{"content":null,"refusal":"no"},"finish_reason":"stop"`, "auto", false, "", 1},

		{"a call that auto reads", raw + `,"finish_reason":"stop"`, "auto", false, "", 1},
		{"a call of another format than was named", raw + `,"finish_reason":"stop"`, "kimi_k2", false, model.ClassUnread, 3},
		{"a call where no format was named", raw + `,"finish_reason":"stop"`, "", false, model.ClassUnread, 3},
		{"a call where none is to be looked for", raw + `,"finish_reason":"stop"`, "native", false, "", 1},
		{"a call without tools", raw + `,"finish_reason":"stop"`, "auto", true, "", 1},
		{"a call that goes on", strings.Replace(raw, `</tool_call>`, `</tool_call>\n\nThere it is.`, 1) + `,"finish_reason":"stop"`, "auto", false, model.ClassUnread, 3},
		{"a call that is cut", strings.Replace(raw, `</tool_call>`, `</tool_call>\n\nThere it`, 1) + `,"finish_reason":"length"`, "auto", false, "", 1},
	}
	for _, tt := range tests {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %v", tt.name, stream), func(t *testing.T) {
				var seeds []int
				url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
					var body struct{ Seed int }
					json.NewDecoder(r.Body).Decode(&body)
					seeds = append(seeds, body.Seed)
					if choice := `{"choices":[{` + tt.choice + `}]}`; stream {
						io.WriteString(w, "data: "+strings.Replace(choice, `"message"`, `"delta"`, 1)+"\n\ndata: [DONE]\n\n")
					} else {
						io.WriteString(w, choice)
					}
				})
				client := open(t, model.Config{Settings: model.Settings{BaseURL: url, Stream: stream, ToolFormat: tt.format}, Patience: model.Patience{Retries: 5}})
				req := model.Request{Messages: hello, Seed: new(7), Tools: []json.RawMessage{terminal}}
				if tt.noTools {
					req.Tools = nil
				}
				got, err := client.Complete(t.Context(), req)
				retries := got.Retries
				if tt.class == "" || tt.class == model.ClassEmpty {
					if err != nil {
						t.Fatal(err)
					}
				} else if e := asError(t, err); e.Class != tt.class || e.Fatal {
					t.Fatalf("error = %v, want class %s", e, tt.class)
				} else {
					retries = e.Retries
				}
				if want := []int{7, 8, 9, 10}[:tt.tries]; !slices.Equal(seeds, want) {
					t.Errorf("seeds = %v, want %v", seeds, want)
				}
				if len(retries) != tt.tries-1 {
					t.Errorf("retries = %+v, want %d", retries, tt.tries-1)
				}
				for _, fault := range retries {
					if fault.Class != tt.class {
						t.Errorf("retry %+v, want class %s", fault, tt.class)
					}
				}
			})
		}
	}
}

// TestSaidLater takes the first reply that says something.
func TestSaidLater(t *testing.T) {
	var asked atomic.Int64
	url := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		choice := `"message":{"content":"Done."},"finish_reason":"stop"`
		if asked.Add(1) == 1 {
			choice = `"message":{"content":""},"finish_reason":"stop"`
		}
		fmt.Fprintf(w, `{"choices":[{%s}]}`, choice)
	})
	got := reply(t, open(t, model.Config{Settings: model.Settings{BaseURL: url}, Patience: model.Patience{Retries: 5}}), model.Request{})
	if got.Message.Content != "Done." || len(got.Retries) != 1 || got.Retries[0].Class != model.ClassEmpty || got.Retried != 1 {
		t.Errorf("reply = %+v", got)
	}
}

// TestUnreadIsSaid: the first call that was not read is a warning, which says what to do.
func TestUnreadIsSaid(t *testing.T) {
	var log bytes.Buffer
	const body = `{"choices":[{"message":{"content":"<start_function_call>call:terminal{}<end_function_call>"},"finish_reason":"stop"}]}`
	client := open(t, model.Config{Settings: model.Settings{BaseURL: says(t, 200, body), ToolFormat: "auto"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2 {
		_, err := client.Complete(t.Context(), model.Request{Messages: hello, Tools: []json.RawMessage{terminal}})
		if e := asError(t, err); e.Class != model.ClassUnread || e.Fault().Outcome != episode.ModelError {
			t.Errorf("error = %v", e)
		}
	}
	if got := strings.Count(log.String(), "level=WARN"); got != 1 || !strings.Contains(log.String(), "tool_format: native") {
		t.Errorf("%d warnings, want 1:\n%s", got, &log)
	}
}
