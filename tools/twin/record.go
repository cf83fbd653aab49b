package twin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"trajgen/outputs/log/index"
	"trajgen/pipeline/episode"
	"trajgen/registry"
)

var kind = index.Kind{Name: "a recording of tools", Title: "trajgen tool twin 1\n", Magic: "\xf7tt\x01"}

// kept is a record of the index: a call, or who answers.
type kept struct {
	Episode string `json:"ep,omitempty"`
	Attempt int    `json:"at,omitempty"`
	Session int    `json:"session"` // of the processes that recorded, from 1
	Turn    int    `json:"turn,omitempty"`
	Index   int    `json:"index,omitempty"`
	Parent  string `json:"parent,omitempty"`

	Tool      string `json:"tool,omitempty"`
	ReadOnly  bool   `json:"read_only,omitempty"`
	Digest    string `json:"digest,omitempty"`    // of its schema, and of who answers
	Arguments string `json:"arguments,omitempty"` // their digest
	History   string `json:"history,omitempty"`
	Ordinal   int    `json:"n,omitempty"`

	About string `json:"about,omitempty"` // Definition.Outside, in a frame that holds no call

	// Body has what was said; one that is long is a content of that name.
	Body json.RawMessage `json:"body,omitempty"`
	Long string          `json:"long,omitempty"`
}

// said is a call's body.
type said struct {
	Arguments json.RawMessage `json:"arguments"`
	Result    string          `json:"result,omitempty"`
	Failure   *failure        `json:"failure,omitempty"`
	Source    json.RawMessage `json:"source,omitempty"`
	ExitCode  *int            `json:"exit_code,omitempty"`
	Images    []image         `json:"images,omitempty"`
	Masked    []string        `json:"masked,omitempty"`
}

// failure is a registry.Failure.
type failure struct {
	Class   string                     `json:"class"`
	Message string                     `json:"message"`
	Status  episode.CallStatus         `json:"status,omitempty"`
	Extra   map[string]json.RawMessage `json:"extra,omitempty"`
	Broken  bool                       `json:"broken,omitempty"`
}

// image is an image whose bytes are a content.
type image struct {
	MIME  string `json:"mime,omitempty"`
	Data  string `json:"data"`
	Shown bool   `json:"shown,omitempty"`
	File  bool   `json:"file,omitempty"`
}

// maxBody is the most bytes of a body that stands in the index.
const maxBody = 16 << 10

// Recorder makes a recording.
type Recorder struct {
	index   *index.Writer
	session int
	about   map[string]json.RawMessage // descriptions that the recording has
}

// Create opens the recording in a directory for writing. More goes on with one; otherwise one that has calls is refused.
func Create(dir string, more bool) (*Recorder, error) {
	r := &Recorder{about: map[string]json.RawMessage{}}
	calls := 0
	var abouts []kept
	w, err := kind.Create(dir, func(record []byte) error {
		k, err := parse(record)
		if err != nil {
			return err
		}
		r.session = max(r.session, k.Session)
		if k.About != "" {
			abouts = append(abouts, k)
		} else {
			calls++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.index = w
	r.session++
	if calls > 0 && !more {
		err := fmt.Errorf("%s holds %d calls of another run: --resume goes on, another directory starts one", dir, calls)
		return nil, errors.Join(err, w.Close())
	}
	for _, k := range abouts {
		if r.about[k.About], err = body(w, &k); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return r, nil
}

// parse reads a record.
func parse(record []byte) (k kept, err error) {
	if err = json.Unmarshal(record, &k); err == nil && (k.Tool == "") == (k.About == "") {
		err = errors.New("it is neither a call nor a description")
	}
	return k, err
}

// contents are a recording that is read or written.
type contents interface {
	Content(name string) ([]byte, error)
}

// body is what a record says.
func body(from contents, k *kept) (json.RawMessage, error) {
	if k.Long == "" {
		return k.Body, nil
	}
	text, err := from.Content(k.Long)
	if err != nil {
		return nil, fmt.Errorf("the body %w", err)
	}
	return text, nil
}

// describe keeps what those who answer say of themselves, unless the recording has it. Others than it has are refused, as calls
// of both would stand side by side.
func (r *Recorder) describe(descriptions map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(descriptions)) {
		text := bytes.TrimSpace(descriptions[name])
		was, had := r.about[name]
		switch {
		case had && string(was) == string(text):
			continue
		case had:
			return fmt.Errorf("%s says something else of itself than when it was recorded", name)
		}
		r.about[name] = text
		if err := r.write(kept{Session: r.session, About: name}, text); err != nil {
			return err
		}
	}
	return nil
}

// keep writes a call.
func (r *Recorder) keep(k kept, asked asked, a registry.Answer) error {
	said := said{Arguments: asked.text, Result: a.Result, Source: a.Source, ExitCode: a.ExitCode, Masked: a.Masked}
	if f := a.Failure; f != nil {
		said.Failure = &failure{Class: f.Class, Message: f.Message, Status: f.Status, Broken: f.Broken}
		for key, value := range f.Extra {
			if said.Failure.Extra == nil {
				said.Failure.Extra = map[string]json.RawMessage{}
			}
			said.Failure.Extra[key], _ = value.(json.RawMessage)
		}
	}
	for _, each := range a.Images {
		name, err := r.index.Keep(each.Data)
		if err != nil {
			return err
		}
		said.Images = append(said.Images, image{each.MIME, name, each.Shown, each.File})
	}
	text, err := encode(said)
	if err != nil {
		return fmt.Errorf("keep a call: %w", err)
	}
	k.Session, k.Tool, k.ReadOnly, k.Ordinal = r.session, asked.tool, asked.readOnly, asked.ordinal
	k.Digest, k.Arguments, k.History = asked.digest.String(), asked.arguments.String(), asked.history.String()
	return r.write(k, text)
}

// write writes a record with its body.
func (r *Recorder) write(k kept, text json.RawMessage) (err error) {
	if k.Body = text; len(text) > maxBody {
		k.Body = nil
		if k.Long, err = r.index.Keep(text); err != nil {
			return err
		}
	}
	record, err := encode(k)
	if err != nil {
		return fmt.Errorf("keep a call: %w", err)
	}
	return r.index.Add(record)
}

// add copies the recording in a directory. Its sessions come after those before.
func (r *Recorder) add(dir string) error {
	t, err := OpenTape(dir)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := t.Damage(); err != nil {
		return err
	}
	last := r.session
	for _, at := range t.all {
		k, text, err := t.record(at)
		if err != nil {
			return err
		}
		if k.About != "" {
			if err := r.describe(map[string]json.RawMessage{k.About: text}); err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
			continue
		}
		k.Session += last
		r.session = max(r.session, k.Session)
		if err := t.copyImages(text, r); err != nil {
			return err
		}
		k.Body, k.Long = nil, ""
		if err := r.write(k, text); err != nil {
			return err
		}
	}
	return nil
}

// copyImages keeps the images of a call also in another recording.
func (t *Tape) copyImages(text json.RawMessage, to *Recorder) error {
	var said said
	if err := json.Unmarshal(text, &said); err != nil {
		return err
	}
	for _, each := range said.Images {
		data, err := t.index.Content(each.Data)
		if err != nil {
			return fmt.Errorf("the image %w", err)
		}
		if _, err := to.index.Keep(data); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the recording.
func (r *Recorder) Close() error { return r.index.Close() }
