package datasets

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"

	"trajgen/pipeline/episode"
)

// jsonTag marks a string of a mapping whose rendered text is JSON: !json '{{json .steps}}'.
const jsonTag = "!json"

//go:embed mappings/*.yaml
var mappings embed.FS

// Mapping builds the fields of a dataset row from a row of any other shape. It is a YAML file:
//
//	description: One sentence.
//	fields:                     # any of Fields(), as in a row; every string in it is a Go text/template
//	  id: "{{.task_id}}"
//	  prompt: "Solve this: {{.question}}"
//	  files: {"solution.py": "{{.prompt}}"}
//	  gold: !json '{{json .steps}}'
//	metadata: {source: "humaneval"}   # likewise; goes to the task's metadata
//	keep: [difficulty]          # source fields that go to the metadata as they are
//
// A node with an anchor (&NAME) can be used again (*NAME), and mappings can be merged (<<).
//
// A template sees the source row with numbers as they were written and without nulls; a field that the row does not
// have is an error. What it renders is a string, also where a number is wanted (which takes the string "42"); under the
// tag !json it is JSON of any kind. An empty string or null leaves the field out. Without keep, the source fields that
// no template names go to the metadata; keep: [] keeps nothing.
//
// Functions beside the ones of text/template, made for pipes (the value comes last): json, trim, lower, upper, split
// SEPARATOR, join SEPARATOR, first, last, replace OLD NEW, regexFind EXPRESSION (the first group, or the whole match,
// or nothing), regexReplace EXPRESSION NEW, indent SPACES, default VALUE, int (42 from "42" or "1,234").
//
// A Mapping does not change once it is loaded; any number of sources may share it.
type Mapping struct {
	Name        string
	Description string

	digest    string
	fields    *yaml.Node // a mapping, of templates in any depth
	metadata  *yaml.Node // likewise
	keep      []string
	keepOnly  bool // keep was given
	mentioned map[string]bool
	templates map[*yaml.Node]*template.Template
}

// Mappings lists the mappings that come with trajgen, sorted.
func Mappings() []string {
	entries, err := mappings.ReadDir("mappings")
	if err != nil {
		panic(fmt.Sprintf("datasets: embedded mappings: %v", err)) // an embedded folder is always there
	}
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".yaml"))
	}
	return names
}

// LoadMapping finds a mapping by the name of one that comes with trajgen, or by path: anything with a slash or that
// ends in .yaml or .yml.
func LoadMapping(nameOrPath string) (*Mapping, error) {
	suffix := path.Ext(nameOrPath)
	if !strings.ContainsRune(nameOrPath, '/') && suffix != ".yaml" && suffix != ".yml" {
		data, err := mappings.ReadFile("mappings/" + nameOrPath + ".yaml")
		if err != nil {
			return nil, fmt.Errorf("unknown mapping %q (have %s, or the path of a YAML file)", nameOrPath, strings.Join(Mappings(), ", "))
		}
		return ParseMapping(nameOrPath, data)
	}
	data, err := os.ReadFile(nameOrPath)
	if err != nil {
		return nil, fmt.Errorf("read mapping: %w", err)
	}
	return ParseMapping(nameOrPath, data)
}

// ParseMapping is LoadMapping for a file's content. It reports everything that is wrong with it at once.
func ParseMapping(name string, data []byte) (*Mapping, error) {
	sum := sha256.Sum256(data)
	m := &Mapping{
		Name: name, digest: fmt.Sprintf("sha256:%x", sum),
		fields: &yaml.Node{}, metadata: &yaml.Node{}, mentioned: map[string]bool{}, templates: map[*yaml.Node]*template.Template{},
	}
	root, err := ParseYAML(data)
	if err == nil && (root == nil || root.Kind != yaml.MappingNode) {
		err = errors.New("want a YAML mapping with fields")
	}
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", name, err)
	}
	var wrong []error
	for key, value := range entries(root) {
		wrong = append(wrong, m.parseKey(key, value)...)
	}
	if len(wrong) == 0 && len(m.fields.Content) == 0 {
		wrong = append(wrong, errors.New("it has no fields"))
	}
	if err := root.Decode(new(any)); len(wrong) == 0 && err != nil { // finds keys that are there twice
		wrong = append(wrong, err)
	}
	for i, err := range wrong {
		wrong[i] = fmt.Errorf("mapping %s: %w", name, err)
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return m, nil
}

// Digest is "sha256:" and the hexadecimal SHA-256 of the mapping file: with the dataset's it pins what is played.
func (m *Mapping) Digest() string { return m.digest }

func (m *Mapping) parseKey(key, value *yaml.Node) (wrong []error) {
	var err error
	switch key.Value {
	case "description":
		err = value.Decode(&m.Description)
	case "keep":
		m.keepOnly = true
		err = value.Decode(&m.keep)
	case "metadata":
		m.metadata, wrong = value, m.parseFields(value)
	case "fields":
		m.fields, wrong = value, m.parseFields(value)
		for field := range entries(value) {
			if _, known := taskFields[field.Value]; !known {
				wrong = append(wrong, fmt.Errorf("line %d: unknown field %q (have %s; anything else goes under metadata)",
					field.Line, field.Value, taskFields))
			}
		}
	default:
		err = fmt.Errorf("unknown key %q (have description, fields, keep, metadata)", key.Value)
	}
	if err != nil {
		wrong = append(wrong, fmt.Errorf("line %d: %w", key.Line, err))
	}
	return wrong
}

// parseFields also parses every template, so that a slip in one shows before the first row.
func (m *Mapping) parseFields(node *yaml.Node) (wrong []error) {
	if node.Kind != yaml.MappingNode {
		return []error{fmt.Errorf("line %d: want a mapping of names and templates", node.Line)}
	}
	for key, value := range entries(node) {
		_, err := encodeYAML(value, func(leaf *yaml.Node) (json.RawMessage, error) {
			if err := m.parseTemplate(leaf); err != nil {
				wrong = append(wrong, fmt.Errorf("line %d: %s: %w", leaf.Line, key.Value, err))
			}
			// Keys must differ before they are rendered, too; what they render to is looked at in each row.
			return episode.JSON(leaf.Value)
		})
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", key.Value, err))
		}
	}
	return wrong
}

func (m *Mapping) parseTemplate(leaf *yaml.Node) error {
	if !strings.Contains(leaf.Value, "{{") {
		return nil
	}
	parsed, err := template.New("text").Option("missingkey=error").Funcs(templateFunctions).Parse(leaf.Value)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "template: "))
	}
	m.templates[leaf] = parsed
	if parsed.Tree != nil {
		mention(parsed.Tree.Root, true, m.mentioned)
	}
	return nil
}

// apply builds the fields and the metadata of a row; metadata is never nil.
func (m *Mapping) apply(source []member) (fields, metadata []member, wrong problems) {
	data := make(map[string]any, len(source))
	for _, entry := range source {
		data[entry.Name] = withoutNulls(decodeAny(entry.Value))
	}
	text := func(leaf *yaml.Node) (json.RawMessage, error) { return m.render(leaf, data) }
	build := func(mapping *yaml.Node) []member {
		built := []member{}
		for key, value := range entries(mapping) {
			encoded, err := encodeYAML(value, text)
			if err != nil {
				wrong.addf("mapping %s: %s: %v", m.Name, key.Value, err)
			} else if !isNull(encoded) {
				built = append(built, member{Name: key.Value, Value: encoded})
			}
		}
		return built
	}
	fields, metadata = build(m.fields), build(m.metadata)
	for _, entry := range source {
		kept := !m.mentioned[entry.Name]
		if m.keepOnly {
			kept = slices.Contains(m.keep, entry.Name)
		}
		if kept && !slices.ContainsFunc(metadata, func(m member) bool { return m.Name == entry.Name }) {
			metadata = append(metadata, entry)
		}
	}
	return fields, metadata, wrong
}

// noValue is what a template prints for a missing value, such as {{index . "missing"}}.
const noValue = "<no value>"

func (m *Mapping) render(leaf *yaml.Node, data map[string]any) (json.RawMessage, error) {
	text := leaf.Value
	if parsed := m.templates[leaf]; parsed != nil {
		var rendered bytes.Buffer
		if err := parsed.Execute(&rendered, data); err != nil {
			return nil, fmt.Errorf("line %d: %w", leaf.Line, templateCause(err))
		}
		text = rendered.String()
		if strings.Contains(text, noValue) && !strings.Contains(fmt.Sprint(data), noValue) {
			return nil, fmt.Errorf("line %d: the template printed %q for a value that is not there; give it a default", leaf.Line, noValue)
		}
	}
	if leaf.ShortTag() != jsonTag {
		return episode.JSON(text)
	}
	if strings.TrimSpace(text) == "" {
		return json.RawMessage("null"), nil
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("line %d: %.80q is not JSON", leaf.Line, text)
	}
	return json.RawMessage(text), nil
}

// templateCause leaves out the template's name and position, which the line of the mapping replaces.
func templateCause(err error) error {
	text := err.Error()
	if at := strings.LastIndex(text, ">: "); at >= 0 {
		return errors.New(text[at+len(">: "):])
	}
	return err
}
