package registry

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// types is a set of JSON Schema types. Empty means any.
type types uint8

const (
	typeNull types = 1 << iota
	typeBool
	typeInteger
	typeNumber
	typeString
	typeArray
	typeObject
)

var typeNames = map[string]types{
	"null": typeNull, "boolean": typeBool, "integer": typeInteger, "number": typeNumber,
	"string": typeString, "array": typeArray, "object": typeObject,
}

func (t types) name() string {
	for name, one := range typeNames {
		if one == t {
			return name
		}
	}
	return "any value"
}

// node is a compiled schema: what coercion, defaults and validation need, laid out for a walk along the arguments.
// It knows the keywords that our own tools use; a schema from elsewhere is judged by a full validator besides.
type node struct {
	types types
	order []types // in the order of the schema, which is the order in which coercion tries them

	properties []property
	// closed refuses members that are not among the properties, and drops those that make no difference before the
	// arguments are decoded: encoding/json matches keys without regard to case, so "PATH" would get past the checks of "path".
	closed bool
	idle   []string // the tag of that name
	extra  *node    // schema of the other members

	items        *node
	alternatives []*node // anyOf, oneOf
	enum         []string
	fallback     string // default, as JSON
	example      string // as JSON

	min, max             *float64
	minLength, maxLength int // of strings, in code points; -1 is none
	minItems, maxItems   int
}

func newNode() *node {
	return &node{minLength: -1, maxLength: -1, minItems: -1, maxItems: -1}
}

type property struct {
	name     string
	node     *node
	required bool

	aliases []string // bare
	last    []string // bare, and
	from    string   // the property that they count from
}

func (n *node) property(name string) *property {
	for i := range n.properties {
		if n.properties[i].name == name {
			return &n.properties[i]
		}
	}
	return nil
}

// under is what a member of that name is to be, nil where nothing is said.
func (n *node) under(name string) *node {
	if p := n.property(name); p != nil {
		return p.node
	}
	return n.extra
}

func (n *node) nullable() bool {
	return n.types&typeNull != 0 || slices.ContainsFunc(n.alternatives, (*node).nullable)
}

// fits tells whether the value's type is one of the node's.
func (n *node) fits(v *value) bool {
	if n.types == 0 {
		return true
	}
	for t := typeNull; t <= typeObject; t <<= 1 {
		if n.types&t != 0 && isType(v, t) {
			return true
		}
	}
	return false
}

func isType(v *value, t types) bool {
	switch t {
	case typeNull:
		return v.kind == kindNull
	case typeBool:
		return v.kind == kindBool
	case typeInteger:
		if v.kind != kindNumber {
			return false
		}
		if plainDigits(v.text) {
			return true
		}
		_, ok := integer(v.text)
		return ok
	case typeNumber:
		return v.kind == kindNumber
	case typeString:
		return v.kind == kindString
	case typeArray:
		return v.kind == kindArray
	}
	return v.kind == kindObject
}

// plainDigits tells the integers that every decoder reads, so that the common case needs no conversion.
func plainDigits(text string) bool {
	return strings.IndexAny(text, ".eE") < 0
}

// builder compiles a schema document.
type builder struct {
	root any
	refs map[string]*node // also while a node is being built, so that recursive schemas end
}

// build reads the keywords that coercion and validation use and ignores the rest.
func (b *builder) build(schema any) (*node, error) {
	n := newNode()
	return n, b.fill(n, schema)
}

func (b *builder) fill(n *node, schema any) error {
	doc, ok := schema.(map[string]any)
	if !ok {
		return nil // true, false and the like say nothing about types
	}
	if ref, ok := doc["$ref"].(string); ok {
		target, err := b.reference(ref)
		if err != nil {
			return err
		}
		n.alternatives = []*node{target}
		return nil
	}
	if err := n.setTypes(doc); err != nil {
		return err
	}
	n.limits(doc)
	if enum, ok := doc["enum"].([]any); ok {
		for _, each := range enum {
			v := valueOf(each)
			n.enum = append(n.enum, v.canonical())
		}
	}
	if fallback, ok := doc["default"]; ok {
		n.fallback = jsonOf(fallback)
	}
	if examples, ok := doc["examples"].([]any); ok && len(examples) > 0 {
		n.example = jsonOf(examples[0])
	}
	return b.children(n, doc)
}

func (n *node) setTypes(doc map[string]any) error {
	list, ok := doc["type"].([]any)
	if !ok && doc["type"] != nil {
		list = []any{doc["type"]}
	}
	if doc["nullable"] == true && len(list) > 0 {
		list = append(slices.Clone(list), "null")
	}
	for _, each := range list {
		name, _ := each.(string)
		t, ok := typeNames[name]
		if !ok {
			return fmt.Errorf("unknown type %v", each)
		}
		if n.types&t == 0 {
			n.types |= t
			n.order = append(n.order, t)
		}
	}
	return nil
}

func (n *node) limits(doc map[string]any) {
	float := func(key string) *float64 {
		if number, ok := doc[key].(json.Number); ok {
			if f, err := number.Float64(); err == nil {
				return &f
			}
		}
		return nil
	}
	count := func(key string) int {
		if f := float(key); f != nil {
			return int(*f)
		}
		return -1
	}
	n.min, n.max = float("minimum"), float("maximum")
	n.minLength, n.maxLength = count("minLength"), count("maxLength")
	n.minItems, n.maxItems = count("minItems"), count("maxItems")
}

func (b *builder) children(n *node, doc map[string]any) error {
	required := map[string]bool{}
	names, _ := doc["required"].([]any)
	for _, each := range names {
		if name, ok := each.(string); ok {
			required[name] = true
		}
	}
	properties, _ := doc["properties"].(map[string]any)
	for _, name := range sortedKeys(properties) {
		child, err := b.build(properties[name])
		if err != nil {
			return fmt.Errorf("property %s: %w", name, err)
		}
		n.properties = append(n.properties, property{name: name, node: child, required: required[name]})
		delete(required, name)
	}
	for _, name := range sortedKeys(required) { // required without a schema
		n.properties = append(n.properties, property{name: name, node: newNode(), required: true})
	}
	var err error
	if items, ok := doc["items"].(map[string]any); ok {
		if n.items, err = b.build(items); err != nil {
			return fmt.Errorf("items: %w", err)
		}
	}
	if extra, ok := doc["additionalProperties"].(map[string]any); ok {
		if n.extra, err = b.build(extra); err != nil {
			return fmt.Errorf("additionalProperties: %w", err)
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		branches, _ := doc[keyword].([]any)
		for i, branch := range branches {
			child, err := b.build(branch)
			if err != nil {
				return fmt.Errorf("%s %d: %w", keyword, i, err)
			}
			n.alternatives = append(n.alternatives, child)
		}
	}
	return nil
}

// reference follows a $ref within the document. Anything else would be fetched from somewhere, which we never do.
func (b *builder) reference(ref string) (*node, error) {
	if n, ok := b.refs[ref]; ok {
		return n, nil
	}
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, fmt.Errorf("reference %q leads out of the schema", ref)
	}
	at := b.root
	for _, step := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if path == "" {
			break
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch here := at.(type) {
		case map[string]any:
			at, ok = here[step]
		case []any:
			i, err := strconv.Atoi(step)
			if ok = err == nil && i >= 0 && i < len(here); ok {
				at = here[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, fmt.Errorf("reference %q leads nowhere", ref)
		}
	}
	n := newNode()
	b.refs[ref] = n
	return n, b.fill(n, at)
}
