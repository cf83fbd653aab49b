package distributions

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed reference.yaml
var referenceYAML []byte

// reference is decoded once; an error there is a bug in our own source, which the tests would show first.
var reference = func() []Distribution {
	var list []Distribution
	if err := decodeStrict(referenceYAML, &list); err != nil {
		panic(fmt.Sprintf("distributions: embedded reference.yaml: %v", err))
	}
	return list
}()

// Names lists the distributions that Get knows, in the order of the reference.
func Names() []string {
	names := make([]string, len(reference))
	for i, d := range reference {
		names[i] = d.Name
	}
	return names
}

// Get returns the reference distribution of that name.
func Get(name string) (Distribution, error) {
	for _, d := range reference {
		if d.Name == name {
			d.Toolsets = slices.Clone(d.Toolsets)
			return d, nil
		}
	}
	return Distribution{}, fmt.Errorf("unknown distribution %q (have %s, or the path of a YAML file)", name, strings.Join(Names(), ", "))
}

// Load reads a distribution from a YAML file with the keys name, description and toolsets, the last a mapping from
// toolset to percentage.
func Load(path string) (Distribution, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Distribution{}, fmt.Errorf("read distribution: %w", err)
	}
	d, err := Parse(data)
	if err != nil {
		return Distribution{}, fmt.Errorf("read distribution %s: %w", path, err)
	}
	return d, nil
}

// Parse is Load for a file's content.
func Parse(data []byte) (Distribution, error) {
	var d Distribution
	if err := decodeStrict(data, &d); err != nil {
		return Distribution{}, err
	}
	if err := d.Validate(nil); err != nil {
		return Distribution{}, err
	}
	return d, nil
}

// Resolve is Get for a name and Load for a path: anything with a slash or that ends in .yaml or .yml.
func Resolve(nameOrPath string) (Distribution, error) {
	if strings.ContainsRune(nameOrPath, '/') || strings.HasSuffix(nameOrPath, ".yaml") || strings.HasSuffix(nameOrPath, ".yml") {
		return Load(nameOrPath)
	}
	return Get(nameOrPath)
}

// decodeStrict refuses keys that target does not have, and whatever follows the first document.
func decodeStrict(data []byte, target any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(target); err == io.EOF {
		return errors.New("the file is empty")
	} else if err != nil {
		return fmt.Errorf("decode YAML: %w", err)
	}
	var rest yaml.Node
	if decoder.Decode(&rest) == nil {
		return errors.New("decode YAML: a second document follows; a file holds one")
	}
	return nil
}

// UnmarshalYAML reads the form that Load describes. It walks the nodes because a Go map would lose the order.
func (d *Distribution) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: a distribution is a mapping with the keys name, description, toolsets", node.Line)
	}
	var (
		problems []error
		seen     = map[string]bool{}
	)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if seen[key.Value] {
			problems = append(problems, fmt.Errorf("line %d: %s is given twice", key.Line, key.Value))
		}
		seen[key.Value] = true
		var err error
		switch key.Value {
		case "name":
			err = value.Decode(&d.Name)
		case "description":
			err = value.Decode(&d.Description)
		case "toolsets":
			d.Toolsets, err = shares(value)
		default:
			err = fmt.Errorf("line %d: unknown key %q (have name, description, toolsets)", key.Line, key.Value)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

func shares(node *yaml.Node) ([]Share, error) {
	if node.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: toolsets is a mapping from toolset to percentage, such as {terminal: 90, file: 60.5}", node.Line)
	}
	var (
		list     []Share
		problems []error
	)
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Kind != yaml.ScalarNode {
			problems = append(problems, fmt.Errorf("line %d: a toolset is named by plain text", node.Content[i].Line))
			continue
		}
		share := Share{Toolset: node.Content[i].Value}
		if err := node.Content[i+1].Decode(&share.Percent); err != nil {
			problems = append(problems, fmt.Errorf("line %d: toolset %s: %q is not a percentage", node.Content[i].Line, share.Toolset, node.Content[i+1].Value))
			continue
		}
		list = append(list, share)
	}
	return list, errors.Join(problems...)
}

// Validate says everything that is wrong with the distribution. known says what is wrong with the name of a toolset; nil
// leaves that out, for where they are not known yet.
func (d Distribution) Validate(known func(toolset string) error) error {
	var problems []error
	if d.Name == "" {
		problems = append(problems, errors.New("the distribution has no name"))
	}
	if len(d.Toolsets) == 0 {
		problems = append(problems, fmt.Errorf("distribution %q has no toolsets", d.Name))
	}
	seen := map[string]bool{}
	for _, share := range d.Toolsets {
		if seen[share.Toolset] {
			problems = append(problems, fmt.Errorf("distribution %q: toolset %q is given twice", d.Name, share.Toolset))
		}
		seen[share.Toolset] = true
		// Written so that NaN fails too.
		if !(share.Percent > 0 && share.Percent <= 100) {
			problems = append(problems, fmt.Errorf("distribution %q: toolset %q has %v %%, which must be above 0 and at most 100", d.Name, share.Toolset, share.Percent))
		}
		if known == nil {
			continue
		}
		if err := known(share.Toolset); err != nil {
			problems = append(problems, fmt.Errorf("distribution %q: %w", d.Name, err))
		}
	}
	return errors.Join(problems...)
}
