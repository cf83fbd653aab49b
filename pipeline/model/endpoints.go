package model

import (
	"context"
	"math"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"trajgen/pipeline/model/gate"
)

// endpoint is one of the servers that have the model.
type endpoint struct {
	name string // without what could be secret
	lib  openai.ClientConfig
	doer *doer
	at   place
}

// client is the library's client for one exchange: it can hand nothing of its own through to the HTTP client.
func (e *endpoint) client(x *exchange) *openai.Client {
	own := e.lib
	own.HTTPClient = placed{e.doer, e.at, x}
	return openai.NewClientWithConfig(own)
}

// openEndpoints makes the endpoints and the gates in front of them.
func openEndpoints(cfg Config, doer *doer) ([]endpoint, *gate.Set) {
	all, places := make([]endpoint, len(cfg.Endpoints)), make([]place, len(cfg.Endpoints))
	for i, base := range cfg.Endpoints {
		places[i], _ = parseBase(base) // Validate refuses what is wrong
	}
	names := endpointNames(places)
	for i, at := range places {
		lib := openai.DefaultConfig(cfg.APIKey)
		lib.BaseURL = at.url
		lib.EmptyMessagesLimit = math.MaxUint // keep-alive lines are no error; the idle timeout watches instead
		all[i] = endpoint{names[i], lib, doer, at}
	}
	return all, gate.NewSet(gate.Config{Floor: cfg.MinInFlight, Ceiling: cfg.MaxInFlight, Now: cfg.Now, Processors: cfg.Processors}, names...)
}

// endpointNames are the hosts, with the paths where one host serves several.
func endpointNames(places []place) []string {
	hosts, names := make([]string, len(places)), make([]string, len(places))
	for i, at := range places {
		_, whole, _ := strings.Cut(at.url, "://")
		hosts[i], names[i] = at.name, whole
	}
	if len(slices.Compact(slices.Sorted(slices.Values(hosts)))) == len(hosts) {
		return hosts
	}
	return names
}

// queueUp waits until an endpoint may be sent the request, and tells its gate in the end how that went.
func (c *Client) queueUp(ctx context.Context, t *try) (end func(), failed *Error) {
	ticket := gate.Ticket{Episode: t.req.Episode, Turn: t.req.Turn, Since: t.began}
	pass, chosen, err := c.gates.Acquire(ctx, ticket, t.at)
	if err != nil {
		return nil, c.failure(ctx, ctx, &t.x, err)
	}
	t.at = chosen
	t.x.api = c.endpoints[chosen].client(&t.x)
	return func() {
		var result gate.Result
		if t.asked {
			result = outcome(&t.x, t.reply, t.failed)
			result.Latency = t.elapsed
		}
		pass.Done(result)
		if len(c.endpoints) > 1 {
			t.reply.Endpoint = c.endpoints[chosen].name
		}
	}, nil
}

// where names all endpoints.
func (c *Client) where() string {
	var names []string
	for _, e := range c.endpoints {
		names = append(names, e.name)
	}
	return strings.Join(names, ", ")
}

// home is the index of the endpoint that a turn was played at, or -1.
func (c *Client) home(name string) int {
	return slices.IndexFunc(c.endpoints, func(e endpoint) bool { return name != "" && e.name == name })
}

// outcome is what a try says about its endpoint.
func outcome(x *exchange, reply Reply, failed *Error) gate.Result {
	r := gate.Result{
		Requests: headerBudget(x.header, "Requests", ""),
		Tokens:   headerBudget(x.header, "Tokens", "Input-Tokens"),
	}
	if failed == nil {
		r.Kind = gate.OK
		r.Work, r.Spent = work(reply)
		return r
	}
	switch failed.Class {
	case ClassRateLimit:
		r.Kind = gate.Limited
	case ClassOverloaded:
		r.Kind = gate.Busy
	case ClassConnection, ClassServer:
		r.Kind = gate.Failed
	case ClassTimeout, ClassStalled:
		r.Kind = gate.Slow
	}
	return r
}

// work estimates what took the server its time, in tokens of a reply, and what it counts against a budget of tokens.
func work(reply Reply) (work, spent float64) {
	const perToken, prompt = 4, 32 // bytes of text; tokens of a prompt that are read in the time of one that is written
	u := reply.Usage
	if !u.Reported {
		text := len(reply.Message.Content) + len(reply.Message.Reasoning)
		for _, call := range reply.Message.Calls {
			text += len(call.Name) + len(call.Arguments)
		}
		return float64(text) / perToken, 0
	}
	return float64(u.Completion) + float64(max(u.Prompt-u.Cached, 0))/prompt, float64(u.Prompt + u.Completion)
}
