package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools/internal/chars"
)

const maxError = 4000 // characters of a server's error

// answer is what a call gives a model.
type answer struct {
	Result string `json:"result"`
}

// content makes what a model is shown of a result: texts, and a line for whatever else there is. Images stand beside the result.
func (call *inCall) content(blocks []sdk.Content) string {
	var parts []string
	for _, block := range blocks {
		parts = append(parts, call.block(block))
	}
	return strings.Join(parts, "\n\n")
}

func (call *inCall) block(block sdk.Content) string {
	switch b := block.(type) {
	case *sdk.TextContent:
		return b.Text
	case *sdk.ImageContent:
		return call.image(b.MIMEType, b.Data)
	case *sdk.AudioContent:
		return call.file("audio", b.MIMEType, b.Data)
	case *sdk.ResourceLink:
		return fmt.Sprintf("[resource %s (%s)]", b.URI, b.MIMEType)
	case *sdk.EmbeddedResource:
		return call.resource(b.Resource)
	}
	return "[content of an unknown type]"
}

// resource is the text of a resource, or what it is.
func (call *inCall) resource(r *sdk.ResourceContents) string {
	switch {
	case r == nil:
		return "[resource without a content]"
	case len(r.Blob) > 0 && strings.HasPrefix(r.MIMEType, "image/"):
		return call.image(r.MIMEType, r.Blob)
	case len(r.Blob) > 0:
		return call.file("resource "+r.URI, r.MIMEType, r.Blob)
	}
	return r.Text
}

// file keeps what models are not shown, and says what it is.
func (call *inCall) file(what, mime string, data []byte) string {
	kept := ""
	part, err := call.env.Keep(registry.Image{MIME: mime, Data: data, File: true})
	if err != nil {
		kept = ": " + err.Error()
	} else {
		call.about.Files = append(call.about.Files, part)
	}
	return fmt.Sprintf("[%s (%s), %d bytes%s]", what, mime, len(data), kept)
}

// image shows the model an image if it can see, and keeps it in any case.
func (call *inCall) image(mime string, data []byte) string {
	picture := registry.Image{MIME: mime, Data: data}
	if call.env.Sees() && call.env.Parent == "" {
		if err := call.env.Attach(picture); err != nil {
			return fmt.Sprintf("[image %s: %s]", mime, err)
		}
		return fmt.Sprintf("[image %s, shown after the result]", mime)
	}
	part, err := call.env.Keep(picture)
	if err != nil {
		return fmt.Sprintf("[image %s, %d bytes: %s]", mime, len(data), err)
	}
	call.about.Images = append(call.about.Images, part)
	return fmt.Sprintf("[image %s, %dx%d]", part.MIME, part.Width, part.Height)
}

// result makes the answer of a tool, or the failure that it reports.
func (call *inCall) result(r *sdk.CallToolResult) (any, error) {
	call.about.Structured = raw(r.Meta, metaStructured)
	text := call.content(r.Content)
	if text == "" && len(call.about.Structured) > 0 {
		text = string(call.about.Structured)
	}
	if len(call.about.Structured) > maxKept {
		call.about.Structured = nil
	}
	if !r.IsError {
		return answer{text}, nil
	}
	if strings.Contains(text, fmt.Sprint(jsonrpc.CodeInvalidParams)) {
		return nil, invalid(text)
	}
	if text == "" {
		text = "the tool failed without saying why"
	}
	return nil, registry.Failf("tool_error", "%s", chars.First(text, maxError, "…"))
}

const maxKept = 1 << 20 // bytes of a structured content in the trace

func invalid(text string) *registry.Failure {
	return &registry.Failure{
		Class: "invalid_arguments", Status: episode.CallInvalidArguments, Message: chars.First(text, maxError, "…"),
	}
}

// rpcError finds the error with which a server answered.
func rpcError(err error) (*jsonrpc.Error, bool) {
	rpc, ok := errors.AsType[*jsonrpc.Error](err)
	return rpc, ok
}

// refused is the failure of a request that the server answered with an error.
func (s *server) refused(r request, rpc *jsonrpc.Error) *registry.Failure {
	switch rpc.Code {
	case jsonrpc.CodeInvalidParams:
		return invalid(rpc.Message)
	case jsonrpc.CodeMethodNotFound:
		return &registry.Failure{
			Class: "mcp_changed", Status: episode.CallUnavailable,
			Message: fmt.Sprintf("mcp server %s no longer has %s", s.name, r.method),
		}
	}
	return registry.Failf("tool_error", "mcp server %s: %s", s.name, chars.First(rpc.Message, maxError, "…"))
}

// About is what the trace says of a call, beside its result.
type About struct {
	Server     string            `json:"mcp_server"`
	Tool       string            `json:"mcp_tool"`
	Via        string            `json:"via"` // live
	Shared     bool              `json:"shared,omitempty"`
	Progress   int               `json:"progress_count,omitempty"`
	Structured json.RawMessage   `json:"structured,omitempty"`
	Noise      int               `json:"stdout_noise,omitempty"` // lines of the process that were not messages, so far
	Changed    int               `json:"list_changed,omitempty"` // notices of a changed list, so far; what the model sees stays
	Elicited   []Elicited        `json:"elicited,omitempty"`     // what the server asked the user
	Asked      []episode.Inquiry `json:"asked,omitempty"`        // of the model
	Images     []episode.Part    `json:"kept_images,omitempty"`  // that the model was not shown
	Files      []episode.Part    `json:"kept_files,omitempty"`   // sounds, and resources that are neither text nor images
}

// Elicited is a question of a server to the user.
type Elicited struct {
	Question string         `json:"question"`
	Action   string         `json:"action"`
	User     bool           `json:"user,omitempty"`   // the task's user was asked, and not an answer that was written before
	Fields   []string       `json:"fields,omitempty"` // what it answered of a form that has several
	Content  map[string]any `json:"content,omitempty"`
}
