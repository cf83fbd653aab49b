package record

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Mismatch is a request that the tape does not answer.
type Mismatch struct {
	Asker
	Turn int
	// Field is where the request differs from the one that was recorded, such as messages[3].content, and Recorded and
	// Now are what it is there. Without one, Why says why there is nothing to compare with.
	Field, Recorded, Now string
	Why                  string
}

func (m *Mismatch) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "episode %s turn %d", m.Episode, m.Turn)
	if m.Attempt > 1 {
		fmt.Fprintf(&b, " (attempt %d)", m.Attempt)
	}
	if m.Role != "" {
		b.WriteString(", " + m.Role)
	}
	if m.Field != "" {
		fmt.Fprintf(&b, ": %s differs from the tape (recorded %s, now %s)", m.Field, m.Recorded, m.Now)
	} else {
		b.WriteString(": " + m.Why)
	}
	return b.String()
}

// Next gives back what was recorded for a request, which it is not given again. The agent's requests come in the order
// in which they were recorded, and others' in any. The exchange's Request is empty. An error is a *Mismatch, or says
// that the tape cannot be read.
func (t *Replay) Next(who Asker, turn int, req Request) (*Exchange, error) {
	p := t.plays[key{who.Episode, who.Attempt}]
	if p == nil {
		return nil, &Mismatch{Asker: who, Turn: turn, Why: t.unknown(who)}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.reel(who.Role)
	if r == nil || r.next == len(r.at) {
		return nil, &Mismatch{Asker: who, Turn: turn, Why: t.atEnd(r)}
	}
	if err := t.load(r); err != nil {
		return nil, err
	}
	first := &r.frames[r.next]
	for i := r.next; i < len(r.frames); i++ {
		f := &r.frames[i]
		if r.used[i] {
			continue
		}
		// What was said to a request that is not made any more concerns this turn alone.
		if who.Role == "" && f.Turn != first.Turn {
			break
		}
		if same, err := f.answers(req); err != nil {
			return nil, err
		} else if same {
			x := f.Exchange
			r.use(i, who.Role == "")
			return &x, nil
		}
	}
	r.frames = nil // they are loaded again if there is another request
	if who.Role == "" && first.Turn != turn {
		why := fmt.Sprintf("the request is not on the tape, where one of turn %d comes next", first.Turn)
		return nil, &Mismatch{Asker: who, Turn: turn, Why: why}
	}
	d := firstDifference(first.request(), req)
	return nil, &Mismatch{Asker: who, Turn: turn, Field: d.field, Recorded: d.recorded, Now: d.now}
}

// unknown says why there is nothing of a play.
func (t *Replay) unknown(who Asker) string {
	var attempts []int
	episodes := map[string]bool{}
	for key := range t.plays {
		episodes[key.episode] = true
		if key.episode == who.Episode {
			attempts = append(attempts, key.attempt)
		}
	}
	if len(attempts) > 0 {
		slices.Sort(attempts)
		return fmt.Sprintf("the tape has of this episode only attempts %v, and not %d", attempts, who.Attempt)
	}
	return fmt.Sprintf("the episode is not on the tape, which has %d others: were seed, dataset and samples the same, and was it played to its end?", len(episodes))
}

// atEnd says why nothing is left of a reel.
func (t *Replay) atEnd(r *reel) string {
	if r == nil {
		return "the request is not on the tape: nothing was asked in this role"
	}
	var f frame
	if err := t.read(r.at[len(r.at)-1], &f); err == nil {
		return fmt.Sprintf("the request is not on the tape, which ends for this episode with turn %d%s", f.Turn, t.damage())
	}
	return "the request is not on the tape" + t.damage()
}

func (t *Replay) damage() string {
	if t.gaps == 0 {
		return ""
	}
	return "; it is damaged"
}

// use marks the i-th exchange as played, and in order also those before it.
func (r *reel) use(i int, inOrder bool) {
	r.used[i] = true
	if inOrder {
		r.next = i
	}
	for r.next < len(r.at) && r.used[r.next] {
		r.next++
	}
	if r.next == len(r.at) {
		r.frames = nil
	}
}

// load reads the exchanges of a reel and puts their requests together.
func (t *Replay) load(r *reel) error {
	if r.frames != nil {
		return nil
	}
	frames := make([]frame, len(r.at))
	lists := map[int][]byte{}
	var open []byte // the messages of the request before
	for i, at := range r.at {
		f := &frames[i]
		if err := t.read(at, f); err != nil {
			return err
		}
		if len(f.fields) == 0 {
			continue // nothing was sent
		}
		if f.Keep < 0 || f.Keep > len(open) {
			f.damage = fmt.Errorf("read tape at byte %d: the exchange before is missing%s", at, t.damage())
			continue
		}
		if f.Keep < len(open) {
			open = slices.Clip(open[:f.Keep]) // appending must not change the earlier request
		}
		open = append(open, f.open...)
		f.open = open
		if r.role != "" { // others keep nothing of what came before
			open = nil
		}
		if f.Tools > 0 && lists[f.Tools] == nil {
			list, err := t.readTools(f.Tools)
			if f.damage = err; err != nil {
				continue
			}
			lists[f.Tools] = list
		}
		f.tools = lists[f.Tools]
	}
	r.frames = frames
	if r.used == nil {
		r.used = make([]bool, len(r.at))
	}
	return nil
}

// answers reports whether the exchange is that of a request.
func (f *frame) answers(req Request) (bool, error) {
	if len(f.fields) == 0 { // nothing was sent
		return true, nil
	}
	if f.damage != nil {
		return false, f.damage
	}
	was := f.request()
	if bytes.Equal(was.Fields, req.Fields) && bytes.Equal(was.Messages, req.Messages) && bytes.Equal(was.Tools, req.Tools) {
		return true, nil
	}
	return firstDifference(was, req).field == "", nil
}

// request is the whole request.
func (f *frame) request() Request {
	was := Request{Fields: f.fields, Tools: f.tools}
	if f.open != nil {
		was.Messages = slices.Concat(f.open, []byte("]"))
	}
	return was
}

// readTools reads the list of that number.
func (t *Replay) readTools(number int) ([]byte, error) {
	at, ok := t.tools[number]
	if !ok {
		return nil, fmt.Errorf("read tape: the tools of a request are missing%s", t.damage())
	}
	inside, err := t.inside(at)
	if err != nil {
		return nil, err
	}
	packed, err := unpack(inside, &list{})
	if err != nil {
		return nil, fmt.Errorf("read tape at byte %d: %w", at, err)
	}
	text, err := unpacker.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("read tape at byte %d: %w", at, err)
	}
	return text, nil
}

// Peek gives the exchange that was recorded next, and leaves it on the tape. Of others than the agent it may be
// another asker's, who asks at the same time.
func (t *Replay) Peek(who Asker) (*Exchange, bool) {
	p := t.plays[key{who.Episode, who.Attempt}]
	if p == nil {
		return nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.reel(who.Role)
	if r == nil || r.next == len(r.at) {
		return nil, false
	}
	if err := t.load(r); err != nil {
		return nil, false // Next says so
	}
	return &r.frames[r.next].Exchange, true
}
