package scripted_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
)

// task is worked on with a look, a change and an answer.
func task(id string) *episode.Task {
	return &episode.Task{
		ID: id, System: "You are careful.", Prompt: []episode.Message{{Role: "user", Content: "Fix " + id}},
		Gold: []episode.Step{
			gold("", "read_file", `{"path": "main.py", "limit": 20}`),
			gold("I change it.", "terminal", `{"command":"sed -i s/1/2/ main.py"}`),
			{Content: "The value is 42.", Reasoning: "done"},
		},
	}
}

func gold(content, name, args string) episode.Step {
	return episode.Step{Content: content, Calls: []episode.GoldCall{{Name: name, Arguments: json.RawMessage(args)}}}
}

func newServer(t testing.TB, cfg scripted.Config, tasks ...*episode.Task) *scripted.Server {
	t.Helper()
	server, err := scripted.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	for _, task := range tasks {
		server.Learn(task)
	}
	return server
}

// conversation speaks with a server's handler and answers every call with the same result, unless it is given others.
type conversation struct {
	t        testing.TB
	handler  http.Handler
	task, id string // headers
	tools    []string
	messages []map[string]any
	extra    map[string]any
	result   func(tool string) string // nil for always the same
}

func (c *conversation) say(role, content string) {
	c.messages = append(c.messages, map[string]any{"role": role, "content": content})
}

type answer struct {
	Content   *string
	Reasoning string `json:"reasoning_content"`
	ToolCalls []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
	finish string
}

func (a answer) String() string {
	var b strings.Builder
	if a.Content != nil {
		b.WriteString(*a.Content)
	}
	for _, call := range a.ToolCalls {
		fmt.Fprintf(&b, "|%s(%s)", call.Function.Name, call.Function.Arguments)
	}
	return b.String()
}

// next is one turn, with the results of its calls.
func (c *conversation) next() answer {
	c.t.Helper()
	body := map[string]any{"model": "scripted", "messages": c.messages}
	var tools []any
	for _, name := range c.tools {
		tools = append(tools, map[string]any{"type": "function", "function": map[string]any{"name": name}})
	}
	if tools != nil {
		body["tools"] = tools
	}
	for name, value := range c.extra {
		body[name] = value
	}
	raw, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	req := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(string(raw)))
	req.Header.Set("X-Trajgen-Task", c.task)
	req.Header.Set("X-Trajgen-Episode", c.id)
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, req)
	if w.Code != http.StatusOK {
		c.t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	var reply struct {
		Choices []struct {
			Message json.RawMessage
			Finish  string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil {
		c.t.Fatal(err)
	}
	var a answer
	var message map[string]any
	json.Unmarshal(reply.Choices[0].Message, &a)
	json.Unmarshal(reply.Choices[0].Message, &message)
	a.finish = reply.Choices[0].Finish
	c.messages = append(c.messages, message)
	for _, call := range a.ToolCalls {
		result := `{"ok":true}`
		if c.result != nil {
			result = c.result(call.Function.Name)
		}
		c.messages = append(c.messages, map[string]any{"role": "tool", "tool_call_id": call.ID, "content": result})
	}
	return a
}

// play goes on until an answer, at most so many turns.
func (c *conversation) play(limit int) []answer {
	c.t.Helper()
	var answers []answer
	for range limit {
		answers = append(answers, c.next())
		if len(answers[len(answers)-1].ToolCalls) == 0 {
			break
		}
	}
	return answers
}

func begin(t testing.TB, server *scripted.Server, task *episode.Task, id string, tools ...string) *conversation {
	c := &conversation{t: t, handler: server.Handler(), task: task.ID, id: id, tools: tools}
	if task.System != "" {
		c.say("system", task.System)
	}
	c.say("user", task.Prompt[0].Content)
	return c
}

func texts(answers []answer) []string {
	var s []string
	for _, a := range answers {
		s = append(s, a.String())
	}
	return s
}
