package plugin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"trajgen/registry"
	"trajgen/tools/internal/chars"
)

// protocolVersion is what describe announces.
const protocolVersion = 1

// Bounds of a plugin's streams.
const (
	maxInput   = 64 << 20      // bytes that may wait for it to read them
	maxLine    = 8<<20 + 4<<10 // a result of 8 MiB in its envelope
	maxLog     = 64 << 20      // standard error of one process
	maxMessage = 4000          // characters of an error's message
)

// request is a line to the plugin. The id comes first.
type request struct {
	ID        int64           `json:"id"`
	Method    string          `json:"method"`
	Protocol  int             `json:"protocol,omitempty"` // describe
	Tool      string          `json:"tool,omitempty"`     // call
	Arguments json.RawMessage `json:"arguments,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
}

func (r request) line() ([]byte, error) { return encode(r) }

// encode writes a line of JSON that leaves JSON texts in a value as they are.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// reply is a line from the plugin, unparsed, with the fields that all replies have.
type reply struct {
	line []byte
	id   int64
}

// readReply reads the id of a line.
func readReply(line []byte) (reply, error) {
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	var head struct {
		ID *int64 `json:"id"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return reply{}, fmt.Errorf("it wrote %s to its standard output, where only answers belong (logs go to standard error)", excerpt(line))
	}
	if head.ID == nil {
		return reply{}, fmt.Errorf("it wrote an answer without an id: %s", excerpt(line))
	}
	return reply{line: line, id: *head.ID}, nil
}

// excerpt returns the beginning of a plugin's output, quoted. The model reads it, though it was not meant to.
func excerpt(line []byte) string {
	const most = 200
	text := registry.Untagged(strings.ToValidUTF8(string(line[:min(len(line), most)]), ""))
	if len(line) > most {
		text += "…"
	}
	return fmt.Sprintf("%q", text)
}

// failure is an error as plugins report it.
type failure struct {
	Class   string `json:"class"`
	Message string `json:"message"`
}

var classPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// result returns the outcome of a call.
func (r reply) result() (json.RawMessage, error) {
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *failure        `json:"error"`
	}
	if err := json.Unmarshal(r.line, &answer); err != nil {
		return nil, errors.New("its answer is not of the form {\"id\":N,\"result\":...} or {\"id\":N,\"error\":{\"class\":...,\"message\":...}}")
	}
	if answer.Error == nil {
		if answer.Result == nil {
			return nil, errors.New("its answer has neither result nor error")
		}
		return answer.Result, nil
	}
	f := &registry.Failure{Class: answer.Error.Class}
	if !classPattern.MatchString(f.Class) {
		f.Class = "plugin_error"
	}
	f.Message = chars.First(cmp.Or(answer.Error.Message, f.Class), maxMessage, "…")
	return nil, f
}

// description is the answer to describe.
type description struct {
	ID         int64       `json:"id"`
	Protocol   int         `json:"protocol"`
	Concurrent bool        `json:"concurrent"`
	Tools      []toolEntry `json:"tools"`
	Error      *failure    `json:"error"`
}

// toolEntry is a tool as its plugin describes it. Reads and Writes name arguments.
type toolEntry struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	TimeoutS    float64         `json:"timeout_s"`
	Reads       []string        `json:"reads"`
	Writes      []string        `json:"writes"`
	Untrusted   string          `json:"untrusted"`
	ReadOnly    bool            `json:"read_only,omitempty"` // without it digests of older descriptions stay what they are
}

// describes parses the answer strictly: with a misspelt field, the tool would differ from what its author intended.
func (r reply) describes() (description, error) {
	var d description
	decoder := json.NewDecoder(bytes.NewReader(r.line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return d, fmt.Errorf("its answer to describe: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return d, errors.New("its answer to describe has something behind it")
	}
	switch {
	case d.Error != nil:
		return d, fmt.Errorf("it answered describe with the error %s", excerpt([]byte(d.Error.Message)))
	case d.Protocol != 0 && d.Protocol != protocolVersion:
		return d, fmt.Errorf("it speaks version %d of the protocol; this is version %d", d.Protocol, protocolVersion)
	case len(d.Tools) == 0:
		return d, errors.New("it describes no tools")
	}
	return d, nil
}
