package record

import (
	"bytes"
	"fmt"
	"hash/maphash"
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
		return nil, &Mismatch{Asker: who, Turn: turn, Why: t.stranger(who)}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.reel(who.Role)
	if r == nil || r.next == len(r.at) {
		return nil, &Mismatch{Asker: who, Turn: turn, Why: t.atEnd(r)}
	}
	var first *frame // that is left
	for i := r.next; i < len(r.at); i++ {
		if r.used != nil && r.used[i] {
			continue
		}
		f, err := t.look(r, i)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = f
		}
		// What was said to a request that is not made any more concerns this turn alone.
		if who.Role == "" && f.Turn != first.Turn {
			break
		}
		if same, err := t.same(r, i, f, req); err != nil {
			return nil, err
		} else if same {
			r.use(i, who.Role == "")
			x := f.Exchange
			x.Body = f.body
			return &x, nil
		}
	}
	return nil, t.differs(who, turn, r, first, req)
}

// stranger says why there is nothing of a play.
func (t *Replay) stranger(who Asker) string {
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
	if f, err := t.read(r.at[len(r.at)-1]); err == nil {
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

// look reads the i-th exchange of a reel, once where it is the next one.
func (t *Replay) look(r *reel, i int) (*frame, error) {
	if i == r.next && r.ahead != nil {
		return r.ahead, nil
	}
	f, err := t.read(r.at[i])
	if err == nil && i == r.next {
		r.ahead = f
	}
	return f, err
}

// use marks the i-th exchange as played, and in order also those before it.
func (r *reel) use(i int, inOrder bool) {
	r.ahead = nil
	if inOrder {
		if r.next = i + 1; r.next == len(r.at) {
			r.built, r.builtTo = nil, 0
		}
		return
	}
	if r.used == nil {
		r.used = make([]bool, len(r.at))
	}
	for r.used[i] = true; r.next < len(r.at) && r.used[r.next]; {
		r.next++
	}
}

// same compares a request with the i-th exchange's, at first without reading more than that.
func (t *Replay) same(r *reel, i int, f *frame, req Request) (bool, error) {
	if len(f.fields) == 0 { // nothing was sent
		return true, nil
	}
	alike := bytes.Equal(f.fields, req.Fields) && t.sameTools(f, req) && t.sameMessages(r, f, req.Messages)
	if alike {
		if r.role == "" {
			r.heard = t.say(req.Messages)
		}
		return true, nil
	}
	was, err := t.request(r, i)
	if err != nil {
		return false, err
	}
	if field, _, _ := firstDifference(was, req); field != "" {
		return false, nil
	}
	r.heard = t.say(was.Messages)
	return true, nil
}

func (t *Replay) say(messages []byte) said {
	if len(messages) == 0 {
		return said{}
	}
	open := messages[:len(messages)-1]
	return said{bytes: len(open), hash: maphash.Bytes(t.seed, open)}
}

func (t *Replay) sameTools(f *frame, req Request) bool {
	if f.Tools == 0 || len(req.Tools) == 0 {
		return f.Tools == 0 && len(req.Tools) == 0
	}
	list, ok := t.tools[f.Tools]
	return ok && list.hash == maphash.Bytes(t.seed, req.Tools)
}

func (t *Replay) sameMessages(r *reel, f *frame, messages []byte) bool {
	if f.Keep == 0 {
		return bytes.Equal(f.messages, messages)
	}
	return r.heard.bytes == f.Keep && len(messages) > f.Keep && r.heard.hash == maphash.Bytes(t.seed, messages[:f.Keep]) &&
		bytes.Equal(f.messages, messages[f.Keep:])
}

// request puts the i-th exchange's request together, from what it kept of those before it. Its messages are good until
// the next one is put together.
func (t *Replay) request(r *reel, i int) (Request, error) {
	from, messages := r.builtTo, r.built
	if from > i {
		from, messages = 0, nil
	}
	r.built, r.builtTo = nil, 0
	if r.role != "" { // others keep nothing of what came before
		from = i
	}
	var last *frame
	for _, at := range r.at[from : i+1] {
		f, err := t.read(at)
		if err != nil {
			return Request{}, err
		}
		if last = f; len(f.fields) == 0 {
			continue
		}
		if f.Keep < 0 || f.Keep > len(messages) {
			return Request{}, fmt.Errorf("read tape at byte %d: the exchange before is missing%s", at, t.damage())
		}
		messages = append(messages[:f.Keep], f.messages...)
	}
	if r.role == "" {
		r.built, r.builtTo = messages, i+1
	}
	tools, err := t.readTools(last.Tools)
	return Request{Fields: last.fields, Messages: messages, Tools: tools}, err
}

// readTools reads the list of that number.
func (t *Replay) readTools(number int) ([]byte, error) {
	if number == 0 {
		return nil, nil
	}
	list, ok := t.tools[number]
	if !ok {
		return nil, fmt.Errorf("read tape: the tools of a request are missing%s", t.damage())
	}
	inside, err := t.inside(list.at)
	if err != nil {
		return nil, err
	}
	_, text, err := unpackTools(inside)
	if err != nil {
		return nil, fmt.Errorf("read tape at byte %d: %w", list.at, err)
	}
	return text, nil
}

// differs says how a request differs from the one that should come next.
func (t *Replay) differs(who Asker, turn int, r *reel, first *frame, req Request) error {
	if who.Role == "" && first.Turn != turn {
		return &Mismatch{Asker: who, Turn: turn, Why: fmt.Sprintf("the request is not on the tape, where one of turn %d comes next", first.Turn)}
	}
	was, err := t.request(r, r.next)
	if err != nil {
		return err
	}
	m := &Mismatch{Asker: who, Turn: turn}
	m.Field, m.Recorded, m.Now = firstDifference(was, req)
	return m
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
	f, err := t.look(r, r.next)
	if err != nil {
		return nil, false // Next says so
	}
	return &f.Exchange, true
}
