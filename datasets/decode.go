package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/where/nearest"
	"trajgen/sandbox"
)

// taskFields are the fields of a dataset row. All others are metadata.
var taskFields = keys[episode.Task]{
	"id":             field(asText, func(t *episode.Task) *string { return &t.ID }),
	"prompt":         readPrompt,
	"messages":       readPrompt,
	"system":         readSystem,
	"files":          readFiles,
	"setup":          field(asPlain, func(t *episode.Task) *string { return &t.Setup }),
	"image":          readImage,
	"docker_image":   readImage,
	"root":           field(asRoot, func(t *episode.Task) *string { return &t.Root }),
	"build":          readBuild,
	"cwd":            field(asPlain, func(t *episode.Task) *string { return &t.Cwd }),
	"env":            readEnv,
	"network":        field(asNetwork, func(t *episode.Task) *string { return &t.Network }),
	"allow":          field(asNames, func(t *episode.Task) *[]string { return &t.Allow }),
	"sites":          field(asSites, func(t *episode.Task) *[]string { return &t.Sites }),
	"mcp":            readMCP,
	"home":           field(asHome, func(t *episode.Task) *json.RawMessage { return &t.Home }),
	"channels":       field(asChannels, func(t *episode.Task) *[]string { return &t.Channels }),
	"resources":      object(resourceKeys, func(t *episode.Task) *episode.Resources { return &t.Resources }),
	"services":       readServices,
	"hosts":          field(asNames, func(t *episode.Task) *[]string { return &t.Hosts }),
	"toolsets":       field(asToolsets, func(t *episode.Task) *[]string { return &t.Toolsets }),
	"distribution":   field(asPlain, func(t *episode.Task) *string { return &t.Distribution }),
	"verify":         readVerify,
	"verifier":       verifierOf(func(t *episode.Task) **episode.Verifier { return &t.Verifier }),
	"gold":           readGold,
	"gold_subagents": readSubagents,
	"limits":         object(limitKeys, func(t *episode.Task) *episode.Limits { return &t.Limits }),
	"memory":         readMemory,
	"user":           readUser,
	"tags":           field(asTags, func(t *episode.Task) *[]string { return &t.Tags }),
	"difficulty":     field(asText, func(t *episode.Task) *string { return &t.Difficulty }),
}

// limitKeys are the keys of limits.
var limitKeys = keys[episode.Limits]{
	"turns":  field(asCount, func(l *episode.Limits) *int { return &l.Turns }),
	"tokens": field(asCount, func(l *episode.Limits) *int { return &l.Tokens }),
	"time":   field(asDuration, func(l *episode.Limits) *time.Duration { return &l.Time }),
}

// buildKeys are the keys of build: {"dir": "environment", "dockerfile": "Dockerfile", "args": {"VERSION": "2"}, "target": "test"}.
var buildKeys = keys[episode.Build]{
	"dir":        field(asPlain, func(b *episode.Build) *string { return &b.Dir }),
	"dockerfile": field(asPlain, func(b *episode.Build) *string { return &b.Dockerfile }),
	"args": func(p *problems, b *episode.Build, at string, value json.RawMessage) {
		b.Args = variables(p, at, value)
	},
	"target": field(asPlain, func(b *episode.Build) *string { return &b.Target }),
	"digest": field(asPlain, func(b *episode.Build) *string { return &b.Digest }),
}

// readBuild reads how an image is made, in place of a reference.
func readBuild(p *problems, t *episode.Task, at string, value json.RawMessage) {
	t.Build = buildOf(p, at, value)
}

func buildOf(p *problems, at string, value json.RawMessage) *episode.Build {
	build := &episode.Build{}
	if buildKeys.whole(p, build, at, value) && build.Dir == "" {
		p.addf("%s: dir is missing: the directory with the Dockerfile and the files that it copies", at)
	}
	return build
}

// resourceKeys are the keys of resources: {"memory": "2G", "disk": "10G", "cpus": 1}. The sizes are the least that a sandbox can
// be made with.
var resourceKeys = keys[episode.Resources]{
	"memory": field(asSize(16<<20), func(r *episode.Resources) *int64 { return &r.Memory }),
	"disk":   field(asSize(1<<20), func(r *episode.Resources) *int64 { return &r.Disk }),
	"cpus":   field(asPositive, func(r *episode.Resources) *float64 { return &r.CPUs }),
}

// Fields lists the names of the fields that a dataset row may have, sorted.
func Fields() []string { return slices.Sorted(maps.Keys(taskFields)) }

// keys are those that an object in a row may have, each with what reads its value into a T.
type keys[T any] map[string]reader[T]

// reader reads the value that stands at a place in a row, or says what is wrong with it.
type reader[T any] func(p *problems, to *T, at string, value json.RawMessage)

// field reads one field of a T.
func field[T, V any](read func(json.RawMessage) (V, error), of func(*T) *V) reader[T] {
	return func(p *problems, to *T, at string, value json.RawMessage) {
		got, err := read(value)
		if err != nil {
			p.addf("%s: %v", at, err)
		}
		*of(to) = got
	}
}

// object reads a part of a T that is an object in the row.
func object[T, V any](k keys[V], of func(*T) *V) reader[T] {
	return func(p *problems, to *T, at string, value json.RawMessage) { k.read(p, of(to), at, value) }
}

// read reads an object, or the JSON text of one, and returns the keys that it has; false when it is none.
func (k keys[T]) read(p *problems, to *T, at string, value json.RawMessage) (given []string, is bool) {
	entries, err := members(structured(value))
	if err != nil {
		p.addf("%s: %v with %s", at, err, k)
		return nil, false
	}
	for _, entry := range entries {
		given = append(given, entry.Name)
		inner := at + "." + entry.Name
		if read, known := k[entry.Name]; known {
			read(p, to, inner, entry.Value)
		} else if near := nearest.To(entry.Name, slices.Sorted(maps.Keys(k))); near != "" {
			p.addf("%s: unknown key, did you mean %q? (have %s)", inner, near, k)
		} else {
			p.addf("%s: unknown key (have %s)", inner, k)
		}
	}
	return given, true
}

// whole reads an object, and says whether nothing is wrong with it.
func (k keys[T]) whole(p *problems, to *T, at string, value json.RawMessage) bool {
	before := len(*p)
	k.read(p, to, at, value)
	return len(*p) == before
}

func (k keys[T]) String() string { return strings.Join(slices.Sorted(maps.Keys(k)), ", ") }

// list splits a list, or the JSON text of one, of what is named.
func (p *problems) list(at string, value json.RawMessage, of string) []json.RawMessage {
	items, err := elements(structured(value))
	if err != nil {
		p.addf("%s: %v of %s", at, err, of)
	}
	return items
}

// item is the place of an item of a list.
func item(at string, i int) string { return fmt.Sprintf("%s[%d]", at, i) }

// decode turns a row into a task. Entries that are null or an empty string count as absent. Metadata is what the row's mapping or
// shape kept; with nil, the unknown fields become the metadata.
func decode(fields, metadata []member) (*episode.Task, problems) {
	task := &episode.Task{}
	var wrong problems
	mapped := metadata != nil
	for _, field := range fields {
		read, known := taskFields[field.Name]
		switch {
		case !known:
			if near := meant(fields, field); near != "" && !mapped {
				wrong.addf(`%s: did you mean %q? If it is metadata, keep it within an object, such as "metadata": {%[1]q: ...}`, field.Name, near)
			}
			metadata = append(metadata, field)
		case string(field.Value) != `""`:
			read(&wrong, task, field.Name, field.Value)
		}
	}
	checkTask(&wrong, task)
	if len(metadata) > 0 {
		task.Metadata = canonical(metadata, true)
	}
	if task.ID == "" && len(wrong) == 0 {
		if mapped && task.Metadata != nil {
			fields = append(slices.Clone(fields), member{Name: "metadata", Value: task.Metadata})
		}
		task.ID = contentID(fields)
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return task, nil
}

// meant is the field that an unknown key was probably to be: one of nearly its name that the row lacks, and that takes the value.
// Without it, a row with verfy would be played and never judged. Keys of three letters are near too many words.
func meant(row []member, key member) string {
	var known []string
	for _, name := range Fields() {
		given := slices.ContainsFunc(row, func(m member) bool { return m.Name == name })
		if len(name) > 3 && key.Name != "" && name[0] == key.Name[0] && !given {
			known = append(known, name)
		}
	}
	near := nearest.To(key.Name, known)
	if near == "" {
		return ""
	}
	var wrong problems
	if taskFields[near](&wrong, &episode.Task{}, near, key.Value); len(wrong) > 0 {
		return ""
	}
	return near
}

// contentID is a row's id from its content, regardless of the order of keys and of white space.
func contentID(fields []member) string {
	sum := sha256.Sum256(canonical(fields, false))
	return "sha-" + hex.EncodeToString(sum[:8])
}

// checkTask checks the fields together.
func checkTask(p *problems, t *episode.Task) {
	if len(t.Prompt) == 0 && len(*p) == 0 {
		p.addf("there is no prompt: want a string in prompt or a list of chat messages in messages")
	}
	if len(t.Allow) > 0 && t.Network != "allowlist" {
		p.addf("allow only goes with network: allowlist")
	}
	if len(t.Hosts) > 0 && len(t.Services) == 0 {
		p.addf("hosts only goes with services")
	}
	if t.Image != "" && t.Build != nil {
		p.addf("image and build exclude each other: an image is named, or made")
	}
	if len(t.Toolsets) > 0 && t.Distribution != "" {
		p.addf("toolsets and distribution exclude each other: toolsets are fixed, a distribution is drawn from")
	}
	users := 0
	for _, message := range t.Prompt {
		if message.Role == "user" {
			users++
		}
	}
	for i, check := range t.Verify {
		if check.After > users {
			p.addf("verify[%d].after: %d, and the user has %d messages", i, check.After, users)
		}
		if check.AtLeast != 0 && check.After == 0 {
			p.addf("verify[%d].at_least only goes with after", i)
		}
	}
	if len(*p) == 0 {
		checkStates(p, t)
		checkGold(p, t)
	}
}

func readImage(p *problems, t *episode.Task, at string, value json.RawMessage) {
	image, err := asPlain(value)
	switch {
	case err != nil:
		p.addf("%s: %v", at, err)
	case t.Image != "" && t.Image != image:
		p.addf("image and docker_image differ (%q and %q): they are two names for one field", t.Image, image)
	}
	t.Image = image
}

// mcpKeys are the keys of mcp where it is an object: servers that the task declares itself, and names of the run's.
var mcpKeys = keys[episode.Task]{
	"servers": field(asObject, func(t *episode.Task) *json.RawMessage { return &t.Servers }),
	"run":     field(asNames, func(t *episode.Task) *[]string { return &t.MCP }),
}

func readMCP(p *problems, t *episode.Task, at string, value json.RawMessage) {
	if value = structured(value); len(value) > 0 && value[0] == '{' {
		mcpKeys.read(p, t, at, value)
		return
	}
	var err error
	if t.MCP, err = asNames(value); err != nil {
		p.addf("%s: %v, or an object with %s", at, err, mcpKeys)
	}
}

func asObject(value json.RawMessage) (json.RawMessage, error) {
	value = structured(value)
	_, err := members(value)
	return value, err
}

func readEnv(p *problems, t *episode.Task, at string, value json.RawMessage) {
	t.Env = variables(p, at, value)
}

func variables(p *problems, at string, value json.RawMessage) map[string]string {
	entries, err := members(structured(value))
	if err != nil {
		p.addf("%s: %v of names and values", at, err)
		return nil
	}
	variables := make(map[string]string, len(entries))
	for _, entry := range entries {
		text, err := asText(entry.Value)
		switch {
		case err != nil:
			p.addf("%s: %s is %v", at, entry.Name, err)
		case entry.Name == "" || strings.ContainsAny(entry.Name, "=\x00"):
			p.addf("%s: %q cannot be the name of a variable", at, entry.Name)
		case strings.ContainsRune(text, 0):
			p.addf("%s: the value of %s holds a NUL character", at, entry.Name)
		}
		variables[entry.Name] = text
	}
	return variables
}

// networkModes are the values of the flag --network.
var networkModes = []string{"none", "loopback", "allowlist", "full"}

func asNetwork(value json.RawMessage) (string, error) {
	network, err := asPlain(value)
	if err == nil && !slices.Contains(networkModes, network) {
		err = fmt.Errorf("unknown mode %q (have %s)", network, strings.Join(networkModes, ", "))
	}
	return network, err
}

func asRoot(value json.RawMessage) (string, error) {
	root, err := asPlain(value)
	if err == nil && root != sandbox.RootWritable {
		err = fmt.Errorf("%q, want %s, or leave it out", root, sandbox.RootWritable)
	}
	return root, err
}

func asToolsets(value json.RawMessage) ([]string, error) {
	toolsets, err := asNames(value)
	if err == nil && len(toolsets) == 0 {
		toolsets = []string{episode.NoToolsets}
	}
	return toolsets, err
}

// asSize takes bytes, or a text such as "512M" or "2G", in units of 1024.
func asSize(least sandbox.Size) func(value json.RawMessage) (int64, error) {
	return func(value json.RawMessage) (int64, error) {
		text, err := asText(value)
		if err != nil {
			return 0, err
		}
		switch bytes, err := sandbox.ParseSize(text); {
		case err != nil || bytes > 1<<50:
			return 0, fmt.Errorf("%q, want bytes or a size such as 512M or 2G", text)
		case bytes < least:
			return 0, fmt.Errorf("%q, want %d bytes at least", text, least)
		default:
			return int64(bytes), nil
		}
	}
}

func asPositive(value json.RawMessage) (float64, error) {
	number, err := asNumber(value)
	if err == nil && number <= 0 {
		err = fmt.Errorf("%v, want a number above 0", number)
	}
	return number, err
}

// asPlain takes a string without NUL, which no command, path or environment can carry.
func asPlain(value json.RawMessage) (string, error) {
	text, ok := asString(value)
	switch {
	case !ok:
		return "", fmt.Errorf("%s, want a string", kindOf(value))
	case strings.ContainsRune(text, 0):
		return "", errors.New("it holds a NUL character")
	}
	return text, nil
}
