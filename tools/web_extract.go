package tools

import (
	"context"
	"encoding/json"

	"trajgen/registry"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "web_extract", Toolset: webToolset, NoSandbox: true, Outside: "web", ReadOnly: true, Untrusted: "web", Timeout: webTimeout,
		Access: func(json.RawMessage) registry.Access { return registry.Access{} },
		Description: "Reads web pages, PDF files and feeds as Markdown. A page of over 5000 characters is cut, or summarised in some runs; with the next_offset " +
			"of its result as offset another call reads on.",
	}, webExtract))
}

type webExtractArgs struct {
	URLs   []string `json:"urls" alias:"url" doc:"Addresses of the pages." minitems:"1" maxitems:"5"`
	Offset int      `json:"offset,omitempty" doc:"Where to begin in each page, in characters; to read on." default:"0" min:"0"`
	Raw    bool     `json:"raw,omitempty" doc:"Show the text itself where long pages would be summarised."`
}

func webExtract(ctx context.Context, env *registry.Env, args webExtractArgs) (any, error) {
	view, err := webView(env)
	if err != nil {
		return nil, err
	}
	call := view.Call(env.CallID)
	pages, err := call.Read(ctx, args.URLs)
	about := call.Came(pages)
	env.Source = &about
	if err != nil {
		return nil, webFailure(view, err)
	}
	return showPages(ctx, env, &about, pages, showing{offset: args.Offset, raw: args.Raw})
}
