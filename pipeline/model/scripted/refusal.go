package scripted

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// The ways to word an error, for Config.Errors.
const (
	ErrorsOpenAI = "openai"
	ErrorsVLLM   = "vllm"
)

// ErrorStyles lists the names that Config.Errors takes.
func ErrorStyles() []string { return []string{ErrorsOpenAI, ErrorsVLLM} }

// refusal is an answer that is no reply. The zero value closes the connection instead.
type refusal struct {
	status                     int
	kind, param, code, message string
	number                     bool // the code is the status, as vLLM has it
}

func invalid(code, message string) *refusal {
	return &refusal{status: http.StatusBadRequest, kind: "invalid_request_error", code: code, message: message}
}

var wrongKey = &refusal{status: http.StatusUnauthorized, kind: "invalid_request_error", code: "invalid_api_key",
	message: "Incorrect API key provided."}

type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    any     `json:"code"`
}

func (r *refusal) body() errorBody {
	e := errorDetail{Message: r.message, Type: r.kind}
	if r.param != "" {
		e.Param = &r.param
	}
	if r.number {
		e.Code = r.status
	} else if r.code != "" {
		e.Code = r.code
	}
	return errorBody{e}
}

func (r *refusal) write(w http.ResponseWriter) {
	if r.status == 0 {
		panic(http.ErrAbortHandler)
	}
	writeJSON(w, r.status, r.body())
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	writeText(w, status, literal(value))
}

func writeText(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// tooLong refuses a conversation of so many tokens, or one that leaves no room for a reply of the length that was
// asked for.
func (s *Server) tooLong(room, prompt, reply int) *refusal {
	if s.cfg.Errors == ErrorsVLLM {
		return &refusal{status: http.StatusBadRequest, kind: "BadRequestError", param: "input_tokens", number: true,
			message: fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d output tokens and "+
				"your prompt contains at least %d input tokens, for a total of at least %d tokens. Please reduce the length of the "+
				"input prompt or the number of requested output tokens.", room, reply, prompt, prompt+reply)}
	}
	r := invalid("context_length_exceeded", fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages "+
		"resulted in %d tokens. Please reduce the length of the messages.", room, prompt))
	if reply > 0 {
		r.message = fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the "+
			"messages, %d in the completion). Please reduce the length of the messages or completion.", room, prompt+reply, prompt, reply)
	}
	r.param = "messages"
	return r
}
