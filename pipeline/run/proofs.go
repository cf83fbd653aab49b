package run

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"trajgen/outputs/log"
	"trajgen/outputs/log/disk"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run/proof"
)

// Proofs are the proofs that this machine keeps.
func (p Play) Proofs() proof.Store { return proof.Store{Dir: proof.Dir(p.ProofDir, ImageDir())} }

// ProofDigest names a task under the experiment's conditions.
func (e *Experiment) ProofDigest(task *episode.Task) (string, error) {
	return proof.Digest(e.conditions, task)
}

// decisive are the sections and keys that the play of a reference solution, or its verdict, depends on.
var decisive = []string{"sandbox", "delegation", "commands", "tools.disabled_toolsets", "tools.result_limits", "limits.turns", "limits.time"}

// condition gathers what a verdict of a verifier depends on, beside the task. What is only about the model is not of it.
func (e *Experiment) condition(context.Context) error {
	all := map[string]string{
		"version": version, "level": string(e.Backend.Guarantees().Level), "plugins": e.parts.Plugins, "mcp": e.parts.MCP,
	}
	for _, s := range e.File.Settings() {
		section, _, _ := strings.Cut(s.Key, ".")
		if s.Decides != "no" && (slices.Contains(decisive, section) || slices.Contains(decisive, s.Key)) {
			all[s.Key] = s.text()
		}
	}
	e.conditions = Fingerprint(all)
	return nil
}

// proofsFile is where a run directory keeps what was known of its tasks when the run began, so that a resume writes the same rows
// whatever was learned since. A run directory without it knows of none.
const proofsFile = "proofs.jsonl"

// begunProofs are those of a run directory.
type begunProofs struct {
	file *os.File
	rows int           // tasks of these first rows were looked up
	at   map[int]int64 // row → where its line begins
}

// proofLine is a line of the file: first how many rows it is about, and then one for each task of which something is known.
type proofLine struct {
	Rows  int            `json:"rows,omitempty"`
	Row   int            `json:"row"`
	Task  string         `json:"task"`
	Proof *episode.Proof `json:"proof"`
}

// openProofs opens the run directory's proofs, which are kept when the run begins, and for tasks that a resume adds.
func (s *Run) openProofs(ctx context.Context, resume bool) error {
	path := filepath.Join(s.dir, proofsFile)
	if resume {
		if err := s.proofs.open(path); err != nil || s.proofs.file == nil || s.proofs.rows >= s.Exp.rows {
			return err
		}
	} else if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a run that died before it began
		return fmt.Errorf("begin the run's proofs: %w", err)
	}
	store := s.Exp.File.Play.Proofs()
	if store.Empty() && !resume {
		return nil
	}
	if _, err := os.ReadDir(store.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(s.Exp.warnings, "rows say nothing of proofs: %s\n", err)
		return nil
	}
	known := 0
	err := disk.WriteFile(disk.Real{}, path, func(file disk.File) error {
		w := bufio.NewWriter(io.NewOffsetWriter(file, 0))
		lines := json.NewEncoder(w)
		if err := lines.Encode(map[string]int{"rows": s.Exp.rows}); err != nil {
			return err
		}
		for task, err := range s.Exp.Playable(s.Exp.Source.InOrder(ctx)) {
			if err != nil {
				return err
			}
			p, err := s.lookUp(store, task)
			if err != nil {
				return err
			}
			if p == nil {
				continue
			}
			known++
			if err := lines.Encode(proofLine{Row: task.Row, Task: task.ID, Proof: p}); err != nil {
				return err
			}
		}
		return w.Flush()
	})
	if err == nil && known == 0 {
		err = os.Remove(path)
	}
	if err != nil {
		return fmt.Errorf("keep the run's proofs: %w", err)
	}
	return errors.Join(s.proofs.close(), s.proofs.open(path))
}

// lookUp is what the run is to say of a task: what it said when it began or, of a task that came later, what is known now.
func (s *Run) lookUp(store proof.Store, task *episode.Task) (*episode.Proof, error) {
	if task.Row < s.proofs.rows {
		return s.proofs.of(task.Row)
	}
	if len(task.Verify) == 0 {
		return nil, nil
	}
	digest, err := s.Exp.ProofDigest(task)
	if err != nil {
		return nil, err
	}
	return store.Get(digest)
}

// open reads the file; without one nothing is known.
func (p *begunProofs) open(path string) (err error) {
	*p = begunProofs{at: map[int]int64{}}
	if p.file, err = os.Open(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the run's proofs: %w", err)
	}
	for in, at := bufio.NewReader(p.file), int64(0); ; {
		text, err := log.ReadLine(in, 1<<20)
		if err == io.EOF && len(text) == 0 {
			return nil
		}
		var line proofLine
		if err == nil {
			err = json.Unmarshal(text, &line)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%s is damaged at byte %d: %w (remove it, and the episodes to come say nothing of proofs)", path, at, err), p.close())
		}
		if p.rows = max(p.rows, line.Rows); line.Proof != nil {
			p.at[line.Row] = at
		}
		at += int64(len(text))
	}
}

// of is what was known of a row's task; nil is nothing.
func (p *begunProofs) of(row int) (*episode.Proof, error) {
	at, ok := p.at[row]
	if !ok {
		return nil, nil
	}
	var line proofLine
	if err := json.NewDecoder(io.NewSectionReader(p.file, at, 1<<20)).Decode(&line); err != nil {
		return nil, fmt.Errorf("read the run's proofs: %w", err)
	}
	return line.Proof, nil
}

func (p *begunProofs) close() error {
	if p.file == nil {
		return nil
	}
	file := p.file
	p.file = nil
	return file.Close()
}
