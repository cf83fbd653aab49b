package mcp

import (
	"context"
	"encoding/json"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"trajgen/registry"
)

// utility is a tool that makes resources or prompts of a server reachable.
type utility struct {
	name, description, parameters string
	call                          func(ctx context.Context, call *inCall, args utilityArgs) (any, error)
}

type utilityArgs struct {
	URI       string            `json:"uri"`
	Name      string            `json:"name"`
	Arguments map[string]string `json:"arguments"`
	Cursor    string            `json:"cursor"`
}

const (
	pageOnly = `{"type":"object","properties":{"cursor":{"type":"string","description":"next_cursor of the page before"}}}`
	readURI  = `{"type":"object","properties":{"uri":{"type":"string","description":"as list_resources shows it, or made from a ` +
		`template"}},"required":["uri"]}`
	getName = `{"type":"object","properties":{"name":{"type":"string","description":"as list_prompts shows it"},` +
		`"arguments":{"type":"object","additionalProperties":{"type":"string"}}},"required":["name"]}`
)

var resourceTools = []utility{
	{"list_resources", "Lists the resources of the server %s, and templates for the addresses of more.", pageOnly, listResources},
	{"read_resource", "Reads a resource of the server %s.", readURI, readResource},
}

var promptTools = []utility{
	{"list_prompts", "Lists the prompts that the server %s has for its users.", pageOnly, listPrompts},
	{"get_prompt", "Gets a prompt of the server %s, filled in with arguments.", getName, getPrompt},
}

// utilities are the tools for what a server has beside its tools.
func (s *server) utilities(d *Described) ([]registry.Tool, error) {
	var chosen []utility
	if d.Resources {
		chosen = append(chosen, resourceTools...)
	}
	if d.Prompts {
		chosen = append(chosen, promptTools...)
	}
	shown := map[string]bool{}
	for _, t := range d.Tools {
		shown[t.Shown] = true
	}
	var tools []registry.Tool
	for _, u := range chosen {
		name := prefix(s.name) + u.name
		if shown[name] { // the server's own tool of that name
			continue
		}
		definition := s.definition(name, strings.Replace(u.description, "%s", s.name, 1), true)
		tool, err := registry.DefineSchema(definition, json.RawMessage(u.parameters),
			func(ctx context.Context, env *registry.Env, arguments json.RawMessage) (any, error) {
				var args utilityArgs
				if err := json.Unmarshal(arguments, &args); err != nil {
					return nil, invalid(err.Error())
				}
				r := request{u.name, true, arguments}
				return s.call(env, r, func(call *inCall) (any, error) { return u.call(ctx, call, args) })
			})
		if err != nil {
			return nil, err
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

type listedResource struct {
	URI         string `json:"uri"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	MIME        string `json:"mime_type,omitempty"`
}

// resourcePage is a page of both lists.
type resourcePage struct {
	Resources *sdk.ListResourcesResult
	Templates *sdk.ListResourceTemplatesResult // nil without any
}

func listResources(ctx context.Context, call *inCall, args utilityArgs) (any, error) {
	page, err := fetch(ctx, call, func(ctx context.Context, c *conn) (*resourcePage, error) {
		var page resourcePage
		var err error
		page.Resources, err = c.session.ListResources(ctx, &sdk.ListResourcesParams{Cursor: args.Cursor})
		if err != nil || args.Cursor != "" {
			return &page, err
		}
		page.Templates, err = c.session.ListResourceTemplates(ctx, nil)
		if _, refused := rpcError(err); refused { // servers need not have any
			page.Templates, err = nil, nil
		}
		return &page, err
	})
	if err != nil {
		return nil, err
	}
	listed := struct {
		Resources []listedResource `json:"resources"`
		Templates []listedResource `json:"templates,omitempty"`
		Next      string           `json:"next_cursor,omitempty"`
	}{Resources: []listedResource{}, Next: page.Resources.NextCursor}
	for _, r := range page.Resources.Resources {
		listed.Resources = append(listed.Resources, listedResource{r.URI, r.Name, r.Description, r.MIMEType})
	}
	if page.Templates != nil {
		for _, t := range page.Templates.ResourceTemplates {
			listed.Templates = append(listed.Templates, listedResource{t.URITemplate, t.Name, t.Description, t.MIMEType})
		}
	}
	return listed, nil
}

func readResource(ctx context.Context, call *inCall, args utilityArgs) (any, error) {
	got, err := fetch(ctx, call, func(ctx context.Context, c *conn) (*sdk.ReadResourceResult, error) {
		return c.session.ReadResource(ctx, &sdk.ReadResourceParams{URI: args.URI})
	})
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, each := range got.Contents {
		parts = append(parts, call.resource(each))
	}
	return answer{strings.Join(parts, "\n\n")}, nil
}

func listPrompts(ctx context.Context, call *inCall, args utilityArgs) (any, error) {
	page, err := fetch(ctx, call, func(ctx context.Context, c *conn) (*sdk.ListPromptsResult, error) {
		return c.session.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: args.Cursor})
	})
	if err != nil {
		return nil, err
	}
	type listedPrompt struct {
		Name        string                `json:"name"`
		Description string                `json:"description,omitempty"`
		Arguments   []*sdk.PromptArgument `json:"arguments,omitempty"`
	}
	listed := struct {
		Prompts []listedPrompt `json:"prompts"`
		Next    string         `json:"next_cursor,omitempty"`
	}{Prompts: []listedPrompt{}, Next: page.NextCursor}
	for _, p := range page.Prompts {
		listed.Prompts = append(listed.Prompts, listedPrompt{p.Name, p.Description, p.Arguments})
	}
	return listed, nil
}

func getPrompt(ctx context.Context, call *inCall, args utilityArgs) (any, error) {
	got, err := fetch(ctx, call, func(ctx context.Context, c *conn) (*sdk.GetPromptResult, error) {
		return c.session.GetPrompt(ctx, &sdk.GetPromptParams{Name: args.Name, Arguments: args.Arguments})
	})
	if err != nil {
		return nil, err
	}
	type said struct {
		Role    sdk.Role `json:"role"`
		Content string   `json:"content"`
	}
	prompt := struct {
		Description string `json:"description,omitempty"`
		Messages    []said `json:"messages"`
	}{got.Description, []said{}}
	for _, m := range got.Messages {
		prompt.Messages = append(prompt.Messages, said{m.Role, call.block(m.Content)})
	}
	return prompt, nil
}
