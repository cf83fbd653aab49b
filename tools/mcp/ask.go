package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/registry"
	"trajgen/tools/internal/chars"
)

// The actions of an answer to an elicitation.
const (
	accept  = "accept"
	decline = "decline"
)

// maxElicited is how often a server may ask the user within a call.
const maxElicited = 20

// elicit answers what a server asks the user within a call.
func (c *conn) elicit(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	call := c.asking()
	if call == nil || req.Params.Mode == "url" { // a page for a person, whom a batch does not have
		return &sdk.ElicitResult{Action: decline}, nil
	}
	c.mu.Lock()
	many := len(call.elicited) >= maxElicited
	c.mu.Unlock()
	if many {
		return &sdk.ElicitResult{Action: decline}, nil
	}
	ctx := call.ctx
	asked := Elicited{Question: chars.First(req.Params.Message, maxError, "…"), Action: decline}
	settings := call.server.cfg.Elicitation
	script := slices.IndexFunc(settings.Answers, func(a Answer) bool {
		match, err := regexp.MatchString(a.Match, req.Params.Message)
		return match && err == nil
	})
	switch {
	case script >= 0:
		asked.Action, asked.Content = accept, settings.Answers[script].Content
	case settings.By == ByUser:
		content, fields, err := call.askUser(ctx, asked.Question, req.Params.RequestedSchema)
		if err != nil {
			return nil, err
		}
		if asked.User, asked.Fields = true, fields; content != nil {
			asked.Action, asked.Content = accept, content
		}
	}
	c.mu.Lock()
	call.elicited = append(call.elicited, asked)
	c.mu.Unlock()
	// The library fills defaults in, and a scripted answer is that of all calls.
	return &sdk.ElicitResult{Action: asked.Action, Content: maps.Clone(asked.Content)}, nil
}

// field is a field of a form.
type field struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Type        string `json:"type"`
	Enum        []any  `json:"enum"`
}

// askUser asks the task's user for each field of a form, and returns what it answered of one with several fields. The content is nil
// when the user does not know.
func (call *inCall) askUser(ctx context.Context, question string, schema any) (content map[string]any, fields []string, err error) {
	user, ok := registry.Service[User](call.env.Session)
	if !ok {
		return nil, nil, nil
	}
	var form struct {
		Properties map[string]field `json:"properties"`
		Required   []string         `json:"required"`
	}
	if text, err := json.Marshal(schema); err != nil || json.Unmarshal(text, &form) != nil {
		return nil, nil, nil
	}
	content = map[string]any{}
	for _, name := range sortedKeys(form.Properties) {
		f := form.Properties[name]
		text := question
		if len(form.Properties) > 1 {
			text = chars.First(text+"\n"+cmp.Or(f.Description, f.Title, name), 2*maxError, "…")
		}
		var choices []string
		for _, choice := range f.Enum {
			choices = append(choices, fmt.Sprint(choice))
		}
		said, err := user.Ask(ctx, text, choices)
		if _, refused := errors.AsType[*registry.Failure](err); refused {
			if slices.Contains(form.Required, name) {
				return nil, fields, nil
			}
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if len(form.Properties) > 1 {
			fields = append(fields, text)
		}
		value, ok := f.value(said)
		if !ok && slices.Contains(form.Required, name) {
			return nil, fields, nil
		}
		if ok {
			content[name] = value
		}
	}
	return content, fields, nil
}

// value makes a field's value of what a person says.
func (f field) value(said string) (any, bool) {
	said = strings.TrimSpace(said)
	switch f.Type {
	case "integer":
		n, err := strconv.ParseInt(said, 10, 64)
		return n, err == nil
	case "number":
		n, err := strconv.ParseFloat(said, 64)
		return n, err == nil
	case "boolean":
		word := strings.ToLower(strings.TrimRight(strings.SplitN(said+" ", " ", 2)[0], ".,;!"))
		yes, no := slices.Contains([]string{"yes", "true", "y"}, word), slices.Contains([]string{"no", "false", "n"}, word)
		return yes, yes || no
	case "string", "":
		if len(f.Enum) == 0 {
			return said, said != ""
		}
		for _, choice := range f.Enum {
			if text := fmt.Sprint(choice); strings.EqualFold(text, strings.TrimRight(said, ".")) {
				return choice, true
			}
		}
	}
	return nil, false
}

// sample lets a server of an old protocol ask a model within a call.
//
//lint:ignore SA1019 servers of old protocols ask this way
func (c *conn) sample(ctx context.Context, req *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
	call := c.asking()
	if call == nil || call.attempt == nil || call.attempt.Model == nil {
		return nil, errors.New("the run has no model to ask")
	}
	settings, l := call.server.cfg.Sampling, call.live
	l.mu.Lock()
	many := l.asked >= cmp.Or(settings.MaxCalls, defaultAsked)
	if !many {
		l.asked++
	}
	l.mu.Unlock()
	if many {
		return nil, errors.New("the model was asked often enough in this episode")
	}
	var said []episode.Message
	if req.Params.SystemPrompt != "" {
		said = append(said, episode.Message{Role: "system", Content: req.Params.SystemPrompt})
	}
	for _, m := range req.Params.Messages {
		text, ok := m.Content.(*sdk.TextContent)
		if !ok {
			return nil, errors.New("the model is asked with texts alone")
		}
		said = append(said, episode.Message{Role: string(m.Role), Content: text.Text})
	}
	most := cmp.Or(settings.MaxTokens, SampledTokens)
	if asked := req.Params.MaxTokens; asked > 0 && asked < int64(most) {
		most = int(asked)
	}
	text, inquiry, err := call.askModel(call.ctx, said, most)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	call.inquiries = append(call.inquiries, inquiry)
	c.mu.Unlock()
	if inquiry.Failed != "" {
		return nil, fmt.Errorf("the model did not answer: %s", inquiry.Failed)
	}
	//lint:ignore SA1019 as above
	return &sdk.CreateMessageResult{
		Content: &sdk.TextContent{Text: text}, Model: inquiry.Model, Role: "assistant", StopReason: "endTurn",
	}, nil
}

// askModel asks a model, or takes what it said from the record. What the model fails with is in the inquiry, unless the run cannot
// go on with it.
func (call *inCall) askModel(ctx context.Context, said []episode.Message, most int) (string, episode.Inquiry, error) {
	a, question := call.attempt, encoded(said)
	client, name := a.Model(call.server.name)
	about := episode.Inquiry{Role: record.Sampling, Asked: name, Text: hash(question)}
	return a.Inquire(ctx, client, about, string(question), 0, model.Request{Seed: &a.Seed, MaxTokens: most, Messages: said})
}
