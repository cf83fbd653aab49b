package rollout

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/registry"
)

// Steps keeps what attempts in play got from outside, so that one whose runner died goes on where it was. It is called
// from many goroutines, several for one attempt. Who journals an attempt that ended forgets its steps.
type Steps interface {
	// Recall returns the steps of an attempt in the order in which they were recorded. With an error the record is
	// damaged, and what comes with it is what of it can be read.
	Recall(id string, attempt int) ([][]byte, error)
	// Record adds a step. It returns when a step that was paid for is on disk, and when any other is out of the process's
	// hands. An error stops the run.
	Record(ctx context.Context, id string, attempt int, step []byte, paid bool) error
}

// The kinds of steps.
const (
	stepReply   = "reply"   // a model was asked on the agent's clock, in the episode's own goroutine
	stepAnswer  = "answer"  // a user, an approver or a model was asked within a call: calls of one turn may do so in any order
	stepResults = "results" // the calls of a turn have ended
	stepResumed = "resumed" // the runner had died, and the attempt went on
)

// step is something that an attempt got from outside.
type step struct {
	Kind  string `json:"kind"`
	Turn  int    `json:"turn"`
	Role  string `json:"role,omitempty"`  // who was asked; "" is the agent's model
	About string `json:"about,omitempty"` // digest of what an answer answers, and of what a request shows that is new

	Reply  *model.Reply    `json:"reply,omitempty"`
	Failed *model.Error    `json:"failed,omitempty"` // instead of a reply
	Answer json.RawMessage `json:"answer,omitempty"`
	// Results are what the model is told of its calls, in their order.
	Results []string `json:"results,omitempty"`

	Quirks  registry.Quirks `json:"quirks,omitempty"` // of the tools as a first request showed them
	Window  int             `json:"window,omitempty"` // of the agent's model, as it was known
	Started time.Time       `json:"started,omitzero"` // the request
	Took    took            `json:"took,omitzero"`
	Left    time.Duration   `json:"left"`  // of the agent's time, afterwards
	Spent   time.Duration   `json:"spent"` // since the attempt began, while a runner lived
}

// took is how long a request took.
type took struct {
	Elapsed time.Duration `json:"elapsed"`
	Worked  time.Duration `json:"worked"` // on the agent's clock
}

// progress is the record of one attempt: what there is of it is played again, and then what happens is added. Where no
// record is kept it has no steps and nothing ahead.
type progress struct {
	steps   Steps // nil without a record
	id      string
	attempt int
	carried time.Duration // that the attempt had taken before its runner died
	started time.Time     // the attempt; zero when it begins now
	marks   []int         // turns from which it went on before

	mu       sync.Mutex // guards what follows: calls of one turn may ask at once
	turn     int        // whose calls are under way
	ahead    []step     // what was recorded and is not played again yet
	resumes  bool       // there was a record, and nothing was asked anew yet
	differed *episode.Difference
	stopped  error // what came about in a call and is no fault of the episode's
}

// recall reads the record of an attempt.
func (p *progress) recall() error {
	if p.steps == nil {
		return nil
	}
	all, err := p.steps.Recall(p.id, p.attempt)
	for i, data := range all {
		var s step // a new one for each: what is absent is to be zero
		bad := json.Unmarshal(data, &s)
		if bad == nil && s.Kind == stepReply && (s.Reply == nil) == (s.Failed == nil) {
			bad = errors.New("want a reply or an error")
		}
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("step %d: %w", i, bad))
			break
		}
		if p.carried = max(p.carried, s.Spent); s.Kind == stepResumed {
			p.marks = append(p.marks, s.Turn)
			continue
		}
		p.ahead = append(p.ahead, s)
	}
	if len(p.ahead) > 0 {
		first := p.ahead[0]
		p.resumes, p.started = true, first.Started.Add(first.Took.Elapsed-first.Spent)
	}
	return err
}

// errDiffers ends an attempt that cannot go on from its record.
var errDiffers = errors.New("the attempt took another way than its record")

// differs notes the first difference.
func (p *progress) differs(d episode.Difference) error {
	if p.differed == nil {
		d.Was, d.Got, d.At = firstDifference(d.Was, d.Got)
		p.differed = &d
	}
	return errDiffers
}

// firstDifference shows two texts from where they part.
func firstDifference(was, got string) (string, string, int) {
	const shown = 200
	at := 0
	for at < min(len(was), len(got)) && was[at] == got[at] {
		at++
	}
	return head(was[at:], shown), head(got[at:], shown), at
}

// next takes the step that is ahead, where there is one: it has to be the reply that is asked for.
func (p *progress) next(role string, turn int, about string) (*step, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ahead) == 0 {
		return nil, nil
	}
	s := p.ahead[0]
	want := episode.Difference{Turn: turn, Call: -1, Name: "request", Was: s.asks(), Got: step{Kind: stepReply, Role: role, Turn: turn, About: about}.asks()}
	if want.Was != want.Got {
		return nil, p.differs(want)
	}
	p.pop()
	return &s, nil
}

// pop takes off the first step ahead, and lets go of what it holds. The caller holds mu.
func (p *progress) pop() {
	p.ahead[0] = step{}
	p.ahead = p.ahead[1:]
}

// asks says what a step is about.
func (s step) asks() string {
	return fmt.Sprintf("%s %s of turn %d %s", s.Kind, s.Role, s.Turn, s.About)
}

// answer takes the answer to a question of a call. anew says that there is none and that it has to be asked.
func (p *progress) answer(role, about string) (data json.RawMessage, anew bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.ahead {
		switch {
		case s.Kind == stepAnswer && s.Role == role && s.About == about:
			p.ahead = slices.Delete(slices.Clone(p.ahead), i, i+1)
			return s.Answer, false, nil
		case s.Kind != stepAnswer: // the turn's calls ended without it
			return nil, false, p.differs(episode.Difference{Turn: p.turn, Call: -1, Name: role, Got: "a question that was not asked before"})
		}
	}
	return nil, true, nil
}

// compare takes the results of a turn, where there are any. It says whether there were.
func (p *progress) compare(turn int, done []episode.ToolCall) (was *step, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.differed != nil {
		return nil, errDiffers
	}
	for len(p.ahead) > 0 && p.ahead[0].Kind == stepAnswer && p.ahead[0].Turn == turn {
		p.pop() // it did not need to be asked again
	}
	if len(p.ahead) == 0 {
		return nil, nil
	}
	s := p.ahead[0]
	if s.Kind != stepResults || s.Turn != turn || len(s.Results) != len(done) {
		return nil, p.differs(episode.Difference{Turn: turn, Call: -1, Name: "results", Was: s.asks(), Got: fmt.Sprintf("%d results", len(done))})
	}
	for i, call := range done {
		if got := valid(call.Result); got != s.Results[i] {
			return nil, p.differs(episode.Difference{Turn: turn, Call: i, Name: call.Name, Was: s.Results[i], Got: got})
		}
	}
	p.pop()
	return &s, nil
}

// valid is a text as JSON keeps it.
func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}

// goesOn tells once, when the first thing happens that is not in the record, that it does.
func (p *progress) goesOn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.resumes && len(p.ahead) == 0
	p.resumes = p.resumes && !was
	return was
}

// left are the steps that an attempt ended before.
func (p *progress) left() []step {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ahead
}

// broken says that the attempt cannot go on from its record.
func (p *progress) broken() *episode.Difference {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.differed
}

// quirks are those with which the tools were shown that the next request is about.
func (p *progress) quirks() (registry.Quirks, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ahead) == 0 || p.ahead[0].Turn > 0 {
		return nil, false
	}
	return p.ahead[0].Quirks, true
}

// window is what was known of the window when the next request was made.
func (p *progress) window() (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ahead) == 0 || p.ahead[0].Kind != stepReply {
		return 0, false
	}
	return p.ahead[0].Window, true
}

// again says that what comes next was played before.
func (p *progress) again() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ahead) > 0
}

// record adds a step.
func (p *progress) record(ctx context.Context, s step, paid bool) error {
	if p.steps == nil {
		return nil
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return &recordError{fmt.Errorf("episode %s: %w", p.id, err)}
	}
	if err := p.steps.Record(context.WithoutCancel(ctx), p.id, p.attempt, bytes.TrimSuffix(text.Bytes(), []byte("\n")), paid); err != nil {
		return &recordError{err}
	}
	return nil
}

// digest names a question.
func digest(parts ...[]byte) string {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d:", len(part))
		hash.Write(part)
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:18])
}
