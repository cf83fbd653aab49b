package rollout_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
)

// errDied is what a runner dies of in these tests: whatever comes after it in the process is not kept.
var errDied = errors.New("the runner died")

// mortal is a model that kills the runner when it is asked so many times, before it answers.
type mortal struct {
	script
	die  int // number of the request
	kill context.CancelCauseFunc
}

func (m *mortal) Complete(ctx context.Context, req model.Request) (model.Reply, error) {
	if len(m.asked) == m.die {
		m.kill(errDied)
		return model.Reply{}, &model.Error{Class: model.ClassCancelled, Message: "gone"}
	}
	return m.script.Complete(ctx, req)
}

type echoArgs struct {
	Text string `json:"text"`
}

// durable is what one episode is played with, by one runner after the other.
type durable struct {
	dir    string
	steps  []func(model.Request) (model.Reply, error)
	task   episode.Task
	edit   func(*rollout.Player)
	echo   func(text string) string // what the tool says
	logs   bytes.Buffer
	asked  int
	player *rollout.Player
}

// run plays the episode until it ends, or until the runner dies at a request of its own count.
func (d *durable) run(t *testing.T, attempt, die int) (*episode.Episode, error) {
	t.Helper()
	log, err := record.OpenTurns(d.dir, record.TurnsOptions{Logger: slog.New(slog.NewTextHandler(&d.logs, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	backend, err := sandbox.Open("local", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	reg, err := registry.New(
		registry.Define(registry.Definition{Name: "echo", Toolset: "file", Description: "Says it again.", NoSandbox: true},
			func(_ context.Context, _ *registry.Env, args echoArgs) (any, error) {
				return map[string]string{"said": d.echo(args.Text)}, nil
			}),
		registry.Define(registry.Definition{Name: "clarify", Toolset: "file", Description: "Asks the user.", NoSandbox: true},
			func(ctx context.Context, env *registry.Env, args echoArgs) (any, error) {
				who, _ := registry.Service[interface {
					Ask(context.Context, string, []string) (string, error)
				}](env.Session)
				answer, err := who.Ask(ctx, args.Text, nil)
				return map[string]string{"answer": answer}, err
			}),
	)
	if err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancelCause(t.Context())
	defer kill(nil)
	// The server knows how far the conversation is by its messages.
	m := &mortal{script: script{steps: []func(model.Request) (model.Reply, error){func(req model.Request) (model.Reply, error) {
		return d.steps[req.Turn](req)
	}}}, die: die, kill: kill}
	d.player = &rollout.Player{
		Model: m, Registry: reg, Sandboxes: rollout.Sandboxes{Backend: backend}, Now: time.Now, Recorder: &record.Recorder{Turns: log}, Logger: slog.New(slog.NewTextHandler(&d.logs, nil)),
		Spending: rollout.Spending{Prices: episode.Prices{"m": {Input: 1e6, Output: 1e6}}},
	}
	if d.edit != nil {
		d.edit(d.player)
	}
	task := d.task
	task.ID = "t"
	task.Prompt = []episode.Message{{Role: "user", Content: "do it"}}
	ep := &episode.Episode{Key: episode.Key{Task: "t"}, Toolsets: []string{"file"}, Attempt: attempt}
	ep.ID = ep.Key.ID()
	err = d.player.Play(ctx, &task, ep)
	d.asked += len(m.asked)
	return ep, err
}

// TestGoesOnWithArgumentsThatAreNoObject: later requests have in their place what they would have had.
func TestGoesOnWithArgumentsThatAreNoObject(t *testing.T) {
	steps := slices.Concat([]func(model.Request) (model.Reply, error){call(
		episode.Call{ID: "a", Name: "echo", Arguments: `{text: 'x'}`}, episode.Call{ID: "b", Name: "echo", Arguments: `{"text": "y`})}, talk(2))
	whole := &durable{dir: t.TempDir(), steps: steps, echo: same}
	want, err := whole.run(t, 1, -1)
	if err != nil || want.Messages[1].Calls[0].Sent != `{"text":"x"}` || want.Messages[1].Calls[1].Sent == "" {
		t.Fatalf("%+v, %v", want, err)
	}
	for die := 1; die < 4; die++ {
		d := &durable{dir: t.TempDir(), steps: steps, echo: same}
		if _, err := d.run(t, 1, die); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		got, err := d.run(t, 1, -1)
		if err != nil || got.Differed != nil {
			t.Fatalf("%v, %+v", err, got.Differed)
		}
		if diff := cmp.Diff(timeless(t, want), timeless(t, got)); diff != "" || d.asked != 4 {
			t.Errorf("died at %d, %d requests (-want +got):\n%s", die, d.asked, diff)
		}
	}
}

func same(text string) string { return text }

// talk is an episode of so many turns with a call each, and an answer.
func talk(n int) (steps []func(model.Request) (model.Reply, error)) {
	for i := range n {
		steps = append(steps, call(episode.Call{ID: fmt.Sprint("c", i), Name: "echo", Arguments: fmt.Sprintf(`{"text":"<%d>"}`, i)}))
	}
	return append(steps, say("done"))
}

// timeless is an episode without what may differ between one play and another.
func timeless(t *testing.T, ep *episode.Episode) string {
	t.Helper()
	kept := *ep
	kept.Started, kept.Elapsed, kept.Phases, kept.Resumed = time.Time{}, 0, episode.Phases{}, nil
	kept.Turns, kept.Calls = slices.Clone(ep.Turns), slices.Clone(ep.Calls)
	for i := range kept.Turns {
		kept.Turns[i].Started, kept.Turns[i].Elapsed, kept.Turns[i].Waited = time.Time{}, 0, 0
	}
	for i := range kept.Calls {
		kept.Calls[i].Started, kept.Calls[i].Elapsed, kept.Calls[i].SandboxTime = time.Time{}, 0, 0
	}
	text, err := json.MarshalIndent(kept, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestGoesOn lets the runner die at every request of an episode, also twice: nothing is asked again, and the row is that
// of an episode that was never interrupted, but for the mark.
func TestGoesOn(t *testing.T) {
	const n = 5
	whole := &durable{dir: t.TempDir(), steps: talk(n), echo: same}
	want, err := whole.run(t, 1, -1)
	if err != nil || want.Resumed != nil || len(want.Turns) != n+1 {
		t.Fatalf("%+v, %v", want, err)
	}
	for die := range n + 1 {
		for again := range n + 1 - die {
			d := &durable{dir: t.TempDir(), steps: talk(n), echo: same}
			if _, err := d.run(t, 1, die); !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			if _, err := d.run(t, 1, again); !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			got, err := d.run(t, 1, -1)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(timeless(t, want), timeless(t, got)); diff != "" {
				t.Errorf("died at %d and %d (-want +got):\n%s", die, again, diff)
			}
			if d.asked != n+1 {
				t.Errorf("died at %d and %d: %d requests, want %d", die, again, d.asked, n+1)
			}
			// Where nothing was recorded there was nothing to go on from.
			var marks []int
			if die > 0 {
				marks = append(marks, die)
			}
			if die+again > 0 {
				marks = append(marks, die+again)
			}
			if diff := cmp.Diff(marks, got.Resumed); diff != "" {
				t.Errorf("died at %d and %d, marks (-want +got):\n%s", die, again, diff)
			}
			if got.CostUSD == nil || *got.CostUSD != *want.CostUSD {
				t.Errorf("cost %v, want %v", got.CostUSD, *want.CostUSD)
			}
		}
	}
}

// TestStartsAnew has a tool that says something else the second time: the attempt is given up with all that it cost,
// without a request, and says what differed.
func TestStartsAnew(t *testing.T) {
	said := "one"
	d := &durable{dir: t.TempDir(), steps: talk(4), echo: func(text string) string { return text + said }}
	if _, err := d.run(t, 1, 3); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	said = "ore"
	ep, err := d.run(t, 1, -1)
	if err != nil {
		t.Fatal(err)
	}
	want := &episode.Difference{Turn: 0, Call: 0, Name: "echo", At: 13, Was: `ne"}`, Got: `re"}`}
	if diff := cmp.Diff(want, ep.Differed); diff != "" || ep.Outcome != episode.Cancelled || ep.Fault.Class != "resume_differs" || ep.Reward != nil {
		t.Errorf("%s, %+v (-want +got):\n%s", ep.Outcome, ep.Fault, diff)
	}
	ended := ep.Ended()
	if ended.Turns != 3 || ended.Usage.Prompt != 30 || ended.Usage.Completion != 15 || ended.CostUSD == nil || *ended.CostUSD != 45 || d.asked != 3 {
		t.Errorf("%+v after %d requests", ended, d.asked)
	}
	if ep, err = d.run(t, 2, -1); err != nil || ep.Outcome != episode.Success || d.asked != 8 {
		t.Errorf("%+v, %v after %d requests", ep, err, d.asked)
	}
	if log := d.logs.String(); !strings.Contains(log, "starts anew") || !strings.Contains(log, ep.ID) {
		t.Errorf("the log says %q", log)
	}
}

// TestGivenUpFallback holds that what a fallback answered in an attempt that is given up is paid for at its own price.
func TestGivenUpFallback(t *testing.T) {
	said := "one"
	d := &durable{dir: t.TempDir(), echo: func(text string) string { return text + said }}
	for _, step := range talk(4) {
		d.steps = append(d.steps, func(req model.Request) (model.Reply, error) {
			reply, err := step(req)
			reply.Model, reply.Fallback = "", "spare at b"
			return reply, err
		})
	}
	d.edit = func(p *rollout.Player) {
		p.Spending = rollout.Spending{Prices: episode.Prices{"m": {Input: 1e6, Output: 1e6}, "spare": {Input: 2e6, Output: 2e6}}, Asked: "m"}
	}
	if _, err := d.run(t, 1, 3); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	said = "another"
	ep, err := d.run(t, 1, -1)
	if err != nil || ep.Outcome != episode.Cancelled || ep.CostUSD == nil || *ep.CostUSD != 3*15*2 {
		t.Errorf("%s, %v, costs %v, want 90", ep.Outcome, err, ep.CostUSD)
	}
}

// TestDamagedRecord flips a bit in the middle of the record: the attempt is given up, and what of it can be read counts.
func TestDamagedRecord(t *testing.T) {
	d := &durable{dir: t.TempDir(), steps: talk(4), echo: same}
	if _, err := d.run(t, 1, 3); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	path := filepath.Join(d.dir, record.TurnsName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[bytes.Index(data, []byte(`<1>`))] ^= 1 // in the second reply
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	ep, err := d.run(t, 1, -1)
	if err != nil || ep.Outcome != episode.Cancelled || ep.Fault.Class != "record_damaged" || ep.Ended().Turns != 2 || d.asked != 3 {
		t.Errorf("%s, %+v, %+v, %v", ep.Outcome, ep.Fault, ep.Ended(), err)
	}
	if log := d.logs.String(); !strings.Contains(log, ep.ID) || !strings.Contains(log, "damaged") {
		t.Errorf("the log says %q", log)
	}
}

// TestHostileRecord feeds records that no runner has written: each ends in an attempt that is given up, or goes on.
func TestHostileRecord(t *testing.T) {
	for _, text := range []string{
		`null`, `{}`, `[]`, `{"kind":"reply"}`, `{"kind":"reply","turn":-1,"reply":{}}`, `{"kind":"results","turn":0,"results":["x"]}`,
		`{"kind":"answer","role":"user"}`, `{"kind":"resumed","turn":7,"spent":-5}`, `{"kind":"reply","reply":{"Message":{"role":"assistant"}},"left":-1}`,
		`{"kind":"reply","failed":{"Class":"context_overflow"}}`, `{"kind":"reply","reply":{"Tokens":{"Prompt":[-1]}}}`,
	} {
		d := &durable{dir: t.TempDir(), steps: talk(1), echo: same}
		log, err := record.OpenTurns(d.dir, record.TurnsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		id := episode.Key{Task: "t"}.ID()
		if err := log.Record(id, 1, []byte(text), false); err != nil {
			t.Fatal(err)
		}
		log.Close()
		ep, err := d.run(t, 1, -1)
		if err != nil || ep.Outcome != episode.Cancelled && ep.Outcome != episode.Success {
			t.Errorf("%s: %s, %+v, %v", text, ep.Outcome, ep.Fault, err)
		}
	}
}

// TestUserIsAskedOnce holds that an answer of the model that plays the user comes from the record, also where its call
// had not ended when the runner died.
func TestUserIsAskedOnce(t *testing.T) {
	user := &script{steps: []func(model.Request) (model.Reply, error){say("blue")}}
	var die context.CancelCauseFunc
	d := &durable{
		dir: t.TempDir(), task: episode.Task{User: &episode.User{Model: true}},
		steps: []func(model.Request) (model.Reply, error){
			call(episode.Call{ID: "q", Name: "clarify", Arguments: `{"text":"which?"}`}, episode.Call{ID: "e", Name: "echo", Arguments: `{"text":"x"}`}),
			say("done"),
		},
		echo: func(text string) string {
			if die != nil {
				die(errDied)
			}
			return text
		},
	}
	d.edit = func(p *rollout.Player) { p.User = user }
	ctx, kill := context.WithCancelCause(t.Context())
	die = kill
	play := d.edit
	d.edit = func(p *rollout.Player) {
		play(p)
		p.Model = dying{p.Model, ctx}
	}
	if _, err := d.run(t, 1, -1); err == nil {
		t.Fatal("the runner lives")
	}
	die, d.edit = nil, play
	ep, err := d.run(t, 1, -1)
	if err != nil || ep.Outcome != episode.Success || len(user.asked) != 1 || ep.User.Questions != 1 || ep.User.Usage.Prompt != 10 || d.asked != 2 {
		t.Errorf("%s, %+v, %v; %d questions, %d requests", ep.Outcome, ep.User, err, len(user.asked), d.asked)
	}
	if !slices.Equal(ep.Resumed, []int{1}) {
		t.Errorf("resumed at %v, want turn 1", ep.Resumed)
	}
}

// TestNothingIsPlayedUnrecorded holds that what cannot be recorded ends the run and not the episode, whoever was asked.
func TestNothingIsPlayedUnrecorded(t *testing.T) {
	for _, broken := range []string{"reply", "answer"} {
		var player *rollout.Player
		breaks := func(step func(model.Request) (model.Reply, error)) func(model.Request) (model.Reply, error) {
			return func(req model.Request) (model.Reply, error) {
				if err := player.Recorder.Turns.Close(); err != nil {
					t.Error(err)
				}
				return step(req)
			}
		}
		agent := call(episode.Call{ID: "q", Name: "clarify", Arguments: `{"text":"which?"}`})
		user := &script{steps: []func(model.Request) (model.Reply, error){breaks(say("blue"))}}
		if broken == "reply" {
			agent = breaks(agent)
		}
		d := &durable{
			dir: t.TempDir(), task: episode.Task{User: &episode.User{Model: true}}, echo: same,
			steps: []func(model.Request) (model.Reply, error){agent, say("done")},
			edit:  func(p *rollout.Player) { player, p.User = p, user },
		}
		ep, err := d.run(t, 1, -1)
		if err == nil || !strings.Contains(err.Error(), "record a step") || ep.Outcome != "" || d.asked != 1 {
			t.Errorf("%s: %v, outcome %q after %d requests", broken, err, ep.Outcome, d.asked)
		}
	}
}

// dying is a model that is gone when ctx is.
type dying struct {
	model.Model
	ctx context.Context
}

func (d dying) Complete(ctx context.Context, req model.Request) (model.Reply, error) {
	if d.ctx.Err() != nil {
		return model.Reply{}, &model.Error{Class: model.ClassQuota, Fatal: true, Message: "gone"}
	}
	return d.Model.Complete(ctx, req)
}

// TestCompactionIsNotPaidTwice has an episode go on whose conversation was shortened by a summary, and one whose server
// had refused it for its length.
func TestCompactionIsNotPaidTwice(t *testing.T) {
	long := strings.Repeat("long ", 2000)
	var refused bool
	steps := func() (steps []func(model.Request) (model.Reply, error)) {
		refused = false
		for i := range 8 {
			steps = append(steps, func(req model.Request) (model.Reply, error) {
				if i == 6 && !refused {
					refused = true
					return fail(&model.Error{Class: model.ClassContextOverflow, Status: 400, Message: "too long"})(req)
				}
				return call(episode.Call{ID: fmt.Sprint("c", i), Name: "echo", Arguments: fmt.Sprintf(`{"text":"%d %s"}`, i, long)})(req)
			})
		}
		return append(steps, say("done"))
	}
	summary := &script{steps: []func(model.Request) (model.Reply, error){say("a summary")}}
	edit := func(p *rollout.Player) {
		p.Context = rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: episode.CompactSummarize, SummaryModel: "m"}, Summary: summary}
	}
	whole := &durable{dir: t.TempDir(), steps: steps(), echo: same, edit: edit}
	want, err := whole.run(t, 1, -1)
	if err != nil || len(want.Compactions) != 1 || len(summary.asked) != 1 {
		t.Fatalf("%+v, %v, %d summaries", want.Compactions, err, len(summary.asked))
	}
	for die := 5; die < 10; die++ {
		summary.asked = nil
		d := &durable{dir: t.TempDir(), steps: steps(), echo: same, edit: edit}
		if _, err := d.run(t, 1, die); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		got, err := d.run(t, 1, -1)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(timeless(t, want), timeless(t, got)); diff != "" || len(summary.asked) != 1 || d.asked != whole.asked {
			t.Errorf("died at %d: %d summaries, %d requests (-want +got):\n%s", die, len(summary.asked), d.asked, diff)
		}
	}
}

// TestShortenedAsItWas has an episode go on whose conversation was shortened, where the model's window is another one by
// now: the row says what was sent, which is what the model saw. Where it would be shortened elsewhere it starts anew.
func TestShortenedAsItWas(t *testing.T) {
	long := strings.Repeat("long ", 400)
	window, at := 3000, 0.0
	start := func() *durable {
		d := &durable{dir: t.TempDir(), echo: func(text string) string { return text + long }}
		for _, step := range talk(9) {
			d.steps = append(d.steps, func(req model.Request) (model.Reply, error) {
				reply, err := step(req)
				for _, m := range req.Messages {
					reply.Usage.Prompt += len(m.Content) / 4
				}
				return reply, err
			})
		}
		d.edit = func(p *rollout.Player) {
			p.Context = rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: episode.CompactDrop, CompactAt: at}, Window: func(string) int { return window }}
		}
		return d
	}
	whole := start()
	want, err := whole.run(t, 1, -1)
	if err != nil || len(want.Compactions) == 0 || want.Compactions[0].Turn > 6 {
		t.Fatalf("%+v, %v", want.Compactions, err)
	}
	for _, later := range []int{2600, 100_000, 0} {
		window = 3000
		d := start()
		if _, err := d.run(t, 1, 9); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		window = later
		got, err := d.run(t, 1, -1)
		if err != nil {
			t.Fatal(err)
		}
		// The last turn was asked for with the window of the run that went on.
		for turn := range 9 {
			if diff := cmp.Diff(want.Sent(turn), got.Sent(turn)); diff != "" {
				t.Errorf("window %d: turn %d (-want +got):\n%s", later, turn, diff)
			}
		}
		if len(got.Turns) != 10 || d.asked != 10 {
			t.Errorf("window %d: %d turns, %d requests, %s %+v", later, len(got.Turns), d.asked, got.Outcome, got.Fault)
		}
	}
	window = 3000
	d := start()
	if _, err := d.run(t, 1, 9); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	at = 0.6
	if ep, err := d.run(t, 1, -1); err != nil || ep.Outcome != episode.Cancelled || ep.Differed == nil || ep.Ended().Turns != 9 {
		t.Errorf("%s, %+v, %v", ep.Outcome, ep.Differed, err)
	}
}

// TestDearer has an episode go on where the model has another price by now: what was paid for is kept, and no more is
// bought than the new price leaves.
func TestDearer(t *testing.T) {
	price := 1e6
	d := &durable{dir: t.TempDir(), steps: talk(8), echo: same}
	d.edit = func(p *rollout.Player) {
		p.Spending = rollout.Spending{Prices: episode.Prices{"m": {Input: price, Output: price}}, Asked: "m"}
		p.Limits.USD = 100
	}
	if _, err := d.run(t, 1, 4); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	price = 4e6
	ep, err := d.run(t, 1, -1)
	if err != nil || ep.Stop != episode.StopMaxCost || len(ep.Turns) != 4 || ep.Unplayed != 0 || d.asked != 4 {
		t.Errorf("stop %s after %d turns and %d requests, %d unplayed, %v", ep.Stop, len(ep.Turns), d.asked, ep.Unplayed, err)
	}
}

// TestQuirksAreRecorded lets a runner die behind a turn whose tools had to be shown plainer: those that follow know of
// nothing, and show the episode what it was shown.
func TestQuirksAreRecorded(t *testing.T) {
	d := &durable{dir: t.TempDir(), steps: talk(2), echo: same}
	d.edit = func(p *rollout.Player) { p.Registry = p.Registry.WithQuirks(registry.Quirks{registry.QuirkFormat}) }
	if _, err := d.run(t, 1, 1); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	d.edit = nil
	if ep, err := d.run(t, 1, -1); err != nil || ep.Outcome != episode.Success || d.asked != 3 {
		t.Errorf("%s, %+v, %v", ep.Outcome, ep.Fault, err)
	}
}
