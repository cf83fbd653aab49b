// Package proof keeps what is known of tasks' verifiers: a store of proofs on this machine, by the digest of a task and of the
// conditions under which it is played.
package proof

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"

	"trajgen/outputs/log/disk"
	"trajgen/pipeline/episode"
)

// Variable names another directory than the default for proofs.
const Variable = "TRAJGEN_PROOF_DIR"

// Dir is the directory that proofs are kept in: what is given, or what the environment says, or else one beside the images.
func Dir(given, images string) string {
	return cmp.Or(given, os.Getenv(Variable), filepath.Join(filepath.Dir(images), "proofs"))
}

// Digest names a task under conditions. What a task is called, and where it lies, changes no verdict.
func Digest(conditions string, task *episode.Task) (string, error) {
	t := task.Placeless()
	t.ID, t.Row, t.Labels, t.Metadata = "", 0, episode.Labels{}, nil
	content, err := json.Marshal(&t)
	if err != nil {
		return "", fmt.Errorf("digest of task %s: %w", task.ID, err)
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%d:%s", len(conditions), conditions)
	hash.Write(content)
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Store is a directory of proofs. A file has those whose digests begin alike, a line for each time that something was learned.
// It is safe for concurrent use, also by several processes: they only append. A line that was torn, or is not one of ours, says
// nothing.
type Store struct {
	Dir string // is made when something is kept
}

// Get returns what is known of a digest; nil is nothing.
func (s Store) Get(digest string) (*episode.Proof, error) {
	content, err := os.ReadFile(s.path(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read proofs: %w (the environment variable %s names another directory)", err, Variable)
	}
	var known *episode.Proof
	for line := range bytes.Lines(content) {
		if !bytes.Contains(line, []byte(digest)) {
			continue
		}
		var p episode.Proof
		if json.Unmarshal(line, &p) == nil && p.Digest == digest {
			known = merged(known, p)
		}
	}
	return known, nil
}

// Put adds what was learned; of what was known before, p replaces what it says itself.
func (s Store) Put(p episode.Proof) error {
	if p.Gold == nil && p.Noop == nil && len(p.Faults)+len(p.Attacks) == 0 {
		return nil // as of a sandbox that failed
	}
	known, err := s.Get(p.Digest)
	if err != nil || known != nil && reflect.DeepEqual(known, merged(known, p)) {
		return err
	}
	line, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("keep the proof %s: %w", p.Digest, err)
	}
	if err := disk.MakeDir(s.Dir); err != nil {
		return fmt.Errorf("make the directory of proofs: %w (the environment variable %s names another)", disk.Explain(s.Dir, err), Variable)
	}
	path := s.path(p.Digest)
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("keep a proof: %w", disk.Explain(path, err))
	}
	// The first end of a line is that of what a killed process left half-written.
	if _, err = file.Write(fmt.Appendf(nil, "\n%s\n", line)); err != nil {
		err = fmt.Errorf("keep a proof: %w", disk.Explain(path, err))
	}
	return errors.Join(err, file.Close())
}

// Empty says that nothing is known of any task.
func (s Store) Empty() bool {
	entries, err := os.ReadDir(s.Dir)
	return errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0
}

func (s Store) path(digest string) string {
	return filepath.Join(s.Dir, digest[:min(3, len(digest))]+".jsonl")
}

// merged is what is known after p was learned.
func merged(known *episode.Proof, p episode.Proof) *episode.Proof {
	if known == nil {
		return &p
	}
	all := *known
	all.Faults, all.Attacks = with(all.Faults, p.Faults), with(all.Attacks, p.Attacks)
	learn := func(agent string, was **float64, says *float64) {
		if says != nil {
			delete(all.Faults, agent)
		}
		if says != nil || p.Faults[agent] != "" {
			*was = says
		}
	}
	learn("gold", &all.Gold, p.Gold)
	learn("noop", &all.Noop, p.Noop)
	if len(all.Faults) == 0 {
		all.Faults = nil
	}
	return &all
}

// with is a map with more in it; the map itself stays as it is.
func with[V any](m, more map[string]V) map[string]V {
	if len(m)+len(more) == 0 {
		return nil
	}
	all := map[string]V{}
	maps.Copy(all, m)
	maps.Copy(all, more)
	return all
}
