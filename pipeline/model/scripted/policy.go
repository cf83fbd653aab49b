package scripted

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"iter"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"

	"trajgen/pipeline/episode"
)

// turn is one assistant message to be.
type turn struct {
	content, reasoning string
	calls              []call
}

// call is a tool call to be. looks is set when it changes nothing, however garbled it may arrive.
type call struct {
	id, name, args string
	looks          bool
}

// Declined is the whole of the noop policy. It has no number in it and says nothing that a verifier could look for.
const Declined = "I cannot help with that."

var declined = turn{content: Declined}

// next is what comes next in an episode.
type next struct {
	turn     turn
	key      string // stands for the episode and the place in it
	position int    // the number of turns before this one
}

// next decides what to say. taskID and episodeID come from the request's headers and may be empty.
func (s *Server) next(req *request, taskID, episodeID string) (n next, no *refusal) {
	who := identify(req, episodeID)
	switch s.cfg.Policy {
	case Noop:
		n.turn, n.position = declined, said(req, nil, who)
	case Replay:
		n.position = said(req, nil, who)
		n.turn, no = s.replay(episodeID, n.position)
	default:
		sc, ok := s.find(episodeID, taskID, req)
		if !ok {
			return next{}, invalid("unknown_task", fmt.Sprintf("policy %s knows no task %q and none that begins with this "+
				"user message (was the server started with the dataset?)", s.cfg.Policy, taskID))
		}
		n.position = said(req, sc, who)
		turns := s.cfg.plan(sc, req, who)
		n.turn = turns[min(n.position, len(turns)-1)]
		if s.character != nil && !sc.subagent { // whose calls are not those of the episode
			n.turn, no = s.meet(sc, req, who, turns, n.position)
		}
		n.turn = n.turn.pictured(req)
	}
	n.key = fmt.Sprintf("%s%06x", who, n.position)
	return n, no
}

func (c *Config) plan(sc *script, req *request, who string) []turn {
	turns := translate(sc.gold, req.tools)
	if req.Parallel != nil && !*req.Parallel {
		turns = oneByOne(turns)
	}
	if c.Policy == Noisy {
		draws := rand.New(rand.NewChaCha8(hash("noisy", fmt.Sprint(c.Seed), sc.id, who)))
		skill := c.Skill
		if sc.subagent { // it is for the episode to fail
			skill = 1
		}
		return noisy(sc, turns, req.tools, skill, draws)
	}
	return ending(turns)
}

// ending has an answer as its last turn.
func ending(turns []turn) []turn {
	if n := len(turns); n > 0 && len(turns[n-1].calls) == 0 {
		return turns
	}
	return append(turns, turn{content: "Done."})
}

// oneByOne gives each call a turn of its own, for clients that forbid parallel calls.
func oneByOne(turns []turn) []turn {
	var single []turn
	for _, t := range turns {
		for len(t.calls) > 1 {
			single = append(single, turn{content: t.content, reasoning: t.reasoning, calls: t.calls[:1:1]})
			t = turn{calls: t.calls[1:]}
		}
		single = append(single, t)
	}
	return single
}

// said counts the assistant messages of the request that are ours.
func said(req *request, sc *script, who string) (n int) {
	for place := range ours(req.Messages, sc, who) {
		n = place + 1
	}
	return n
}

// ours are the places in the episode of the assistant messages that are ours, with their places in the conversation: all but those
// before the task's first user message, which the harness put there, and those that the task's prompt brought. Where a harness left some
// out to save room, the ids of our calls in the others tell how many there were.
func ours(messages []message, sc *script, who string) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		n, begin := 0, 0
		var prompt []string
		if sc != nil {
			prompt = sc.said
			begin = max(0, slices.IndexFunc(messages, func(m message) bool { return m.Role == "user" && m.Content.text == sc.first }))
		}
		for i := range messages {
			m := &messages[i]
			switch {
			case m.Role != "assistant":
			case len(prompt) > 0 && len(m.ToolCalls) == 0 && m.Content.text == prompt[0]:
				prompt = prompt[1:]
			case i >= begin:
				n++
				if len(m.ToolCalls) > 0 {
					if match := givenID.FindStringSubmatch(m.ToolCalls[0].ID); match != nil && match[1] == who {
						place, _ := strconv.ParseInt(match[2], 16, 32)
						n = max(n, int(place)+1)
					}
				}
				if !yield(n-1, i) {
					return
				}
			}
		}
	}
}

// results are those of our calls, by the places of turn and call.
func results(messages []message, sc *script, who string) map[[2]int]string {
	all := map[[2]int]string{}
	for place, at := range ours(messages, sc, who) {
		calls := messages[at].ToolCalls
		for _, m := range messages[at+1:] {
			if m.Role != "tool" {
				break
			}
			if i := slices.IndexFunc(calls, func(c toolCall) bool { return c.ID == m.ToolCallID }); i >= 0 {
				all[[2]int{place, i}] = m.Content.text
			}
		}
	}
	return all
}

// givenID is a tool-call id that this server gave; it carries the episode's identity through the conversation.
var givenID = regexp.MustCompile(`^call_([0-9a-f]{16})([0-9a-f]{6})[0-9a-f]{2}$`)

// ownID names the episode by the calls that it made; "" without.
func ownID(messages []message) string {
	for _, m := range messages {
		if m.Role == "assistant" && len(m.ToolCalls) > 0 {
			if match := givenID.FindStringSubmatch(m.ToolCalls[0].ID); match != nil {
				return match[1]
			}
		}
	}
	return ""
}

// identify names the episode: by its header, else by the calls that it made already, else by the seed of its first
// request (later ones may be derived from it), else by what was asked.
func identify(req *request, episodeID string) string {
	if episodeID != "" {
		return digest("episode", episodeID)
	}
	if id := ownID(req.Messages); id != "" {
		return id
	}
	if req.Seed != nil {
		return digest("seed", fmt.Sprint(*req.Seed))
	}
	return digest("prompt", req.system(), req.firstUser())
}

// digest is 16 hexadecimal digits of a hash in which no two lists of texts collide by concatenation.
func digest(parts ...string) string {
	sum := hash(parts...)
	return hex.EncodeToString(sum[:8])
}

func hash(parts ...string) [32]byte {
	var buf []byte
	for _, part := range parts {
		buf = binary.LittleEndian.AppendUint64(buf, uint64(len(part)))
		buf = append(buf, part...)
	}
	return sha256.Sum256(buf)
}

// replay repeats the assistant message of a recorded episode that has so many before it.
func (s *Server) replay(episodeID string, position int) (turn, *refusal) {
	messages, ok := s.cfg.Replay(episodeID)
	if !ok {
		return turn{}, invalid("unknown_episode", fmt.Sprintf("no recording of episode %q (want its id in X-Trajgen-Episode)", episodeID))
	}
	answers := slices.DeleteFunc(slices.Clone(messages), func(m episode.Message) bool { return m.Role != "assistant" })
	if position >= len(answers) {
		return turn{}, invalid("recording_ended", fmt.Sprintf("the recording of episode %q has %d assistant messages and number %d is "+
			"asked for", episodeID, len(answers), position+1))
	}
	t := turn{content: answers[position].Content, reasoning: answers[position].Reasoning}
	for _, c := range answers[position].Calls {
		t.calls = append(t.calls, call{id: c.ID, name: c.Name, args: c.Arguments})
	}
	return t, nil
}
