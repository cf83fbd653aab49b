package rollout

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/registry"
)

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
	// Results are what the calls showed the model, in their order.
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
// record is kept nothing is ahead.
type progress struct {
	*attempt
	carried time.Duration // that the attempt had taken before its runner died

	mu       sync.Mutex // guards what follows: calls of one turn may ask at once
	ahead    []step     // what was recorded and is not played again yet
	resumes  bool       // there was a record, and nothing was asked anew yet
	differed *episode.Difference
	stopped  error // what came about in a call, without being a fault of the episode
}

// recall reads the record, and takes over what it says of the attempt as a whole.
func (p *progress) recall() error {
	if p.ep.Twin != nil {
		if err := p.fork(); err != nil {
			return err
		}
	}
	if p.Recorder == nil {
		return nil
	}
	var marks []int
	before := len(p.ahead)
	all, err := p.Recorder.Recall(p.ep.ID, p.ep.Attempt)
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
			marks = append(marks, s.Turn)
			continue
		}
		p.ahead = append(p.ahead, s)
	}
	if len(p.ahead) > before {
		first := &p.ahead[before]
		p.resumes, p.ep.Resumed = true, marks
		p.ep.Started = first.Started.Add(first.Took.Elapsed - first.Spent)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}

// errDamaged is a record that cannot be read.
var errDamaged = errors.New("the record is damaged")

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

// follows notes that a subagent differed from its record: its parent cannot go on from its own either.
func (p *progress) follows(d *episode.Difference) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.differed == nil {
		p.differed = d
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
	return episode.Head(was[at:], shown), episode.Head(got[at:], shown), at
}

// take completes a question with the answer that is ahead, where there is one. A reply has to be the next step; an answer is one
// of those before the results of the turn.
func (p *progress) take(q *step) (found bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.ahead {
		switch s := &p.ahead[i]; {
		case s.about() == q.about():
			*q = *s
			copy(p.ahead[1:i+1], p.ahead[:i])
			p.pop()
			return true, nil
		case q.Kind == stepReply:
			return false, p.differs(episode.Difference{Turn: q.Turn, Call: -1, Name: "request", Was: s.about(), Got: q.about()})
		case s.Kind != stepAnswer: // the turn's calls ended without it
			return false, p.differs(episode.Difference{Turn: q.Turn, Call: -1, Name: q.Role, Got: "a question that was not asked before"})
		}
	}
	return false, nil
}

// pop takes off the first step ahead, and lets go of what it holds. The caller holds mu.
func (p *progress) pop() {
	p.ahead[0] = step{}
	p.ahead = p.ahead[1:]
}

// about says what a step is about.
func (s *step) about() string {
	return fmt.Sprintf("%s %s of turn %d %s", s.Kind, s.Role, s.Turn, s.About)
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
		return nil, p.differs(episode.Difference{Turn: turn, Call: -1, Name: "results", Was: s.about(), Got: fmt.Sprintf("%d results", len(done))})
	}
	for i, call := range done {
		if got := valid(shown(&call)); got != s.Results[i] {
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

// goesOn returns true once: when the first thing happens that is not in the record.
func (p *progress) goesOn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.resumes && len(p.ahead) == 0
	p.resumes = p.resumes && !was
	return was
}

// next is the step ahead; nil where what comes next is new.
func (p *progress) next() *step {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ahead) == 0 {
		return nil
	}
	return &p.ahead[0]
}

// rest are the steps that an attempt ended before.
func (p *progress) rest() []step {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ahead
}

// stop keeps what ends the run, or this episode without an outcome: the call in which it came about will say so in its
// own words.
func (p *progress) stop(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped == nil {
		p.stopped = err
	}
}

// ended says how the attempt differs from its record, and what stopped it.
func (p *progress) ended() (*episode.Difference, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.differed, p.stopped
}

// record adds a step. One that was paid for is on disk afterwards. That it cannot be recorded ends the run.
func (p *progress) record(s *step, paid bool) error {
	if p.Recorder == nil {
		return nil
	}
	s.Left, s.Spent = p.clock.left, p.spent()
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	err := enc.Encode(s)
	if err == nil {
		err = p.Recorder.Record(p.ep.ID, p.ep.Attempt, bytes.TrimSuffix(text.Bytes(), []byte("\n")), paid)
	}
	if err != nil {
		err = fmt.Errorf("record a step: %w", err)
		p.stop(err)
	}
	return err
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
