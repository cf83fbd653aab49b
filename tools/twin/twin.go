// Package twin records what tools answer from outside of the sandbox, and answers the same calls without them.
//
// A recording keeps each call of the last attempt at an episode. A replay looks a call up by the tool with its schema and who is
// behind it, by its arguments, and by what the episode had asked of the same family before: those calls that may have changed
// something. The episode's own calls come first, then those of another one. Nothing is answered that is not exactly the same.
//
// Nothing in a recording tells a secret: the registry takes them out of all that it gives to a twin.
package twin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"trajgen/registry"
)

// Twin is the twin of a run's tools: a recorder, a recording, or neither. All episodes share it.
type Twin struct {
	settings Settings
	recorder *Recorder // nil but when recording
	tape     *Tape     // nil but in mode replay
}

// Open opens the recording that is replayed, if that is the mode. A damaged one is refused.
func Open(s Settings) (*Twin, error) {
	t := &Twin{settings: s}
	if t.Mode() != Replay {
		return t, nil
	}
	tape, err := OpenTape(RecordingDir(s.Recording))
	if err != nil {
		return nil, err
	}
	if err := tape.Damage(); err != nil {
		return nil, errors.Join(err, tape.Close())
	}
	t.tape = tape
	return t, nil
}

// Mode is the mode of the run's twin.
func (t *Twin) Mode() string { return cmp.Or(t.settings.Mode, Live) }

// RecordingDir is where a run directory has the recording of its tools.
func RecordingDir(run string) string { return filepath.Join(run, "twin") }

// Record keeps the calls in a run directory, if that is the mode. It is called before the first Play. resumed goes on with the
// recording there. Descriptions are what those who answer say of themselves, by Definition.Outside: a replay needs them to know
// their tools.
func (t *Twin) Record(run string, resumed bool, descriptions map[string]json.RawMessage) (err error) {
	if t.Mode() != Record {
		return nil
	}
	if t.recorder, err = Create(RecordingDir(run), resumed); err != nil {
		return err
	}
	return t.recorder.describe(descriptions)
}

// Description is what one who answers said of itself when it was recorded. It is for one whose tools need not run.
func (t *Twin) Description(outside string) (description json.RawMessage, found bool, err error) {
	if t.tape == nil {
		return nil, false, nil
	}
	return t.tape.description(outside)
}

// Replays reports whether the recording alone answers calls of a tool that answers from outside.
func (t *Twin) Replays(tool string) bool { return t.settings.Answers(tool) }

// Play begins to record or to answer an attempt at an episode; nil does neither.
func (t *Twin) Play(episode string, attempt int) registry.Twin {
	if t.recorder == nil && t.tape == nil {
		return nil
	}
	return &playing{
		twin: t, episode: episode, attempt: attempt, families: map[string]hash{}, asked: map[hash]int{},
	}
}

// Sync returns when everything that was recorded is on the disk.
func (t *Twin) Sync() error {
	if t.recorder == nil {
		return nil
	}
	return t.recorder.index.Sync()
}

// Fingerprint says what of the twin decides how episodes go.
func (t *Twin) Fingerprint() string {
	if t.settings.Mode == "" {
		return ""
	}
	parts := []string{t.Mode()}
	if len(t.settings.Tools) > 0 {
		parts = append(parts, "tools "+strings.Join(t.settings.Tools, ","))
	}
	if t.tape != nil {
		parts = append(parts, "recording "+t.tape.Digest(), fmt.Sprint("max_misses ", t.settings.MaxMisses))
	}
	return strings.Join(parts, "; ")
}

// Close closes what is open.
func (t *Twin) Close() error {
	var errs []error
	if t.recorder != nil {
		errs = append(errs, t.recorder.Close())
	}
	if t.tape != nil {
		errs = append(errs, t.tape.Close())
	}
	t.recorder, t.tape = nil, nil
	return errors.Join(errs...)
}

// VerifyRecording reads the recording in a run directory, where there is one, and says what is damaged.
func VerifyRecording(run string) error {
	tape, err := OpenTape(RecordingDir(run))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(tape.Verify(), tape.Close())
}

// MergeRecordings makes one recording in a run directory of those in others, if any has one.
func MergeRecordings(run string, others []string) (err error) {
	var r *Recorder
	defer func() {
		if r != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	for _, other := range others {
		if _, err := os.Stat(RecordingDir(other)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if r == nil {
			if r, err = Create(RecordingDir(run), false); err != nil {
				return err
			}
		}
		if err := r.add(RecordingDir(other)); err != nil {
			return err
		}
	}
	return nil
}

// playing is one attempt at an episode.
type playing struct {
	twin    *Twin
	episode string
	attempt int

	mu       sync.Mutex      // guards what follows
	families map[string]hash // of the calls that may have changed something, by who answers
	asked    map[hash]int    // equal calls
	misses   int
}

// Begin is of registry.Twin.
func (p *playing) Begin(c registry.TwinCall) registry.TwinAnswer {
	asked := askedOf(c)
	p.mu.Lock()
	asked.history = p.families[c.Tool.Outside]
	asked.ordinal = p.asked[asked.exactly()]
	p.asked[asked.exactly()]++
	if !c.Tool.ReadOnly {
		p.families[c.Tool.Outside] = sum(asked.history[:], asked.hash())
	}
	p.mu.Unlock()
	if !p.twin.settings.covers(c.Tool.Name) {
		return nil
	}
	return func(arguments json.RawMessage, live func() (registry.Answer, error)) (registry.Answer, error) {
		asked := asked.with(arguments)
		if p.twin.tape != nil {
			return p.replay(asked), nil
		}
		return p.record(c, asked, live)
	}
}

// record keeps what the tool answers.
func (p *playing) record(c registry.TwinCall, asked asked, live func() (registry.Answer, error)) (registry.Answer, error) {
	if err := p.twin.recorder.index.Failed(); err != nil {
		return unusable(err), nil
	}
	a, err := live()
	if err != nil {
		return a, err
	}
	k := kept{Episode: p.episode, Attempt: p.attempt, Turn: c.Turn, Index: c.Index, Parent: shortened(c.Parent)}
	if err := p.twin.recorder.keep(k, asked, a); err != nil {
		return unusable(err), nil
	}
	a.Source = via(a.Source, Record)
	return a, nil
}

// replay gives the recorded answer, or says what the recording lacks.
func (p *playing) replay(asked asked) registry.Answer {
	a, miss, err := p.twin.tape.answer(p.episode, asked)
	switch {
	case err != nil:
		return unusable(err)
	case miss == "":
		a.Source = via(a.Source, Replay)
		return a
	}
	p.mu.Lock()
	p.misses++
	broken := p.misses > p.twin.settings.MaxMisses
	p.mu.Unlock()
	source, _ := json.Marshal(About{Via: Replay, Miss: miss})
	return registry.Answer{Failure: registry.TwinMiss(asked.tool, misses[miss], broken), Source: source}
}

// About is what a call's row says of its twin, among what the tool says of its source.
type About struct {
	Via  string `json:"via,omitempty"`
	Miss string `json:"miss,omitempty"`
}

// via adds to a call's source how it was answered, in place of what the source says of that.
func via(source json.RawMessage, mode string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(source, &fields) == nil && fields["via"] != nil {
		delete(fields, "via")
		if other, err := encode(fields); err == nil {
			source = other
		}
	}
	text := `{"via":"` + mode + `"`
	switch inner, object := strings.CutPrefix(string(source), "{"); {
	case object && inner != "}":
		text += "," + inner
	case len(source) > 0 && !object:
		text += `,"source":` + string(source) + "}"
	default:
		text += "}"
	}
	return json.RawMessage(text)
}

// unusable is the answer of a recording that cannot be written, or read: the operator has to mend that.
func unusable(err error) registry.Answer {
	f := registry.Failf("recording", "%v", err)
	f.Broken = true
	return registry.Answer{Failure: f}
}
