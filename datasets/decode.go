package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// fieldDecoders are the fields of a dataset row. All others are metadata.
var fieldDecoders = map[string]func(d *decoder, field string, value json.RawMessage){
	"id":           label(func(t *episode.Task) *string { return &t.ID }),
	"prompt":       (*decoder).prompt,
	"messages":     (*decoder).prompt,
	"system":       (*decoder).system,
	"files":        (*decoder).files,
	"setup":        (*decoder).setup,
	"image":        (*decoder).image,
	"docker_image": (*decoder).image,
	"cwd":          text(func(t *episode.Task) *string { return &t.Cwd }),
	"env":          (*decoder).env,
	"network":      (*decoder).network,
	"allow":        (*decoder).allow,
	"resources":    (*decoder).resources,
	"toolsets":     (*decoder).toolsets,
	"distribution": text(func(t *episode.Task) *string { return &t.Distribution }),
	"verify":       (*decoder).verify,
	"gold":         (*decoder).gold,
	"limits":       (*decoder).limits,
	"memory":       (*decoder).memory,
	"user":         (*decoder).user,
	"tags":         (*decoder).tags,
	"difficulty":   label(func(t *episode.Task) *string { return &t.Difficulty }),
}

// Fields lists the names of the fields that a dataset row may have, sorted.
func Fields() []string { return slices.Sorted(maps.Keys(fieldDecoders)) }

// networkModes are the values of the flag --network.
var networkModes = []string{"none", "loopback", "allowlist", "full"}

// decoder fills one task and collects what is wrong.
type decoder struct {
	task  *episode.Task
	wrong problems
}

// decode turns a row into a task. Entries that are null or an empty string count as absent. Metadata is what the row's mapping or
// shape kept; with nil, the unknown fields become the metadata.
func decode(fields, metadata []member) (*episode.Task, problems) {
	d := decoder{task: &episode.Task{}}
	mapped := metadata != nil
	for _, field := range fields {
		decode, known := fieldDecoders[field.name]
		switch {
		case !known:
			metadata = append(metadata, field)
		case string(field.value) != `""`:
			decode(&d, field.name, field.value)
		}
	}
	d.check()
	if len(metadata) > 0 {
		encoded, err := object(metadata, true)
		if err != nil {
			d.wrong.addf("metadata: %v", err)
		}
		d.task.Metadata = encoded
	}
	if d.task.ID == "" && len(d.wrong) == 0 {
		if mapped && d.task.Metadata != nil {
			fields = append(slices.Clone(fields), member{name: "metadata", value: d.task.Metadata})
		}
		d.task.ID = d.contentID(fields)
	}
	if len(d.wrong) > 0 {
		return nil, d.wrong
	}
	return d.task, nil
}

// contentID is a row's id from its content, regardless of the order of keys and of white space.
func (d *decoder) contentID(fields []member) string {
	encoded, err := object(fields, false)
	if err != nil {
		d.wrong.addf("content hash: %v", err)
	}
	sum := sha256.Sum256(encoded)
	return "sha-" + hex.EncodeToString(sum[:8])
}

// check checks the fields together.
func (d *decoder) check() {
	if len(d.task.Prompt) == 0 && len(d.wrong) == 0 {
		d.wrong.addf("there is no prompt: want a string in prompt or a list of chat messages in messages")
	}
	if len(d.task.Allow) > 0 && d.task.Network != "allowlist" {
		d.wrong.addf("allow only goes with network: allowlist")
	}
	if len(d.task.Toolsets) > 0 && d.task.Distribution != "" {
		d.wrong.addf("toolsets and distribution exclude each other: toolsets are fixed, a distribution is drawn from")
	}
	d.checkGold()
}

// label takes a string or a number.
func label(target func(*episode.Task) *string) func(*decoder, string, json.RawMessage) {
	return func(d *decoder, field string, value json.RawMessage) {
		text, err := asText(value)
		if err != nil {
			d.wrong.addf("%s: %v", field, err)
		}
		*target(d.task) = text
	}
}

func text(target func(*episode.Task) *string) func(*decoder, string, json.RawMessage) {
	return func(d *decoder, field string, value json.RawMessage) {
		if text, ok := d.text(field, value); ok {
			*target(d.task) = text
		}
	}
}

// text takes a string without NUL, which no command, path or environment can carry.
func (d *decoder) text(field string, value json.RawMessage) (string, bool) {
	text, ok := asString(value)
	switch {
	case !ok:
		d.wrong.addf("%s: %s, want a string", field, kindOf(value))
	case strings.ContainsRune(text, 0):
		d.wrong.addf("%s: it holds a NUL character", field)
		ok = false
	}
	return text, ok
}

func (d *decoder) setup(field string, value json.RawMessage) {
	d.task.Setup, _ = d.text(field, value)
}

func (d *decoder) image(field string, value json.RawMessage) {
	image, ok := d.text(field, value)
	if !ok {
		return
	}
	if d.task.Image != "" && d.task.Image != image {
		d.wrong.addf("image and docker_image differ (%q and %q): they are two names for one field", d.task.Image, image)
	}
	d.task.Image = image
}

func (d *decoder) network(field string, value json.RawMessage) {
	network, ok := d.text(field, value)
	if ok && !slices.Contains(networkModes, network) {
		d.wrong.addf("%s: unknown mode %q (have %s)", field, network, strings.Join(networkModes, ", "))
	}
	d.task.Network = network
}

func (d *decoder) env(field string, value json.RawMessage) {
	d.task.Env = d.variables(field, value)
}

func (d *decoder) variables(field string, value json.RawMessage) map[string]string {
	entries, err := members(structured(value))
	if err != nil {
		d.wrong.addf("%s: %v of names and values", field, err)
		return nil
	}
	variables := make(map[string]string, len(entries))
	for _, entry := range entries {
		text, err := asText(entry.value)
		switch {
		case err != nil:
			d.wrong.addf("%s: %s is %v", field, entry.name, err)
		case entry.name == "" || strings.ContainsAny(entry.name, "=\x00"):
			d.wrong.addf("%s: %q cannot be the name of a variable", field, entry.name)
		case strings.ContainsRune(text, 0):
			d.wrong.addf("%s: the value of %s holds a NUL character", field, entry.name)
		}
		variables[entry.name] = text
	}
	return variables
}

func (d *decoder) toolsets(field string, value json.RawMessage) {
	toolsets, err := asStrings(value)
	switch {
	case err != nil:
		d.wrong.addf("%s: %v", field, err)
	case len(toolsets) == 0:
		toolsets = []string{episode.NoToolsets}
	}
	d.task.Toolsets = toolsets
}

func (d *decoder) tags(field string, value json.RawMessage) {
	tags, err := asList(value, func(tag string) string { return tag })
	if err != nil {
		d.wrong.addf("%s: %v", field, err)
	}
	d.task.Tags = tags
}

func (d *decoder) limits(field string, value json.RawMessage) {
	limits := &d.task.Limits
	d.entries(field, value, "with turns, tokens, time", func(_ string, entry member) (err error) {
		switch entry.name {
		case "turns":
			limits.Turns, err = asCount(entry.value)
		case "tokens":
			limits.Tokens, err = asCount(entry.value)
		case "time":
			limits.Time, err = asDuration(entry.value)
		default:
			err = errors.New("unknown key (have turns, tokens, time)")
		}
		return err
	})
}

// entries hands each entry of an object in the row to take, and says whether it is one.
func (d *decoder) entries(at string, value json.RawMessage, want string, take func(at string, entry member) error) bool {
	entries, err := members(structured(value))
	if err != nil {
		d.wrong.addf("%s: %v %s", at, err, want)
		return false
	}
	for _, entry := range entries {
		inner := at + "." + entry.name
		if err := take(inner, entry); err != nil {
			d.wrong.addf("%s: %v", inner, err)
		}
	}
	return true
}
