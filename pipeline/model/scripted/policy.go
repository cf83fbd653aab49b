package scripted

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"trajgen/pipeline/episode"
)

// turn is one assistant message to be.
type turn struct {
	content   string
	reasoning string
	calls     []call
}

// call is a tool call to be. looks is set when it changes nothing, however garbled it may arrive.
type call struct {
	id, name, args string
	looks          bool
}

// plan is all that the server will say in an episode: the turns one by one, then the last one for ever.
type plan struct {
	turns []turn
	after turn
}

// at is the turn after so many of ours.
func (p plan) at(position int) turn {
	if position < len(p.turns) {
		return p.turns[position]
	}
	return p.after
}

// declined is the whole of the noop policy. It has no number in it and says nothing that a verifier could look for.
var declined = turn{content: "I cannot help with that."}

// requestError is a request that the policy cannot answer; it becomes a 400.
type requestError struct{ code, message string }

func (e *requestError) Error() string { return e.message }

// next decides what to say. taskID and episodeID come from the request's headers and may be empty.
func (s *Server) next(req *request, taskID, episodeID string) (turn, error) {
	who := identify(req, episodeID)
	var t turn
	position := 0
	switch s.cfg.Policy {
	case Noop:
		t = declined
	case Replay:
		position = said(req, nil)
		var err error
		if t, err = s.replay(episodeID, position); err != nil {
			return turn{}, err
		}
	default:
		sc, ok := s.find(taskID, req)
		if !ok {
			return turn{}, &requestError{"unknown_task", fmt.Sprintf("policy %s knows no task %q and none that begins with this "+
				"user message (was the server started with the dataset?)", s.cfg.Policy, taskID)}
		}
		p := s.plan(sc, req, who)
		position = said(req, sc.said)
		t = p.at(position)
	}
	for i := range t.calls {
		if t.calls[i].id == "" {
			t.calls[i].id = fmt.Sprintf("call_%s%06x%02x", who, position, i)
		}
	}
	return t, nil
}

func (s *Server) plan(sc *script, req *request, who string) plan {
	turns := translate(sc.gold, req.tools)
	if !req.parallel() {
		turns = oneByOne(turns)
	}
	if s.cfg.Policy == Noisy {
		return noisy(sc, turns, req.tools, s.cfg.Skill, s.rand(sc.id, who))
	}
	return ending(turns)
}

// ending repeats the last answer when it is asked for more.
func ending(turns []turn) plan {
	after := turn{content: "Done."}
	if n := len(turns); n > 0 && len(turns[n-1].calls) == 0 {
		after = turns[n-1]
	}
	return plan{turns: turns, after: after}
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

// said counts the assistant messages of the request that are ours: all but those that the task's prompt brought.
func said(req *request, prompt []string) int {
	n := 0
	for i := range req.Messages {
		m := &req.Messages[i]
		if m.Role != "assistant" {
			continue
		}
		if len(prompt) > 0 && len(m.ToolCalls) == 0 && m.text() == prompt[0] {
			prompt = prompt[1:]
			continue
		}
		n++
	}
	return n
}

// ownID is a tool-call id that this server gave; it carries the episode's identity through the conversation.
var ownID = regexp.MustCompile(`^call_([0-9a-f]{16})[0-9a-f]{8}$`)

// identify names the episode: by its header, else by the calls that it made already, else by the seed of its first
// request (later ones may be derived from it), else by what was asked.
func identify(req *request, episodeID string) string {
	if episodeID != "" {
		return digest("episode", episodeID)
	}
	for _, m := range req.Messages {
		if m.Role == "assistant" && len(m.ToolCalls) > 0 {
			if match := ownID.FindStringSubmatch(m.ToolCalls[0].ID); match != nil {
				return match[1]
			}
		}
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

// rand is the stream of an episode's draws.
func (s *Server) rand(task, who string) *rand.Rand {
	return rand.New(rand.NewChaCha8(hash("noisy", fmt.Sprint(s.cfg.Seed), task, who)))
}

// replay repeats the assistant message of a recorded episode that has so many before it.
func (s *Server) replay(episodeID string, position int) (turn, error) {
	messages, ok := s.cfg.Replay(episodeID)
	if !ok {
		return turn{}, &requestError{"unknown_episode", fmt.Sprintf("no recording of episode %q (want its id in X-Trajgen-Episode)", episodeID)}
	}
	n := 0
	for _, m := range messages {
		if m.Role != "assistant" {
			continue
		}
		if n == position {
			return recorded(m), nil
		}
		n++
	}
	return turn{}, &requestError{"recording_ended", fmt.Sprintf("the recording of episode %q has %d assistant messages and number %d is asked for",
		episodeID, n, position+1)}
}

func recorded(m episode.Message) turn {
	t := turn{content: m.Content, reasoning: m.Reasoning}
	for _, c := range m.Calls {
		t.calls = append(t.calls, call{id: c.ID, name: c.Name, args: c.Arguments})
	}
	return t
}

// quote makes one shell word of a text.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:+@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
