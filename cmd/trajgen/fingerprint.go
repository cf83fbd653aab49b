package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// manifest is run.json: what was run, and with what.
type manifest struct {
	Schema      int               `json:"schema"`
	Fingerprint string            `json:"fingerprint"`
	Experiment  map[string]string `json:"experiment"` // what a resume must not change
	Version     string            `json:"version"`
	RunFile     runFile           `json:"run_file"`
	Tasks       int               `json:"tasks"`
	Samples     int               `json:"samples"`
	Guarantees  any               `json:"sandbox"`
}

// experiment is what decides which episodes there are and how they go. Workers, samples, endpoints, retries and
// outputs are not of it: they may be changed on resume.
func (f *runFile) experiment(parts experimentParts) map[string]string {
	show := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(data)
	}
	return map[string]string{
		"dataset": parts.Dataset, "map": parts.Mapping, "skip_bad_rows": show(f.SkipBadRows), "shuffle": show(f.Shuffle), "seed": show(f.Seed),
		"distribution": parts.Distribution, "toolsets": strings.Join(f.Toolsets, ","), "disabled_toolsets": strings.Join(f.DisabledToolsets, ","),
		"custom_toolsets": unlessNone(len(f.CustomToolsets), show(f.CustomToolsets)), "model": f.Model, "temperature": show(f.Temperature), "top_p": show(f.TopP),
		"max_tokens": show(f.MaxTokens), "extra_body": unlessNone(len(f.ExtraBody), show(f.ExtraBody)), "policy": f.policyText(), "system_prompt": parts.System,
		"max_turns": show(f.MaxTurns), "episode_tokens": show(f.EpisodeTokens), "episode_timeout": f.EpisodeTimeout.String(),
		"sandbox": f.Sandbox, "image": f.Image, "network": f.Network, "memory": f.Memory.String(), "processes": show(f.Processes), "disk": f.Disk.String(),
	}
}

// unlessNone keeps an empty map apart from none in no experiment.
func unlessNone(n int, text string) string {
	if n == 0 {
		return ""
	}
	return text
}

// experimentParts are contents rather than names: a file of the same name may have changed.
type experimentParts struct {
	Dataset, Mapping, Distribution, System string
}

func (f *runFile) policyText() string {
	switch f.Policy {
	case "noisy":
		return fmt.Sprintf("noisy skill=%v", f.Skill)
	case "replay":
		return "replay " + f.Replay
	}
	return f.Policy
}

// fingerprint hashes an experiment.
func fingerprint(experiment map[string]string) string {
	keys := make([]string, 0, len(experiment))
	for key := range experiment {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	hash := sha256.New()
	for _, key := range keys {
		fmt.Fprintf(hash, "%d:%s=%d:%s\n", len(key), key, len(experiment[key]), experiment[key])
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// difference lists what differs between two experiments, a line each.
func difference(was, now map[string]string) []string {
	var lines []string
	keys := map[string]bool{}
	for key := range was {
		keys[key] = true
	}
	for key := range now {
		keys[key] = true
	}
	for key := range keys {
		if was[key] != now[key] {
			lines = append(lines, fmt.Sprintf("%s: was %s, now %s", key, quoteEmpty(was[key]), quoteEmpty(now[key])))
		}
	}
	slices.Sort(lines)
	return lines
}

func quoteEmpty(text string) string {
	if text == "" {
		return "(nothing)"
	}
	return text
}

// digest names a content in an experiment.
func digest(name string, content []byte) string {
	if name == "" && len(content) == 0 {
		return ""
	}
	sum := sha256.Sum256(content)
	return strings.TrimSpace(name + " sha256:" + hex.EncodeToString(sum[:])[:16])
}

func readManifest(dir string) (manifest, error) {
	var m manifest
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return m, usage(fmt.Errorf("%s is not a run directory: it has no run.json", dir))
	}
	if err != nil {
		return m, fmt.Errorf("read run.json: %w", err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("read %s: %w", filepath.Join(dir, "run.json"), err)
	}
	return m, nil
}

// write puts run.json in place whole.
func (m manifest) write(dir string) error {
	m.Schema = episode.SchemaVersion
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode run.json: %w", err)
	}
	return writeFile(filepath.Join(dir, "run.json"), append(data, '\n'))
}

// writeFile writes a file under a temporary name, syncs it and renames it.
func writeFile(path string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(data)
	if err == nil {
		err = temporary.Chmod(0o644)
	}
	if err == nil {
		err = temporary.Sync()
	}
	if closed := temporary.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func sortErrors(errs []error) {
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
}
