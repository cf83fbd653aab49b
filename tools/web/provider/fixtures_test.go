package provider_test

import (
	"fmt"
	"strings"

	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// fixture is what a provider's documentation says: how it is asked, and what it answers.
type fixture struct {
	method, path string
	query        string            // as it is sent
	header       map[string]string // those that matter, with the key
	body         string            // JSON, or text; the query is `best "tea" & more`, the limit 2
	right        string            // an answer with found, of which it may lack dates
	undated      bool
	empty        string
	failed       string // an error in an answer of the status 200
	result       string // one of many in a list, with %d where they differ; list is around them
	list         string
	filtered     map[string]string // what a request has for each filter: "" where the provider has none
}

const key = "k3y-of-the-t3st"

// found is what the right answers say.
var found = []source.Result{
	{Title: "First & best", URL: "https://a.test/1", Description: "One two", Published: "2024-01-02"},
	{Title: "Second", URL: "https://b.test/2?x=1", Description: "Three"},
}

var bearer = map[string]string{"Authorization": "Bearer " + key, "Content-Type": "application/json"}

var fixtures = map[string]fixture{
	"tavily": {
		method: "POST", path: "/search", header: bearer,
		body: `{"query":"best \"tea\" & more","max_results":2,"search_depth":"basic"}`,
		right: `{"query":"q","answer":null,"images":[],"response_time":1.2,"results":[
			{"title":"First &amp; best","url":"https://a.test/1","content":"One\n two","score":0.9,"raw_content":null,
				"published_date":"2024-01-02"},
			{"title":"Second","url":"https://b.test/2?x=1","content":"Three","score":0.8},{"title":"Third","url":"https://c.test",
				"content":""}]}`,
		empty: `{"results":[]}`, failed: `{"error":"no good"}`, list: `{"results":[%s]}`,
		result:   `{"title":"t","url":"https://a.test/%d","content":"c"}`,
		filtered: map[string]string{"site": `"include_domains":["s.test"]`, "after": `"start_date":"2024-01-02"`},
	},
	"exa": {
		method: "POST", path: "/search", header: map[string]string{"X-Api-Key": key, "Content-Type": "application/json"},
		body: `{"query":"best \"tea\" & more","numResults":2,"type":"auto","contents":{"text":{"maxCharacters":2000}}}`,
		right: `{"requestId":"r","resolvedSearchType":"neural","costDollars":{"total":0.005},"results":[
			{"id":"https://a.test/1","title":"First & best","url":"https://a.test/1","publishedDate":"2024-01-02","author":null,
				"text":"One two"},
			{"id":"2","title":"Second","url":"https://b.test/2?x=1","publishedDate":null,"text":"Three"}]}`,
		empty: `{"requestId":"r","results":[]}`, failed: `{"requestId":"r","error":"no good","tag":"INTERNAL_ERROR"}`,
		list: `{"results":[%s]}`, result: `{"title":"t","url":"https://a.test/%d","text":"c"}`,
		filtered: map[string]string{"site": `"includeDomains":["s.test"]`, "after": `"startPublishedDate":"2024-01-02T00:00:00.000Z"`},
	},
	"parallel": {
		method: "POST", path: "/v1/search", header: map[string]string{"X-Api-Key": key, "Content-Type": "application/json"},
		body: `{"search_queries":["best \"tea\" & more"],"mode":"basic","advanced_settings":{"max_results":2}}`,
		right: `{"search_id":"s","results":[{"url":"https://a.test/1","title":"First & best","publish_date":"2024-01-02",
				"excerpts":["One two"]},
			{"url":"https://b.test/2?x=1","title":"Second","publish_date":null,"excerpts":["Three"]}]}`,
		empty: `{"search_id":"s","results":[]}`, failed: `{"type":"error","error":{"ref_id":"r","message":"no good"}}`,
		list: `{"results":[%s]}`, result: `{"title":"t","url":"https://a.test/%d","excerpts":["c"]}`,
		filtered: map[string]string{"site": `"source_policy":{"include_domains":["s.test"]}`,
			"after": `"source_policy":{"after_date":"2024-01-02"}`},
	},
	"firecrawl": {
		method: "POST", path: "/v2/search", header: bearer,
		body: `{"query":"best \"tea\" & more","limit":2,"sources":["web"]}`,
		right: `{"success":true,"data":{"web":[{"url":"https://a.test/1","title":"First & best","description":"One two","position":1},
			{"url":"https://b.test/2?x=1","title":"Second","description":"Three","position":2}]}}`, undated: true,
		empty: `{"success":true,"data":{}}`, failed: `{"success":false,"error":"no good"}`,
		list: `{"success":true,"data":{"web":[%s]}}`, result: `{"title":"t","url":"https://a.test/%d","description":"c"}`,
		filtered: map[string]string{"site": `"query":"q site:s.test"`, "after": `"tbs":"cdr:1,cd_min:01/02/2024,cd_max:01/01/2100"`},
	},
	"searxng": {
		method: "GET", path: "/search", query: "format=json&q=best+%22tea%22+%26+more",
		right: `{"query":"q","number_of_results":0,"results":[
			{"url":"https://a.test/1","title":"First & best","content":"One two","engine":"x","score":1.0,"publishedDate":"2024-01-02"},
			{"url":"https://b.test/2?x=1","title":"Second","content":"Three","engine":"x","publishedDate":null}],"answers":[],
				"unresponsive_engines":[["y","timeout"]]}`,
		empty: `{"results":[],"unresponsive_engines":[]}`, failed: `{"results":[],"unresponsive_engines":[["x","timeout"]]}`,
		list: `{"results":[%s]}`, result: `{"title":"t","url":"https://a.test/%d","content":"c"}`,
		filtered: map[string]string{"language": "language=de", "site": "q=q+site%3As.test"},
	},
	"brave": {
		method: "GET", path: "/res/v1/web/search", query: "count=2&q=best+%22tea%22+%26+more",
		header: map[string]string{"X-Subscription-Token": key},
		right: `{"type":"search","query":{"original":"q"},"web":{"type":"search","results":[
			{"title":"First &amp; <strong>best</strong>","url":"https://a.test/1","description":"<strong>One</strong> two",
				"age":"2 January","page_age":"2024-01-02"},
			{"title":"Second","url":"https://b.test/2?x=1","description":"Three","extra_snippets":["more"]}]}}`,
		empty: `{"type":"search","query":{"original":"q"}}`, failed: `{"type":"ErrorResponse","error":{"code":"X","detail":"no good"}}`,
		list: `{"web":{"results":[%s]}}`, result: `{"title":"t","url":"https://a.test/%d","description":"c"}`,
		filtered: map[string]string{"language": "search_lang=de", "site": "q=q+site%3As.test", "after": "freshness=2024-01-02to2100-01-01&"},
	},
	"serper": {
		method: "POST", path: "/search", header: map[string]string{"X-Api-Key": key, "Content-Type": "application/json"},
		body: `{"q":"best \"tea\" & more","num":2}`,
		right: `{"searchParameters":{"q":"q"},"organic":[{"title":"First & best","link":"https://a.test/1","snippet":"One two",
				"date":"2024-01-02","position":1},
			{"title":"Second","link":"https://b.test/2?x=1","snippet":"Three","position":2}],"credits":1}`,
		empty: `{"organic":[]}`, failed: `{"error":"no good"}`, list: `{"organic":[%s]}`,
		result:   `{"title":"t","link":"https://a.test/%d","snippet":"c"}`,
		filtered: map[string]string{"language": `"hl":"de"`, "site": `"q":"q site:s.test"`, "after": `"q":"q after:2024-01-02"`},
	},
	"duckduckgo": {
		method: "POST", path: "/html/", header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
		body: "b=&kl=wt-wt&q=best+%22tea%22+%26+more", undated: true,
		right: `<!DOCTYPE html><html><body><div id="links" class="results">
			<div class="result results_links result--ad result--ad--small"><h2>
				<a class="result__a" href="https://duckduckgo.com/y.js?ad_domain=x">Buy</a></h2></div>
			<div class="result results_links results_links_deep web-result"><div class="links_main"><h2 class="result__title">
				<a rel="nofollow" class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.test%2F1&amp;rut=abc">First &amp; best</a></h2>
				<a class="result__snippet" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.test%2F1"><b>One</b> two</a></div></div>
			<div class="result results_links web-result"><h2><a class="result__a" href="https://b.test/2?x=1">Second</a></h2>
				<a class="result__snippet">Three</a></div>
			</div></body></html>`,
		empty: `<html><body><div id="links"><div class="result results_links result--no-result">
				<div class="no-results">No results.</div></div></div></body></html>`,
		failed: `<html><body><form id="challenge-form" action="//duckduckgo.com/anomaly.js"><div>Select all ducks</div></form>
				<div id="links"></div></body></html>`,
		list: `<div id="links">%s</div>`, result: `<div class="result"><a class="result__a" href="https://a.test/%d">t</a></div>`,
		filtered: map[string]string{"site": "q=q+site%3As.test"},
	},
	"searchr1": {
		method: "POST", path: "/retrieve", header: map[string]string{"Content-Type": "application/json"},
		body: `{"queries":["best \"tea\" & more"],"topk":2,"return_scores":true}`, undated: true,
		right: `{"result":[[{"document":{"id":"17","url":"https://a.test/1","contents":"\"First & best\"\nOne two"},"score":0.7},
			{"id":3,"url":"https://b.test/2?x=1","contents":"Second\nThree"}]]}`,
		empty: `{"result":[[]]}`, failed: `{"error":"no good"}`, list: `{"result":[[%s]]}`,
		result: `{"document":{"id":%d,"contents":"t\nc"},"score":1}`,
	},
	"generic": {
		method: "PUT", path: "/v9/find/best+%22tea%22+%26+more", header: map[string]string{"X-Token": "token " + key,
			"Content-Type": "application/json"},
		body: `{"text":"best \"tea\" & more","n":2,"site":""}`,
		right: `{"data":{"items":[{"t":"First & best","u":"https://a.test/1","d":{"short":"One two"},"when":"2024-01-02"},
			{"t":"Second","u":"https://b.test/2?x=1","d":{"short":"Three"}}]}}`,
		empty: `{"data":{}}`, failed: `{"error":"no good"}`, list: `{"data":{"items":[%s]}}`,
		result:   `{"t":"t","u":"https://a.test/%d"}`,
		filtered: map[string]string{"site": `"site":"s.test"`},
	},
}

// described is the description of the generic provider of the fixtures, at an address.
func described(address string) *provider.Generic {
	return &provider.Generic{
		Search: &provider.Template{
			Method: "PUT", URL: address + "/v9/find/{{urlquery .Query}}", Headers: map[string]string{"X-Token": "token {{.Key}}"},
			Body: `{"text":{{json .Query}},"n":{{.Limit}},"site":{{json .Site}}}`, List: "answer.data.items", Title: "item.t",
			Link: "item.u", Description: "item.d?.short", Published: "item.when",
		},
		Read: &provider.Template{URL: address + "/v9/read?u={{urlquery .URL}}", Title: "answer.t", Text: "answer.md"},
	}
}

// many is an answer of about so many bytes.
func (f fixture) many(bytes int) string {
	one := fmt.Sprintf(f.result, 1)
	if strings.HasPrefix(f.list, "{") {
		one += ","
	}
	one = strings.Repeat(" ", 500) + one // so that it takes less time to read
	all := strings.Repeat(one, (bytes-len(f.list))/len(one))
	return fmt.Sprintf(f.list, strings.TrimSuffix(all, ","))
}
