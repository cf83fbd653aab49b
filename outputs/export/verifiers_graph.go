package export

import (
	"cmp"
	"time"

	"trajgen/pipeline/episode"
)

// verifiersGraph makes the nodes: one for each message that the model was sent or gave. A conversation that was shortened
// branches off where it was.
type verifiersGraph struct {
	*pool
	nodes []verifiersNode
	calls []object
	index map[[2]int]int // by the node before it and its place in the pool
	last  *int           // node behind which the next message goes
	upTo  int            // messages that are in the graph
}

// branchedNodes bounds what the branches of one conversation may repeat.
const (
	branchedNodes  = 100_000
	refuseBranches = "a conversation that was shortened so often that its branches are too many"
)

func newVerifiersGraph(ep *episode.Episode, sampling object) (*verifiersGraph, error) {
	g := &verifiersGraph{pool: newPool(ep), nodes: []verifiersNode{}, calls: []object{}, index: map[[2]int]int{}}
	for i := range ep.Turns {
		t := &ep.Turns[i]
		if g.shortens[i] {
			g.last = nil
			for _, place := range g.sent(i) {
				g.add(place)
			}
			if len(g.nodes) > branchedNodes+len(ep.Messages) {
				return nil, &Refusal{refuseBranches}
			}
			g.upTo = t.Message
		}
		for ; g.upTo <= min(t.Message, len(ep.Messages)-1); g.upTo++ {
			g.add(g.upTo)
		}
		g.sampled(i, sampling)
	}
	for ; g.upTo < len(ep.Messages); g.upTo++ {
		g.add(g.upTo)
	}
	return g, nil
}

// add appends a message, or goes on from its node where it already stands behind the same messages.
func (g *verifiersGraph) add(place int) {
	key := [2]int{-1, place}
	if g.last != nil {
		key[0] = *g.last
	}
	at, ok := g.index[key]
	if !ok {
		at = len(g.nodes)
		g.index[key] = at
		g.nodes = append(g.nodes, verifiersNode{
			Parent: g.last, Message: verifiersMessage(&g.messages[place]), TokenIDs: episode.IDs{}, Mask: []bool{}, Logprobs: []float32{},
		})
	}
	g.last = &at
}

func verifiersMessage(m *episode.Message) object {
	var calls []object
	for _, call := range m.Calls {
		calls = append(calls, object{{"id", call.ID}, {"name", call.Name}, {"arguments", call.Arguments}})
	}
	message := object{{"role", m.Role}, {"content", chatContent(m)}, {"reasoning_content", some(m.Reasoning)}, {"tool_calls", some(calls)}}
	if m.Role == "tool" {
		message = append(message, object{{"tool_call_id", m.ToolCallID}, {"name", some(m.Name)}}...)
	}
	return message
}

// sampled books a turn at the last node: its tokens with those of the messages before it, as the server does not tell
// where one message ends and the next begins, and the exchange.
func (g *verifiersGraph) sampled(turn int, sampling object) {
	t := &g.ep.Turns[turn]
	node := &g.nodes[*g.last]
	node.Sampled, node.Timestamp = gave(g.ep, turn) != nil, seconds(t.Started)
	if g.ep.Drift != nil && g.ep.Drift.Verdict == episode.DriftNone {
		node.TokenIDs = append(append(episode.IDs{}, t.Tokens.Prompt...), t.Tokens.Completion...)
		node.Mask = make([]bool, len(node.TokenIDs))
		for i := len(t.Tokens.Prompt); i < len(node.Mask); i++ {
			node.Mask[i] = true
		}
		if len(t.Tokens.Logprobs) == len(t.Tokens.Completion) {
			node.Logprobs = t.Tokens.Logprobs
		}
	}
	model := cmp.Or(g.ep.Sampling.Model, t.Model)
	for i := range t.Retries {
		g.calls = append(g.calls, object{
			{"model", some(model)}, {"sampling", sampling}, {"endpoint", "/chat/completions"},
			{"time", verifiersSpan(time.Time{}, 0)}, {"error", verifiersError(&t.Retries[i])},
		})
	}
	call := object{{"node", *g.last}, {"model", some(cmp.Or(t.Fallback, model))}, {"sampling", sampling}, {"endpoint", "/chat/completions"}}
	switch t.FinishReason {
	case "stop", "length", "tool_calls":
		call = append(call, field{"finish_reason", t.FinishReason})
	}
	if t.Usage.Reported {
		call = append(call, field{"usage", verifiersUsage(t.Usage)})
	}
	g.calls = append(g.calls, append(call, field{"time", verifiersSpan(t.Started, t.Elapsed)}))
}
