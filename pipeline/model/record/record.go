// Package record keeps what models, users and approvers said, and says it again.
//
// A Recorder has two uses, each a file of frames. On a Tape stands every exchange with a model, from the request to the raw
// reply; it is kept, and a Replay answers the same requests from it without the model. Turns has the steps of attempts in play,
// from replies to the results of calls, until the journal has the attempt: after a crash it is played again from them.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"trajgen/pipeline/episode"
)

// Who is asked: the role of an Asker, and of whom a step has the answer.
const (
	Agent    = ""
	User     = "user"
	Summary  = "summary"
	Approver = "approver"
	Web      = "web"      // summarises pages
	Vision   = "vision"   // looks at images and videos
	Mixture  = "moa"      // answers with others, or makes one answer of theirs
	Home     = "home"     // a smart home that is outside
	Message  = "message"  // who takes messages
	MCP      = "mcp"      // a server outside of the sandbox
	Sampling = "sampling" // answers what a server asks
)

// Recorder is what a run records. What of it is nil is not recorded. It is used from many goroutines, several for one attempt.
type Recorder struct {
	Tape  *Tape
	Turns *Turns
}

// key is an attempt at an episode.
type key struct {
	episode string
	attempt int
}

// of says whether an attempt is this one, or that of a subagent of its episode.
func (k key) of(root key) bool {
	return k.attempt == root.attempt && episode.RootOf(k.episode) == root.episode
}

// forget deletes an attempt and its subagents. Only where there are subagents at all it looks for them.
func forget[V any](all map[key]V, subagents bool, ended key, drop func(V)) {
	if v, ok := all[ended]; ok {
		drop(v)
		delete(all, ended)
	}
	if !subagents {
		return
	}
	for k, v := range all {
		if k.of(ended) {
			drop(v)
			delete(all, k)
		}
	}
}

// Record adds a step of an attempt. A paid one is on disk when it returns; any other would survive the process, and is on disk
// with the next paid one. What a step says is on the tape, too, and the step says how much of the tape that is: behind it
// stand a line break, which no step has in it, and the numbers of exchanges.
func (r *Recorder) Record(id string, attempt int, step []byte, paid bool) error {
	if r.Tape != nil {
		if paid {
			if err := r.Tape.Sync(); err != nil {
				return err
			}
		}
		kept, err := json.Marshal(r.Tape.kept(key{id, attempt}))
		if err != nil {
			return fmt.Errorf("record a step: %w", err)
		}
		step = append(append(step, '\n'), kept...)
	}
	return r.Turns.Record(id, attempt, step, paid)
}

// Recall returns the steps of an attempt in their order, and has the tape go on behind the last one. With an error the record
// is damaged, and what comes with it is what of it can be read.
func (r *Recorder) Recall(id string, attempt int) ([][]byte, error) {
	steps, damage := r.Turns.Recall(id, attempt)
	// A run that was not recorded on a tape before is not on it: what its steps say is nothing.
	var kept map[string]int
	for i, step := range steps {
		text, count, found := bytes.Cut(step, []byte("\n"))
		steps[i], kept = text, nil
		if !found {
			continue
		}
		if err := json.Unmarshal(count, &kept); err != nil {
			damage = errors.Join(damage, fmt.Errorf("step %d: exchanges on the tape: %w", i, err))
		}
	}
	if r.Tape == nil || len(steps) == 0 || damage != nil {
		return steps, damage
	}
	return steps, r.Tape.resume(key{id, attempt}, kept)
}

// Sync returns when the tape is on the disk.
func (r *Recorder) Sync() error {
	if r.Tape == nil {
		return nil
	}
	return r.Tape.Sync()
}

// Forget drops what is held of an attempt that the journal has, and of its subagents.
func (r *Recorder) Forget(id string, attempt int) error {
	if r.Tape != nil {
		r.Tape.Forget(id, attempt)
	}
	if r.Turns == nil {
		return nil
	}
	return r.Turns.Forget(id, attempt)
}
