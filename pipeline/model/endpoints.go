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
	name string // for messages, without secrets
	lib  openai.ClientConfig
	doer *doer
	at   place
}

// client makes a go-openai client for one exchange, as go-openai cannot pass the exchange to a shared HTTP client.
func (e *endpoint) client(x *exchange) *openai.Client {
	own := e.lib
	own.HTTPClient = placed{e.doer, e.at, x}
	return openai.NewClientWithConfig(own)
}

// openEndpoints makes the endpoints and the gates in front of them.
func openEndpoints(cfg Config, doer *doer) ([]endpoint, *gate.Set) {
	all, places := make([]endpoint, len(cfg.Endpoints)), make([]place, len(cfg.Endpoints))
	for i, base := range cfg.Endpoints {
		places[i], _ = parseBase(base) // Validate has checked it
	}
	names := endpointNames(places)
	for i, at := range places {
		lib := openai.DefaultConfig(cfg.APIKey)
		lib.BaseURL = at.url
		lib.EmptyMessagesLimit = math.MaxUint // keep-alive lines are fine; IdleTimeout bounds the silence
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

// queueUp waits until an endpoint's gate admits the request. Its end gives the gate the result.
func (t *try) queueUp(ctx context.Context) (end func(), failed *Error) {
	ticket := gate.Ticket{Episode: t.req.Episode, Turn: t.req.Turn, Since: t.began}
	pass, chosen, err := t.gates.Acquire(ctx, ticket, t.at)
	if err != nil {
		return nil, t.doer.failure(ctx, ctx, &t.x, err)
	}
	t.at = chosen
	t.x.api = t.endpoints[chosen].client(&t.x)
	return func() {
		var result gate.Result
		if t.asked {
			result = outcome(&t.x, t.reply, t.failed)
			result.Latency = t.elapsed
		}
		pass.Done(result)
		if len(t.endpoints) > 1 {
			t.reply.Endpoint = t.endpoints[chosen].name
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

// home is the index of the endpoint with a name, or -1.
func (c *Client) home(name string) int {
	return slices.IndexFunc(c.endpoints, func(e endpoint) bool { return name != "" && e.name == name })
}

// outcome is the result of a try for its endpoint's gate.
func outcome(x *exchange, reply Reply, failed *Error) gate.Result {
	r := gate.Result{
		Requests: headerBudget(x.header, requestHeaders),
		Tokens:   headerBudget(x.header, tokenHeaders),
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

// work estimates the server's work in tokens of a reply, and the tokens that it counts against a budget.
func work(reply Reply) (work, spent float64) {
	const perToken, prompt = 4, 32 // bytes of text per token; prompt tokens that take as long as one token of a reply
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
