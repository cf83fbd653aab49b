package scripted

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// The ways to word an error, for Config.Errors.
const (
	ErrorsOpenAI = "openai"
	ErrorsVLLM   = "vllm"
)

// ErrorStyles lists the names that Config.Errors takes.
func ErrorStyles() []string { return []string{ErrorsOpenAI, ErrorsVLLM} }

// refusal is an answer that is not a reply. The zero value closes the connection instead.
type refusal struct {
	status  int
	page    string // sent instead of the error below
	Message string `json:"message"`
	Kind    string `json:"type"`
	Param   any    `json:"param"`
	Code    any    `json:"code"` // a text or, of vLLM, the status
}

func invalid(code, message string) *refusal {
	r := &refusal{status: http.StatusBadRequest, Kind: "invalid_request_error", Message: message}
	if code != "" {
		r.Code = code
	}
	return r
}

func notJSON(err error) *refusal {
	return invalid("", fmt.Sprintf("We could not parse the JSON body of your request: %v", err))
}

func (c *Config) noModel(id string) *refusal {
	return &refusal{status: http.StatusNotFound, Kind: "invalid_request_error", Code: "model_not_found",
		Message: "The model `" + id + "` does not exist (this server has `" + c.Model + "`)."}
}

var (
	wrongKey = &refusal{status: http.StatusUnauthorized, Kind: "invalid_request_error", Code: "invalid_api_key",
		Message: "Incorrect API key provided."}
	tooLarge   = &refusal{status: http.StatusRequestEntityTooLarge, Kind: "invalid_request_error", Message: "the request is too large"}
	overloaded = &refusal{status: http.StatusServiceUnavailable, Kind: "server_error", Code: "overloaded",
		Message: "The engine is currently overloaded, please try again later"}
	unavailable = &refusal{status: http.StatusServiceUnavailable, Kind: "server_error", Code: "service_unavailable",
		Message: "The service is temporarily unavailable."}
)

func (r *refusal) write(w http.ResponseWriter) {
	if r.status == 0 {
		panic(http.ErrAbortHandler) // net/http closes the connection and logs nothing
	}
	writeText(w, r.status, cmp.Or(r.page, r.body()))
}

func (r *refusal) body() string { return literal(map[string]*refusal{"error": r}) }

func writeJSON(w http.ResponseWriter, value any) { writeText(w, http.StatusOK, literal(value)) }

func writeText(w http.ResponseWriter, status int, body string) {
	kind := "application/json"
	if strings.HasPrefix(body, "<") {
		kind = "text/html"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// tooLong refuses a conversation of so many tokens, or one that leaves no room for a reply of the length that was
// asked for.
func (c *Config) tooLong(room, prompt, reply int) *refusal {
	if c.Errors == ErrorsVLLM {
		return &refusal{status: http.StatusBadRequest, Kind: "BadRequestError", Param: "input_tokens", Code: http.StatusBadRequest,
			Message: fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d output tokens and "+
				"your prompt contains at least %d input tokens, for a total of at least %d tokens. Please reduce the length of the "+
				"input prompt or the number of requested output tokens.", room, reply, prompt, prompt+reply)}
	}
	asked := fmt.Sprintf("your messages resulted in %d tokens. Please reduce the length of the messages.", prompt)
	if reply > 0 {
		asked = fmt.Sprintf("you requested %d tokens (%d in the messages, %d in the completion). Please reduce the length of the "+
			"messages or completion.", prompt+reply, prompt, reply)
	}
	r := invalid("context_length_exceeded", fmt.Sprintf("This model's maximum context length is %d tokens. However, %s", room, asked))
	r.Param = "messages"
	return r
}
