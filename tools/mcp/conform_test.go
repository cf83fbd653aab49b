package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"trajgen/registry"
	"trajgen/tools/mcp"
)

// conform plays the client in a scenario of the official conformance suite, which starts this program with the URL of its server and
// judges what the server sees. It returns the exit code.
func conform(url string) int {
	var given struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Calls  []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	server := mcp.Server{URL: url, Timeout: 20 * time.Second}
	content := map[string]any{}
	arguments := map[string]string{"add_numbers": `{"a":5,"b":3}`}
	switch os.Getenv("MCP_CONFORMANCE_SCENARIO") {
	case "auth/client-credentials-basic":
		server.OAuth = &mcp.OAuth{ClientIDEnv: "ID", ClientSecretEnv: "SECRET"}
	case "sep-2322-client-request-state":
		content["confirmed"] = true
		fallthrough
	case "elicitation-sep1034-client-defaults":
		server.Elicitation = &mcp.Elicitation{Answers: []mcp.Answer{{Content: content}}}
	}
	opts := options(nil)
	opts.Environ = func(name string) (string, bool) {
		return map[string]string{"ID": given.ID, "SECRET": given.Secret}[name], true
	}
	ctx := context.Background()
	set, err := mcp.Open(ctx, one(server), opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer set.Close()
	reg, err := registry.New(set.Tools()...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	toolset, err := reg.Select(nil, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	session := toolset.Session(registry.SessionConfig{})
	defer session.Close()
	turn := 0
	call := func(name, arguments string) string {
		turn++
		got := session.Call(ctx, registry.Request{ID: fmt.Sprintf("call_%d", turn), Turn: turn, Name: name, Arguments: arguments})
		fmt.Fprintln(os.Stderr, got.Name, got.Status, got.Result)
		return got.Result
	}
	for _, each := range given.Calls {
		call(mcp.Shown("fake", each.Name), string(each.Arguments))
	}
	for _, tool := range set.Described("fake").Tools {
		if tool.Shown != "" && given.Calls == nil {
			text := arguments[tool.Name]
			if tool.Name == "json_schema_echo" {
				text = `{"schema":` + string(set.Described("fake").Tools[0].Parameters) + `}`
			}
			if text == "" {
				text = `{"region":"us-west1"}`
			}
			call(tool.Shown, text)
		}
	}
	var resources struct{ Resources []struct{ URI string } }
	if toolset.Has("mcp_fake_list_resources") && json.Unmarshal([]byte(call("mcp_fake_list_resources", `{}`)), &resources) == nil && len(resources.Resources) > 0 {
		call("mcp_fake_read_resource", fmt.Sprintf(`{"uri":%q}`, resources.Resources[0].URI))
	}
	var prompts struct{ Prompts []struct{ Name string } }
	if toolset.Has("mcp_fake_list_prompts") && json.Unmarshal([]byte(call("mcp_fake_list_prompts", `{}`)), &prompts) == nil && len(prompts.Prompts) > 0 {
		call("mcp_fake_get_prompt", fmt.Sprintf(`{"name":%q}`, prompts.Prompts[0].Name))
	}
	return 0
}
