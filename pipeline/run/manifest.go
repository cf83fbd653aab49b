package run

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"trajgen/datasets"
	"trajgen/outputs/export"
	"trajgen/outputs/log/disk"
	"trajgen/pipeline/episode"
)

// Manifest is run.json: what was run, and with what.
type Manifest struct {
	Schema      int               `json:"schema"`
	Fingerprint string            `json:"fingerprint"`
	Experiment  map[string]string `json:"experiment"` // what a resume must not change
	Version     string            `json:"version"`
	RunFile     File              `json:"run_file"`
	Tasks       int               `json:"tasks"`
	Samples     int               `json:"samples"`
	Guarantees  any               `json:"sandbox"`
	Card        datasets.Card     `json:"dataset_card,omitzero"` // what the dataset says of itself, such as its license
	Merged      []MergedRun       `json:"merged,omitempty"`      // what a merged run was made of
}

// ReadManifest reads run.json.
func ReadManifest(dir string) (Manifest, error) {
	var m Manifest
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return m, AsMistake(fmt.Errorf("%s is not a run directory: it has no run.json", dir))
	}
	if err != nil {
		return m, fmt.Errorf("read run.json: %w", err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("read %s: %w", filepath.Join(dir, "run.json"), err)
	}
	return m, nil
}

// Write replaces run.json atomically.
func (m Manifest) Write(dir string) error {
	m.Schema = episode.SchemaVersion
	m.RunFile.Play.RetryErrors = false // meant for one resume, not for the next
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode run.json: %w", err)
	}
	path, data := filepath.Join(dir, "run.json"), append(data, '\n')
	if was, err := os.ReadFile(path); err == nil && !bytes.Equal(was, data) { // the sums have the digest of the old one
		if err := os.Remove(filepath.Join(dir, SumsName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return writeFile(path, data)
}

// removeTemporary removes the temporary files of a runner that died while it wrote.
func removeTemporary(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("open run directory: %w", err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !strings.HasPrefix(entry.Name(), disk.Temporary) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what an interrupted run left: %w", err)
		}
	}
	return nil
}

func writeFile(path string, data []byte) error {
	if err := disk.WriteFile(disk.Real{}, path, disk.Bytes(data)); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// MergedRun is a run that was merged into another one.
type MergedRun struct {
	Name        string `json:"name"` // of its directory
	Fingerprint string `json:"fingerprint"`
	Version     string `json:"version"`
	Seed        uint64 `json:"seed"`
	Episodes    int    `json:"episodes"` // that came from it
	// Of are the fingerprints of the runs that it was itself merged from.
	Of []string `json:"of,omitempty"`
}

// Of are the fingerprints of the runs that a merged run was merged from.
func (m Manifest) Of() (fingerprints []string) {
	for _, run := range m.Merged {
		fingerprints = append(append(fingerprints, run.Fingerprint), run.Of...)
	}
	return fingerprints
}

// Lacks says how many of a run's episodes are missing, given how many were played; a negative number is unknown.
func (m Manifest) Lacks(dir string, episodes int) string {
	if planned := m.Tasks * m.Samples; episodes >= 0 && episodes < planned { // a merged run's plan may not be known
		return fmt.Sprintf("%s has played %d of %d episodes", dir, episodes, planned)
	}
	return ""
}

// Exported is what export formats say about a run.
func (m Manifest) Exported(dir string) export.Run {
	file, err := json.Marshal(m.RunFile)
	if err != nil { // it was decoded from JSON
		file = nil
	}
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	license := ""
	switch len(m.Card.License) {
	case 0:
	case 1:
		license = m.Card.License[0]
	default:
		license = "other" // the Hub's word for several licenses; the dataset's own card names them
	}
	return export.Run{
		Name: filepath.Base(dir), License: license, Fingerprint: m.Fingerprint, Version: m.Version,
		Model: cmp.Or(m.RunFile.Model.Name, strings.Join(m.RunFile.Sweep.names(), ", "), m.RunFile.Scripted.Policy), BaseURL: m.RunFile.Model.BaseURL,
		Dataset: m.RunFile.Dataset.Path.Names(), Digest: m.Experiment["dataset"], Tasks: m.Tasks, Samples: m.Samples, Seed: m.RunFile.Seed, RunFile: file,
	}
}
