package tools

import (
	"context"
	"encoding/json"

	"trajgen/registry"
	"trajgen/tools/web/source"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "web_crawl", Toolset: crawlToolset, NoSandbox: true, Outside: "web", ReadOnly: true, Untrusted: "web", Timeout: crawlTimeout,
		Access: func(json.RawMessage) registry.Access { return registry.Access{} },
		Description: "Reads a web page and pages of the same site that it leads to, as web_extract does. Each page shows its first " +
			"5000 characters, or in some runs a summary.",
	}, webCrawl))
}

type webCrawlArgs struct {
	URL          string   `json:"url" alias:"seed_url" doc:"Address of the first page." minlen:"1"`
	Instructions string   `json:"instructions,omitempty" alias:"prompt" doc:"What to look for; some providers choose pages by it." maxlen:"2000"`
	Limit        int      `json:"limit,omitempty" alias:"max_pages" doc:"Most pages to read." default:"5" min:"1" max:"20"`
	Depth        int      `json:"depth,omitempty" alias:"max_depth" doc:"Most links between the first page and another." default:"2" min:"1" max:"3"`
	Include      []string `json:"include,omitempty" doc:"Patterns of paths to read, such as /docs/*; without any, all." maxitems:"20"`
	Exclude      []string `json:"exclude,omitempty" doc:"Patterns of paths not to read." maxitems:"20"`
	Raw          bool     `json:"raw,omitempty" doc:"Show the text itself where long pages would be summarised."`
}

func webCrawl(ctx context.Context, env *registry.Env, args webCrawlArgs) (any, error) {
	view, err := webView(env)
	if err != nil {
		return nil, err
	}
	call := view.Call(env.CallID)
	pages, err := call.Crawl(ctx, source.Crawl{
		URL: args.URL, Instructions: args.Instructions, Limit: args.Limit, Depth: args.Depth, Include: args.Include, Exclude: args.Exclude,
	})
	about := call.Came(pages)
	env.Source = &about
	if err != nil {
		return nil, webFailure(view, err)
	}
	return showPages(ctx, env, &about, pages, showing{raw: args.Raw, wanted: args.Instructions})
}
