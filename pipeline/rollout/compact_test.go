package rollout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
)

// small is a server whose model has a small window. It calls a tool for some turns, answers then, and keeps every
// conversation as it came over the wire. A token is four bytes of text.
type small struct {
	window  int
	turns   int    // before it answers
	summary string // what it says to a request for one; "!" refuses
	silent  bool   // reports no usage

	mu    sync.Mutex
	asked [][]wired // of the agent
	sums  int
}

// wired is a message on the wire.
type wired struct {
	Role    string  `json:"role"`
	Content *string `json:"content"`
	Calls   []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	ID string `json:"tool_call_id"`
}

func (s *small) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []wired           `json:"messages"`
		Tools    []json.RawMessage `json:"tools"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	tokens := 0
	for _, m := range body.Messages {
		if m.Content != nil {
			tokens += len(*m.Content) / 4
		}
		for _, call := range m.Calls {
			tokens += len(call.Function.Arguments) / 4
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.window > 0 && tokens > s.window {
		http.Error(w, `{"error":{"code":"context_length_exceeded","message":"too long"}}`, http.StatusBadRequest)
		return
	}
	say := func(message, finish string) {
		usage := ""
		if !s.silent {
			usage = fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":10}`, tokens)
		}
		fmt.Fprintf(w, `{"model":"m","choices":[{"index":0,"finish_reason":%q,"message":%s}]%s}`, finish, message, usage)
	}
	if len(body.Tools) == 0 {
		s.sums++
		if s.summary == "!" {
			http.Error(w, `{"error":{"message":"no"}}`, http.StatusBadRequest)
			return
		}
		text, _ := json.Marshal(s.summary)
		say(fmt.Sprintf(`{"role":"assistant","content":%s}`, text), "stop")
		return
	}
	s.asked = append(s.asked, body.Messages)
	if n := len(s.asked); n <= s.turns {
		say(fmt.Sprintf(`{"role":"assistant","content":"turn %d","tool_calls":[{"id":"c%d","type":"function","function":{"name":"read","arguments":"{\"n\":%d}"}}]}`, n, n, n), "tool_calls")
		return
	}
	say(`{"role":"assistant","content":"done"}`, "stop")
}

type readArgs struct {
	N int `json:"n" doc:"which"`
}

// playSmall plays a task against the server, with results of 4000 bytes, which are 1000 tokens.
func playSmall(t *testing.T, s *small, context_ rollout.Context, edit ...func(*rollout.Player)) *episode.Episode {
	t.Helper()
	reg, err := registry.New(registry.Define(registry.Definition{Name: "read", Toolset: "file", Description: "Reads."},
		func(_ context.Context, _ *registry.Env, args readArgs) (any, error) {
			return fmt.Sprintf("%d %s", args.N, strings.Repeat("abc ", 1000)), nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	client, err := model.Open(model.Config{Settings: model.Settings{Name: "m", BaseURL: server.URL, MaxTokens: 100}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	backend, err := sandbox.Open("local", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	player := &rollout.Player{
		Model: client, Registry: reg, Sandboxes: rollout.Sandboxes{Backend: backend}, Prompts: rollout.Prompts{System: "Be good."}, Context: context_, Calls: rollout.Calls{Guardrails: rollout.GuardOff}, Now: time.Now,
	}
	for _, e := range edit {
		e(player)
	}
	task := &episode.Task{ID: "t", Prompt: []episode.Message{{Role: "user", Content: "read"}}}
	ep := &episode.Episode{Key: episode.Key{Task: "t"}, Toolsets: []string{"file"}, Attempt: 1}
	ep.ID = ep.Key.ID()
	if err := player.Play(t.Context(), task, ep); err != nil {
		t.Fatal(err)
	}
	return ep
}

func windowOf(n int) func(string) int { return func(string) int { return n } }

// checkSent holds that what the row says was sent went over the wire, that the row keeps everything nevertheless, and
// that no call was parted from its result.
func checkSent(t *testing.T, s *small, ep *episode.Episode) {
	t.Helper()
	// The row as a reader gets it.
	data, err := json.Marshal(ep)
	if err != nil {
		t.Fatal(err)
	}
	var row episode.Episode
	if err := json.Unmarshal(data, &row); err != nil {
		t.Fatal(err)
	}
	if len(row.Turns) != len(s.asked) {
		t.Fatalf("%d turns, and %d were asked for", len(row.Turns), len(s.asked))
	}
	for turn, wire := range s.asked {
		sent := row.Sent(turn)
		var got, want []string
		open := map[string]bool{}
		for _, m := range wire {
			content := ""
			if m.Content != nil {
				content = *m.Content
			}
			got = append(got, m.Role+" "+m.ID+" "+content)
			for _, call := range m.Calls {
				open[call.ID] = true
			}
			if m.Role == "tool" && !open[m.ID] {
				t.Errorf("turn %d: result of %s without its call", turn, m.ID)
			}
			delete(open, m.ID)
		}
		for _, m := range sent {
			want = append(want, m.Role+" "+m.ToolCallID+" "+m.Content)
		}
		if len(open) > 0 {
			t.Errorf("turn %d: calls %v without results", turn, open)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("turn %d: the row (-) and the wire (+) differ:\n%s", turn, diff)
		}
	}
	results := slices.DeleteFunc(slices.Clone(row.Messages), func(m episode.Message) bool { return m.Role != "tool" })
	for _, m := range results {
		if len(m.Content) < 4000 {
			t.Errorf("the row keeps %d bytes of a result", len(m.Content))
		}
	}
}

func TestCompaction(t *testing.T) {
	tests := []struct {
		name    string
		server  *small
		context rollout.Context
		stop    episode.Stop
		turns   int // 0 is all of them
		check   func(t *testing.T, s *small, ep *episode.Episode)
	}{
		{"nothing to do", &small{window: 100_000, turns: 12}, rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: episode.CompactDrop}, Window: windowOf(100_000)}, episode.StopAnswered, 0,
			func(t *testing.T, _ *small, ep *episode.Episode) {
				if len(ep.Compactions) > 0 {
					t.Errorf("compactions = %+v", ep.Compactions)
				}
			}},
		{"drop", &small{window: 8000, turns: 25}, rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: episode.CompactDrop}, Window: windowOf(8000), Reply: 100}, episode.StopAnswered, 0, shorter},
		{"drop at a refusal", &small{window: 8000, turns: 25}, rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: episode.CompactDrop}}, episode.StopAnswered, 0,
			func(t *testing.T, s *small, ep *episode.Episode) {
				shorter(t, s, ep)
				if !ep.Compactions[0].Refused {
					t.Error("the row does not say that the server refused the conversation")
				}
			}},
		{"drop without usage", &small{window: 8000, turns: 25, silent: true}, rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: episode.CompactDrop}, Window: windowOf(8000)}, episode.StopAnswered, 0, shorter},
		{"summarize", &small{window: 8000, turns: 25, summary: "I read a lot."}, rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: episode.CompactSummarize}, Window: windowOf(8000), Reply: 100}, episode.StopAnswered, 0,
			func(t *testing.T, s *small, ep *episode.Episode) {
				shorter(t, s, ep)
				for _, c := range ep.Compactions {
					if !strings.Contains(c.Summary, "I read a lot.") || c.Model != "m" || c.Usage == nil || !c.Usage.Reported {
						t.Errorf("compaction = %+v", c)
					}
				}
				if s.sums != len(ep.Compactions) {
					t.Errorf("%d summaries were asked for, and %d are in the row", s.sums, len(ep.Compactions))
				}
			}},
		{"stop", &small{window: 8000, turns: 25}, rollout.Context{Window: windowOf(8000)}, episode.StopContext, 8, unchanged},
		{"stop at a refusal", &small{window: 8000, turns: 25}, rollout.Context{}, episode.StopContext, 8, unchanged},
		{"no summary", &small{window: 8000, turns: 25}, rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: episode.CompactSummarize}, Window: windowOf(8000)}, episode.StopContext, 8, failed("said nothing")},
		{"refused summary", &small{window: 8000, turns: 25, summary: "!"}, rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: episode.CompactSummarize}, Window: windowOf(8000)}, episode.StopContext, 8, failed("bad_request")},
		{"endless summary", &small{window: 8000, turns: 25, summary: strings.Repeat("and ", 20_000)}, rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: episode.CompactSummarize}, Window: windowOf(8000)}, episode.StopContext, 8, failed("as long as")},
		{"nothing can be dropped", &small{window: 2500, turns: 25}, rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: episode.CompactDrop}}, episode.StopContext, 3, failed("nothing can be left out")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ep := playSmall(t, tt.server, tt.context)
			if ep.Stop != tt.stop || ep.Fault != nil {
				t.Fatalf("stop = %s, fault %+v after %d turns; want %s", ep.Stop, ep.Fault, len(ep.Turns), tt.stop)
			}
			want := tt.turns
			if want == 0 {
				want = tt.server.turns + 1
			}
			if len(ep.Turns) != want {
				t.Errorf("%d turns, want %d", len(ep.Turns), want)
			}
			checkSent(t, tt.server, ep)
			tt.check(t, tt.server, ep)
		})
	}
}

// TestToolsKnowWhatIsGone holds that a tool is never told that the model has a result before it which it was not sent.
func TestToolsKnowWhatIsGone(t *testing.T) {
	for _, strategy := range []string{episode.CompactDrop, episode.CompactSummarize} {
		var shown [][]int // by turn, whose results are said to be there
		read := registry.Define(registry.Definition{Name: "read", Toolset: "file", Description: "Reads."},
			func(_ context.Context, env *registry.Env, args readArgs) (any, error) {
				var turns []int
				for turn := range env.Turn {
					if env.Session.Shows(turn, fmt.Sprintf("c%d", turn+1)) {
						turns = append(turns, turn)
					}
				}
				shown = append(shown, turns)
				return fmt.Sprintf("%d %s", args.N, strings.Repeat("abc ", 1000)), nil
			})
		reg, err := registry.New(read)
		if err != nil {
			t.Fatal(err)
		}
		s := &small{window: 8000, turns: 25, summary: "I read a lot."}
		playSmall(t, s, rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: strategy}, Window: windowOf(8000)}, func(p *rollout.Player) { p.Registry = reg })
		for turn, said := range shown {
			sent := map[string]bool{}
			for _, m := range s.asked[turn] {
				sent[m.ID] = m.Role == "tool" && len(*m.Content) >= 4000
			}
			for _, earlier := range said {
				if !sent[fmt.Sprintf("c%d", earlier+1)] {
					t.Errorf("%s: in turn %d the result of turn %d is said to be there", strategy, turn, earlier)
				}
			}
			if len(said) < min(turn, 3) {
				t.Errorf("%s: in turn %d only the results of %v are said to be there", strategy, turn, said)
			}
		}
	}
}

// shorter holds that a conversation was shortened now and then, not at every turn, and that its head was sent always.
func shorter(t *testing.T, s *small, ep *episode.Episode) {
	t.Helper()
	if n := len(ep.Compactions); n < 2 || n > 15 {
		t.Errorf("%d compactions in %d turns", n, len(ep.Turns))
	}
	for _, c := range ep.Compactions {
		if c.After >= c.Before || c.Failed != "" {
			t.Errorf("compaction from %d to %d tokens, failed %q", c.Before, c.After, c.Failed)
		}
	}
	for turn, wire := range s.asked {
		if wire[0].Role != "system" || *wire[0].Content != "Be good." || wire[1].Role != "user" || *wire[1].Content != "read" {
			t.Errorf("turn %d: the conversation begins with %+v", turn, wire[:2])
		}
	}
}

func unchanged(t *testing.T, _ *small, ep *episode.Episode) {
	t.Helper()
	if len(ep.Compactions) > 0 {
		t.Errorf("compactions = %+v", ep.Compactions)
	}
}

// failed holds that the row says why a conversation could not be shortened: once when it came near the window's end, and
// once when it did not fit any more.
func failed(why string) func(*testing.T, *small, *episode.Episode) {
	return func(t *testing.T, _ *small, ep *episode.Episode) {
		t.Helper()
		did := func(c episode.Compaction) bool { return !strings.Contains(c.Failed, why) }
		if n := len(ep.Compactions); n < 1 || n > 2 || slices.ContainsFunc(ep.Compactions, did) {
			t.Errorf("compactions = %+v, want one or two that failed for %q", ep.Compactions, why)
		}
	}
}

// TestSummaryOutage holds that a summary's model that cannot be reached is a fault and never the agent's doing.
func TestSummaryOutage(t *testing.T) {
	down := &script{steps: []func(model.Request) (model.Reply, error){fail(&model.Error{Class: model.ClassServer, Message: "down"})}}
	ep := playSmall(t, &small{window: 8000, turns: 25}, rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: episode.CompactSummarize}, Window: windowOf(8000), Summary: down})
	if ep.Outcome != episode.ModelError || ep.Fault == nil || ep.Fault.Class != model.ClassServer {
		t.Errorf("outcome = %s, fault %+v, want the model's", ep.Outcome, ep.Fault)
	}
}

// TestNoSummary holds that an episode whose summary nobody writes goes on while its conversation fits, and is never said
// to have met a limit of its own when the model that does not write it is another one.
func TestNoSummary(t *testing.T) {
	for _, tt := range []struct {
		name  string
		by    func(model.Request) (model.Reply, error)
		class string
	}{
		{"refused", fail(&model.Error{Class: model.ClassBadRequest, Message: "no such model"}), model.ClassBadRequest},
		{"too long for it", fail(&model.Error{Class: model.ClassContextOverflow, Message: "too long"}), model.ClassContextOverflow},
		{"a policy", fail(&model.Error{Class: model.ClassContentPolicy, Message: "no"}), model.ClassContentPolicy},
		{"no key", fail(&model.Error{Class: model.ClassAuth, Message: "who are you"}), model.ClassAuth},
		{"silent", say(" "), "no_summary"},
		{"endless", say(strings.Repeat("and ", 20_000)), "no_summary"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			summary := &script{steps: []func(model.Request) (model.Reply, error){tt.by}}
			with := rollout.Context{
				ContextSettings: rollout.ContextSettings{Compaction: episode.CompactSummarize, SummaryModel: "s"}, Window: windowOf(8000), Summary: summary,
			}
			ep := playSmall(t, &small{window: 8000, turns: 25}, with)
			if ep.Outcome != episode.ModelError || ep.Fault == nil || ep.Fault.Class != tt.class || !strings.Contains(ep.Fault.Message, "summarize") {
				t.Errorf("outcome = %s, stop %s, fault %+v, want %s of the model", ep.Outcome, ep.Stop, ep.Fault, tt.class)
			}
			if n := len(summary.asked); n > 2 {
				t.Errorf("%d summaries were asked for", n)
			}
			if tt.class == model.ClassAuth {
				return // an outage
			}
			summary.asked = nil
			ep = playSmall(t, &small{window: 8000, turns: 7}, with)
			if ep.Outcome != episode.Success || len(summary.asked) != 1 || len(ep.Compactions) != 1 || ep.Compactions[0].Failed == "" {
				t.Errorf("outcome = %s, fault %+v after %d summaries, compactions %+v", ep.Outcome, ep.Fault, len(summary.asked), ep.Compactions)
			}
		})
	}
}

// TestRefusedTwice has a server refuse a conversation at a turn at which nobody would write a summary: it is not asked for
// again, and the server's word is the end.
func TestRefusedTwice(t *testing.T) {
	s := &small{window: 7500, turns: 25, summary: "!"}
	ep := playSmall(t, s, rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: episode.CompactSummarize}, Window: windowOf(8900)})
	if ep.Stop != episode.StopContext || s.sums != 1 || len(ep.Compactions) != 1 {
		t.Errorf("stop = %s after %d summaries, compactions %+v", ep.Stop, s.sums, ep.Compactions)
	}
}

// TestSummaryWindow holds that what is summarized is as long as the model takes that reads it, and not the agent's.
func TestSummaryWindow(t *testing.T) {
	longest := func(window int) (most int) {
		summary := &script{steps: []func(model.Request) (model.Reply, error){say("short")}}
		playSmall(t, &small{window: 8000, turns: 12}, rollout.Context{
			ContextSettings: rollout.ContextSettings{Compaction: episode.CompactSummarize, SummaryModel: "s"},
			Window:          windowOf(8000), Summary: summary, SummaryWindow: window,
		})
		for _, req := range summary.asked {
			most = max(most, len(req.Messages[1].Content))
		}
		return most
	}
	if got := longest(2000); got == 0 || got > 2000 { // a quarter of it, at four bytes a token
		t.Errorf("%d bytes for a window of 2000 tokens", got)
	}
	if got := longest(100_000); got < 16_000 {
		t.Errorf("%d bytes for a window of 100000 tokens: something was cut", got)
	}
}

// TestFullTail has one long result among the last turns keep a conversation near the window's end: a summary of what
// little goes at each turn is not asked for.
func TestFullTail(t *testing.T) {
	reg, err := registry.New(registry.Define(registry.Definition{Name: "read", Toolset: "file", Description: "Reads."},
		func(_ context.Context, _ *registry.Env, args readArgs) (any, error) {
			if args.N%4 == 0 {
				return strings.Repeat("abc ", 6500), nil
			}
			return strings.Repeat("abc ", 60), nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	s := &small{window: 8000, turns: 4*6 + 3, summary: "I read."}
	ep := playSmall(t, s, rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: episode.CompactSummarize}, Window: windowOf(8000), Reply: 100}, func(p *rollout.Player) { p.Registry = reg })
	if ep.Outcome != episode.Success || s.sums > 7 {
		t.Errorf("outcome = %s, %d summaries in %d turns, of which 6 were long", ep.Outcome, s.sums, len(ep.Turns))
	}
}

// TestSpending holds where an episode's own limits end it: before the turn that could pass them.
func TestSpending(t *testing.T) {
	prices := episode.Prices{"m": {Input: 1000, Output: 1000}} // a tenth of a cent for a token
	tests := []struct {
		name   string
		tokens int
		usd    float64
		reply  int
		stop   episode.Stop
	}{
		{"tokens", 20_000, 0, 100, episode.StopMaxTokens},
		{"money", 0, 20, 100, episode.StopMaxCost},
		{"tokens, replies of any length", 20_000, 0, 0, episode.StopMaxTokens},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ep := playSmall(t, &small{turns: 50}, rollout.Context{Reply: tt.reply}, func(p *rollout.Player) {
				p.Limits.Tokens = tt.tokens
				p.Spending.Prices, p.Limits.USD = prices, tt.usd
			})
			used := ep.Usage.Prompt + ep.Usage.Completion
			if ep.Stop != tt.stop || tt.reply > 0 && used > 20_000 || used < 9000 {
				t.Errorf("stop = %s with %d tokens after %d turns, want %s before 20000", ep.Stop, used, len(ep.Turns), tt.stop)
			}
			if ep.CostUSD == nil || math.Abs(*ep.CostUSD-float64(used)/1000) > 1e-9 {
				t.Errorf("cost is not %v", float64(used)/1000)
			}
		})
	}
	// A server that does not count costs what it is estimated to: results are 1000 tokens, and so are prompts of n turns n times.
	for _, reply := range []int{0, 100} {
		ep := playSmall(t, &small{turns: 50, silent: true}, rollout.Context{Reply: reply}, func(p *rollout.Player) { p.Limits.Tokens = 200_000 })
		if ep.Stop != episode.StopMaxTokens || len(ep.Turns) < 5 || len(ep.Turns) > 25 {
			t.Errorf("reply %d: stop = %s after %d turns of a server that does not count", reply, ep.Stop, len(ep.Turns))
		}
	}
	ep := playSmall(t, &small{turns: 3}, rollout.Context{})
	if ep.CostUSD != nil {
		t.Errorf("cost without prices = %v", *ep.CostUSD)
	}
}
