// Package outbox keeps the messages of an episode, which nothing else gets: what verifiers look at.
package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Usual are the channels of a task that names none. The first of a platform is the one that its name alone means.
var Usual = []string{"telegram:family", "telegram:work", "discord:general", "slack:team", "email:me@home.example", "webhook:alerts"}

// Message is what is sent.
type Message struct {
	ID      string `json:"id"`
	Channel string `json:"channel"` // PLATFORM:ID
	Thread  string `json:"thread"`
	Text    string `json:"text"`
	Files   []File `json:"files"`
}

// File is a file of a message.
type File struct {
	Name   string `json:"name"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
	Data   []byte `json:"-"`
}

// Reaction is an emoji at a message.
type Reaction struct {
	Channel string `json:"channel"`
	Message string `json:"message_id"`
	Emoji   string `json:"emoji"`
}

// Outbox is where messages go. Its methods may be called from many goroutines.
type Outbox struct {
	channels []string

	mu        sync.Mutex // guards what follows
	sent      []Message
	reactions []Reaction
}

// New makes an outbox with the channels of a task, or the usual ones.
func New(channels []string) *Outbox {
	if len(channels) == 0 {
		channels = Usual
	}
	return &Outbox{channels: channels, sent: []Message{}, reactions: []Reaction{}}
}

var channelForm = regexp.MustCompile(`^[a-z][a-z0-9_]*:\S+$`)

// Check says what is wrong with channels.
func Check(channels []string) error {
	var wrong []error
	for _, c := range channels {
		if !channelForm.MatchString(c) {
			wrong = append(wrong, fmt.Errorf("channel %q; want PLATFORM:ID such as telegram:family", c))
		}
	}
	return errors.Join(wrong...)
}

// Find resolves a target: a platform alone is the first of its channels, and behind a channel may stand a thread.
func Find(channels []string, target string) (channel, thread string, ok bool) {
	for _, c := range channels {
		if c == target || strings.HasPrefix(c, target+":") {
			return c, "", true
		}
		if rest, below := strings.CutPrefix(target, c+":"); below && rest != "" {
			channel, thread, ok = c, rest, true
		}
	}
	return channel, thread, ok
}

// Channels lists where messages can be sent.
func (o *Outbox) Channels() []string { return slices.Clone(o.channels) }

// most bounds what an episode can send.
const most = 1000

// ErrFull says that an outbox takes no more.
var ErrFull = fmt.Errorf("an episode sends at most %d messages and reactions", most)

// Send keeps a message and gives it an id.
func (o *Outbox) Send(m Message) (id string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.sent) >= most {
		return "", ErrFull
	}
	m.ID = fmt.Sprintf("m%d", len(o.sent)+1)
	o.sent = append(o.sent, m)
	return m.ID, nil
}

// React adds a reaction, or takes it away.
func (o *Outbox) React(r Reaction, add bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := slices.Index(o.reactions, r)
	switch {
	case add && len(o.reactions) >= most:
		return ErrFull
	case add && at < 0:
		o.reactions = append(o.reactions, r)
	case !add && at < 0:
		return fmt.Errorf("message %[2]s has no reaction %[1]s", r.Emoji, r.Message)
	case !add:
		o.reactions = slices.Delete(o.reactions, at, at+1)
	}
	return nil
}

// Outbox is what verifiers look at.
func (o *Outbox) Outbox() (json.RawMessage, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return json.Marshal(map[string]any{"channels": o.channels, "sent": o.sent, "reactions": o.reactions})
}
