package tools

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"trajgen/registry"
	"trajgen/tools/web/source"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "web_search", Toolset: webToolset, NoSandbox: true, Outside: "web", ReadOnly: true, Untrusted: "web", Timeout: webTimeout,
		Access: func(json.RawMessage) registry.Access { return registry.Access{} },
		Description: "Searches the web. It returns titles, addresses and descriptions of pages, the best first; web_extract reads " +
			"the pages themselves.",
	}, webSearch))
}

type webSearchArgs struct {
	Query string `json:"query" alias:"q,search_query" doc:"What to look for." minlen:"1" maxlen:"2000"`
	Limit int    `json:"limit,omitempty" alias:"max_results,num_results,count" doc:"Most results to return." default:"5" min:"1" max:"100"`

	Site     string `json:"site,omitempty" alias:"domain" doc:"Only pages of this site, such as example.org." maxlen:"253"`
	After    string `json:"after,omitempty" alias:"start_date" doc:"Only pages that were published on this day or later, as 2026-01-31."`
	Language string `json:"language,omitempty" doc:"Only pages in this language, as a code of two letters." maxlen:"2"`
}

type webResult struct {
	Title       string `json:"title"`
	URL         string `json:"url"`
	Description string `json:"description"`
	Position    int    `json:"position"`
	Published   string `json:"published,omitempty"`
}

type webSearchResult struct {
	Success bool `json:"success"`
	Data    struct {
		Web []webResult `json:"web"`
	} `json:"data"`
	Message string `json:"message,omitempty"`
}

func webSearch(ctx context.Context, env *registry.Env, args webSearchArgs) (any, error) {
	view, err := webView(env)
	if err != nil {
		return nil, err
	}
	query := source.Query{Text: args.Query, Limit: args.Limit, Site: args.Site, After: args.After, Language: strings.ToLower(args.Language)}
	if _, err := time.Parse(time.DateOnly, query.After); query.After != "" && err != nil {
		return nil, registry.Failf("invalid_date", "after is %q: want a day such as 2026-01-31", query.After)
	}
	call := view.Call(env.CallID)
	found, err := call.Search(ctx, query)
	about := call.Searched()
	env.Source = &about
	if err != nil {
		return nil, webFailure(view, err)
	}
	result := webSearchResult{Success: true}
	result.Data.Web = []webResult{}
	for i, r := range found {
		about.Threats = suspect(about.Threats, r.Title, r.Description)
		result.Data.Web = append(result.Data.Web, webResult{r.Title, r.URL, r.Description, i + 1, r.Published})
	}
	if len(found) == 0 {
		result.Message = "Nothing was found; try fewer or other words."
	}
	return result, nil
}
