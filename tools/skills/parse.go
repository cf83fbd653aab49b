package skills

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The bounds of a SKILL.md, in characters.
const (
	MaxName        = 64
	MaxDescription = 1024
	MaxManual      = 100_000
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

// CheckName says why a name is not that of a skill.
func CheckName(name string) error {
	if len(name) > MaxName || !nameForm.MatchString(name) {
		return fmt.Errorf("name %.80q: want 1 to %d of a-z, 0-9, '.', '_' and '-', the first a letter or a digit", name, MaxName)
	}
	return nil
}

// Parse reads a SKILL.md, of the folder with that name. What the published standard (https://agentskills.io/specification) and the
// fields beyond it that are known here do not allow is an error if strict, and else a warning where the skill can be used with it.
func Parse(data []byte, folder string, strict bool) (*Skill, error) {
	p := parser{strict: strict, skill: &Skill{}}
	front, err := p.split(data)
	if err != nil {
		return nil, err
	}
	fields, err := p.mapping(front)
	if err != nil {
		return nil, fmt.Errorf("front matter: %w", err)
	}
	for _, f := range fields {
		p.field(f)
	}
	p.check(folder)
	if p.skill.Warnings = p.odd; strict {
		p.wrong = append(p.wrong, p.odd...)
	}
	if len(p.wrong) > 0 {
		return nil, errors.New(strings.Join(p.wrong, "; "))
	}
	return p.skill, nil
}

type parser struct {
	strict     bool
	skill      *Skill
	wrong, odd []string
}

func (p *parser) bad(format string, args ...any) {
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
}
func (p *parser) strange(format string, args ...any) {
	p.odd = append(p.odd, fmt.Sprintf(format, args...))
}

// split returns the front matter, and leaves the body in the skill.
func (p *parser) split(data []byte) (front string, err error) {
	if !utf8.Valid(data) {
		return "", errors.New("it is not UTF-8 text")
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	if n := utf8.RuneCountInString(text); n > MaxManual {
		return "", fmt.Errorf("it has %d characters, over the limit of %d", n, MaxManual)
	}
	if after, marked := strings.CutPrefix(text, "\uFEFF"); marked {
		p.strange("it begins with a byte order mark")
		text = after
	}
	text, begins := strings.CutPrefix(text, "---\n")
	if !begins {
		return "", errors.New("it has no front matter: the first line must be ---, then name: and description:, then ---")
	}
	front, body, closed := strings.Cut("\n"+text+"\n", "\n---\n")
	if !closed {
		return "", errors.New("its front matter is never closed: a line --- is missing")
	}
	p.skill.Body = strings.TrimSpace(body)
	return front, nil
}

// field is an entry of a mapping.
type field struct {
	key   string
	value *yaml.Node
}

// mapping reads front matter. A value may be a text with a colon and a space in it, which YAML wants in quotes, unless strict.
func (p *parser) mapping(front string) ([]field, error) {
	var doc yaml.Node
	err := yaml.Unmarshal([]byte(front), &doc)
	if err != nil && !p.strict {
		if yaml.Unmarshal([]byte(quoted.ReplaceAllStringFunc(front, quote)), &doc) == nil {
			err = nil
			p.strange("a value with a colon in it is not quoted")
		}
	}
	if err != nil {
		return nil, err
	}
	if doc.Kind == 0 {
		return nil, errors.New("it is empty")
	}
	return entries(doc.Content[0])
}

// quoted are lines with a plain value that has a colon and a space.
var quoted = regexp.MustCompile(`(?m)^[a-z_-]+: +[^"'|>\[{&*!%#\s-].*: .*$`)

func quote(line string) string {
	key, value, _ := strings.Cut(line, ":")
	return key + ": " + strconv.Quote(strings.TrimSpace(value))
}

// entries refuses duplicate keys, and aliases: some that lead to others would fill the memory.
func entries(node *yaml.Node) ([]field, error) {
	if node.Kind != yaml.MappingNode {
		return nil, errors.New("it is not a mapping of fields")
	}
	var all []field
	for i := 0; i+1 < len(node.Content); i += 2 {
		f := field{node.Content[i].Value, node.Content[i+1]}
		if slices.ContainsFunc(all, func(other field) bool { return other.key == f.key }) {
			return nil, fmt.Errorf("the field %.80q is there twice", f.key)
		}
		if aliased(f.value) || aliased(node.Content[i]) {
			return nil, fmt.Errorf("the field %.80q has an anchor or an alias", f.key)
		}
		all = append(all, f)
	}
	return all, nil
}

func aliased(node *yaml.Node) bool {
	return node.Kind == yaml.AliasNode || node.Anchor != "" || slices.ContainsFunc(node.Content, aliased)
}

// field reads a field of the front matter.
func (p *parser) field(f field) {
	s := p.skill
	switch f.key {
	case "name":
		s.Name = p.text(f)
	case "description":
		s.Description = p.text(f)
	case "license", "version", "author":
		p.text(f)
	case "compatibility":
		if n := utf8.RuneCountInString(p.text(f)); n < 1 || n > 500 {
			p.strange("compatibility has %d characters; 1 to 500", n)
		}
	case "allowed-tools":
		s.AllowedTools = p.list(f)
	case "platforms":
		s.Platforms = p.list(f)
	case "required_environment_variables":
		s.Variables = append(s.Variables, p.list(f)...)
	case "metadata":
		p.metadata(f, true)
	case "prerequisites":
		p.within(f, func(f field) {
			if f.key == "env_vars" {
				s.Variables = append(s.Variables, p.list(f)...)
			}
		})
	case "tags", "related_skills", "requires_toolsets", "fallback_for_toolsets":
		p.relation(f)
	default:
		p.strange("the field %.80q is unknown", f.key)
	}
}

// metadata reads what the standard leaves to each system. Texts count as they are written: version 1.0 is not a number.
func (p *parser) metadata(f field, outer bool) {
	p.within(f, func(f field) {
		switch {
		case p.relation(f):
		case f.value.Kind == yaml.MappingNode && outer:
			p.metadata(f, false) // some keep their own fields below their name
		case f.value.Kind != yaml.ScalarNode:
			p.strange("metadata %.80q is not a text", f.key)
		}
	})
}

func (p *parser) relation(f field) bool {
	s := p.skill
	to := map[string]*[]string{
		"tags": &s.Tags, "related_skills": &s.Related, "requires_toolsets": &s.Requires, "fallback_for_toolsets": &s.FallbackFor,
	}[f.key]
	if to == nil {
		return false
	}
	*to = append(*to, p.list(f)...)
	return true
}

func (p *parser) within(f field, each func(field)) {
	fields, err := entries(f.value)
	if err != nil {
		p.strange("%s: %v", f.key, err)
	}
	for _, inner := range fields {
		each(inner)
	}
}

func (p *parser) text(f field) string {
	if f.value.Kind != yaml.ScalarNode {
		p.bad("%s is not a text", f.key)
	}
	return strings.TrimSpace(f.value.Value)
}

// list reads a list of texts or of mappings with a name, or a text of words.
func (p *parser) list(f field) (all []string) {
	if f.value.Kind == yaml.ScalarNode {
		return strings.FieldsFunc(f.value.Value, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' })
	}
	if f.value.Kind != yaml.SequenceNode {
		p.strange("%s is not a list", f.key)
		return nil
	}
	for _, item := range f.value.Content {
		text := item.Value
		if fields, err := entries(item); err == nil {
			at := slices.IndexFunc(fields, func(f field) bool { return f.key == "name" })
			text = ""
			if at >= 0 {
				text = fields[at].value.Value
			}
		}
		if text == "" {
			p.strange("%s has an entry without a name", f.key)
			continue
		}
		all = append(all, text)
	}
	return all
}

// check judges the fields that every skill has.
func (p *parser) check(folder string) {
	s := p.skill
	if err := CheckName(s.Name); s.Name == "" {
		p.bad("name is missing")
	} else if err != nil {
		p.bad("%v", err)
	} else if doubled.MatchString(s.Name) {
		p.strange("name %q has a sign at its end, or two in a row", s.Name)
	}
	if s.Name != folder && folder != "" {
		p.strange("name %q is not that of its folder, %.80q", s.Name, folder)
	}
	switch n := utf8.RuneCountInString(s.Description); {
	case n == 0:
		p.bad("description is missing: say what the skill does and when it is of use")
	case n > MaxDescription:
		p.bad("description has %d characters, over the limit of %d", n, MaxDescription)
	}
	for _, platform := range s.Platforms {
		if !slices.Contains([]string{"linux", "macos", "windows"}, platform) {
			p.strange("platform %.80q: want linux, macos or windows", cmp.Or(platform, "(none)"))
		}
	}
}

var doubled = regexp.MustCompile(`[._-]{2}|[._-]$`)
