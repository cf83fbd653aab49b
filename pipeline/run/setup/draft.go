// Package setup says what toolsets need, tries the keys that are there, and writes a file of keys and a run file.
package setup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"trajgen/outputs/log/disk"
	"trajgen/pipeline/run"
	"trajgen/pipeline/where/nearest"
)

// Draft is what setup writes. Without parts it writes no run file, and without keys no file of keys.
type Draft struct {
	EnvFile, RunFile string
	Loaded           []string          // variables that EnvFile has set in this process
	Keys             map[string]string // by variable
	Parts            map[string]any    // of the run file
	shadowed         []string          // variables that the environment had with another value
}

// SetKey has a variable written, and sets it in this process, so that it can be tried.
func (d *Draft) SetKey(name, value string) error {
	if was, given := os.LookupEnv(name); given && was != value && !slices.Contains(d.Loaded, name) {
		d.shadowed = append(d.shadowed, name)
	}
	if d.Keys == nil {
		d.Keys = map[string]string{}
	}
	d.Keys[name] = value
	return os.Setenv(name, value)
}

// Set gives the run file a setting, such as limits.turns.
func (d *Draft) Set(key string, value any) {
	if section, inner, ok := strings.Cut(key, "."); ok {
		key, value = section, map[string]any{inner: value}
	}
	if d.Parts == nil {
		d.Parts = map[string]any{}
	}
	merge(d.Parts, map[string]any{key: value})
}

// Add gives the run file a part of one, in YAML.
func (d *Draft) Add(part string) error {
	var more map[string]any
	if err := yaml.Unmarshal([]byte(part), &more); err != nil || len(more) == 0 {
		return fmt.Errorf("%q is not a part of a run file, such as 'media: {image: fal}'", part)
	}
	for key, value := range more {
		d.Set(key, value)
	}
	return nil
}

func merge(into, more map[string]any) {
	for key, value := range more {
		old, isMap := into[key].(map[string]any)
		new, both := value.(map[string]any)
		if isMap && both {
			merge(old, new)
		} else {
			into[key] = value
		}
	}
}

// use adds the part of the run file that uses a service, with the answer to its question.
func (d *Draft) use(key *Key, answer string) error {
	var values []string
	for _, one := range strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || r == ' ' }) {
		text, _ := json.Marshal(one) // of a text, which is YAML, too
		values = append(values, string(text))
	}
	host := ""
	if at, err := url.Parse(answer); err == nil {
		host = at.Hostname()
	}
	return d.Add(strings.NewReplacer("VALUE", strings.Join(values, ", "), "HOST", `"`+host+`"`).Replace(key.declared.Use))
}

// File is the run file that is written, or without parts the one that is there, or else an empty one.
func (d *Draft) File() (run.File, error) {
	f := run.Default()
	if len(d.Parts) == 0 {
		err := run.Decode(d.RunFile, "a run file", &f)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return f, err
	}
	if dataset, _ := d.Parts["dataset"].(map[string]any); dataset["path"] == nil {
		d.Set("dataset.path", "bundled")
	}
	text, err := yaml.Marshal(d.Parts)
	if err == nil {
		err = run.DecodeText(text, d.RunFile, "a run file", &f)
	}
	if err == nil {
		err = f.Validate()
	}
	if err != nil {
		return f, err
	}
	return f, checkToolsets(f)
}

// checkToolsets refuses names that do not exist.
func checkToolsets(f run.File) error {
	reg, err := run.NewRegistry(f)
	if err == nil && f.Tools.Distribution != "" {
		_, err = run.ResolveDistribution(f.Tools.Distribution)
	} else if err == nil {
		_, err = reg.Select(f.Tools.Toolsets, f.Tools.DisabledToolsets)
	}
	return err
}

// Exists reports whether the run file is there.
func (d *Draft) Exists() bool {
	_, err := os.Lstat(d.RunFile)
	return err == nil
}

// Warnings are what keeps keys from being used.
func (d *Draft) Warnings(s Survey) (all []string) {
	var names []string
	for _, key := range s.Keys {
		names = append(names, key.Variable)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Keys)) {
		if !slices.Contains(names, name) {
			all = append(all, fmt.Sprintf("no toolset reads %s%s", name, nearest.DidYouMean(name, names)))
		}
	}
	for _, name := range d.shadowed {
		all = append(all, fmt.Sprintf("the environment has another %s, which wins over %s: unset it", name, d.EnvFile))
	}
	return all
}

// Write writes the files, and returns their names.
func (d *Draft) Write() (written []string, err error) {
	if len(d.Keys) > 0 {
		if err := save(d.EnvFile, d.Keys); err != nil {
			return nil, fmt.Errorf("write %s: %w", d.EnvFile, err)
		}
		written = append(written, d.EnvFile)
	}
	if len(d.Parts) > 0 {
		text, err := yaml.Marshal(d.Parts)
		if err == nil {
			err = disk.WriteFile(disk.Real{}, d.RunFile, disk.Bytes(text))
		}
		if err != nil {
			return written, fmt.Errorf("write %s: %w", d.RunFile, err)
		}
		written = append(written, d.RunFile)
	}
	return written, nil
}
