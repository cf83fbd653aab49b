package registry

import (
	"encoding/json"
	"slices"
	"strings"
)

// shown is the schema of the arguments in a form that a model's server accepts. Foreign schemas use all of JSON Schema, and invalid
// keywords; servers accept a part of it, and often refuse the rest with an error without details. shown keeps as much of the
// original's meaning as possible, and arguments are checked against the original.
func (t *Tool) shown(quirks Quirks) json.RawMessage {
	if t.args != nil && len(quirks) == 0 {
		return t.Parameters
	}
	root := parseValue(string(t.Parameters))
	s := shower{quirks: quirks, root: parseValue(string(t.Parameters)), room: maxInlined}
	s.object(&root)
	s.clean(&root, nil)
	if quirks.has(QuirkRefs) {
		root.drop("$defs", "definitions")
	}
	return root.append(nil)
}

// maxInlined bounds the size of inlined references in values: a few lines of references can expand to any size.
const maxInlined = 4096

// shower rewrites one schema.
type shower struct {
	quirks Quirks
	root   value // as it was given, for references
	room   int
}

// object makes the root an object with properties and without a union, as every server wants it. It takes over the properties of
// the branches, and requires what all of them require.
func (s *shower) object(root *value) {
	if ref := root.member("$ref"); ref != nil {
		if target, ok := s.resolve(ref); ok && target.kind == kindObject {
			definitions := root.pick("$defs", "definitions")
			*root = target.clone()
			root.members = append(root.members, definitions...)
		}
	}
	root.put("type", text("object"))
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		branches := root.member(keyword)
		if branches == nil || branches.kind != kindArray {
			continue
		}
		all := branches.items
		root.drop(keyword)
		s.join(root, all, keyword == "allOf")
	}
	root.drop("not", "nullable", "enum", "const", "if", "then", "else")
}

// join adds the properties of the branches, and requires what all branches require, or what any does if all branches must hold.
func (s *shower) join(root *value, branches []value, allHold bool) {
	count := map[string]int{}
	var order []string
	for _, branch := range branches {
		if ref := branch.member("$ref"); ref != nil {
			branch, _ = s.resolve(ref)
		}
		for _, name := range names(branch.member("required")) {
			if count[name]++; count[name] == 1 {
				order = append(order, name)
			}
		}
		properties := branch.member("properties")
		if properties == nil || properties.kind != kindObject {
			continue
		}
		own := root.member("properties")
		if own == nil || own.kind != kindObject {
			root.put("properties", value{kind: kindObject})
			own = root.member("properties")
		}
		for _, each := range properties.members {
			if own.member(each.key) == nil {
				each.value = each.value.clone()
				own.members = append(own.members, each)
			}
		}
	}
	required := names(root.member("required"))
	for _, name := range order {
		if (allHold || count[name] == len(branches)) && !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	root.put("required", list(required))
}

// clean rewrites a schema and those in it. inside are the references that were followed to get here.
func (s *shower) clean(v *value, inside []string) {
	switch v.kind {
	case kindString: // a type where a schema belongs
		name := unquote(v.text)
		*v = value{kind: kindObject}
		if slices.Contains(typeNames, name) {
			v.put("type", text(name))
		}
		return
	case kindBool:
		if v.text == "true" {
			*v = value{kind: kindObject}
		}
		return
	case kindObject:
	default:
		*v = value{kind: kindObject}
		return
	}
	if ref := v.member("$ref"); ref != nil {
		if inside = s.refer(v, ref, inside); v.member("$ref") != nil {
			return
		}
	}
	s.types(v)
	s.nullUnion(v)
	for _, each := range quirks {
		if each.leaveOut != nil && s.quirks.has(each.name) {
			each.leaveOut(s, v)
		}
	}
	for i := range v.members {
		m := &v.members[i]
		switch m.key {
		case "properties", "$defs", "definitions", "patternProperties":
			for j := range m.value.members {
				s.clean(&m.value.members[j].value, inside)
			}
		case "items", "not", "contains":
			if m.value.kind != kindArray {
				s.clean(&m.value, inside)
				break
			}
			fallthrough
		case "anyOf", "oneOf", "allOf", "prefixItems":
			for j := range m.value.items {
				s.clean(&m.value.items[j], inside)
			}
		case "additionalProperties":
			if m.value.kind == kindObject {
				s.clean(&m.value, inside)
			}
		}
	}
	s.properties(v)
}

// refer removes the keywords beside a reference, which have no meaning, or replaces the reference by its target.
func (s *shower) refer(v *value, ref *value, inside []string) []string {
	kept := v.pick("$ref", "description", "$defs", "definitions")
	if !s.quirks.has(QuirkRefs) {
		v.members = kept
		return inside
	}
	name := ref.text
	target, ok := s.resolve(ref)
	if target = target.clone(); !ok || slices.Contains(inside, name) || target.size() > s.room {
		target = value{kind: kindObject} // a recursive schema ends here
		target.put("type", text("object"))
	}
	s.room -= target.size()
	if description := v.member("description"); description != nil && target.kind == kindObject {
		target.put("description", *description)
	}
	*v = target
	inside = append(slices.Clone(inside), name)
	if next := v.member("$ref"); next != nil {
		return s.refer(v, next, inside)
	}
	return inside
}

// resolve follows a reference into the schema itself.
func (s *shower) resolve(ref *value) (value, bool) {
	if ref.kind != kindString {
		return value{}, false
	}
	path, ok := strings.CutPrefix(unquote(ref.text), "#")
	at := &s.root
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if !ok || path == "" || at == nil {
			break
		}
		at = at.member(strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
	}
	if !ok || at == nil {
		return value{}, false
	}
	return *at, true
}

// types writes a list of types as one type, nullable if null was among them, or as a union if several are left.
func (s *shower) types(v *value) {
	given := v.member("type")
	if given == nil || given.kind != kindArray {
		return
	}
	var kept []string
	for _, name := range names(given) {
		if name != "null" {
			kept = append(kept, name)
		}
	}
	null := len(kept) < len(given.items)
	switch {
	case len(kept) == 0:
		v.put("type", text("null"))
		return
	case len(kept) == 1 || v.member("anyOf") != nil || v.member("oneOf") != nil:
		v.put("type", text(kept[0]))
	default:
		union := value{kind: kindArray}
		for _, name := range kept {
			branch := value{kind: kindObject}
			branch.put("type", text(name))
			union.items = append(union.items, branch)
		}
		v.drop("type")
		v.put("anyOf", union)
	}
	if null {
		v.put("nullable", value{kind: kindBool, text: "true"})
	}
}

// nullUnion removes null from a union, and the union itself if one branch is left.
func (s *shower) nullUnion(v *value) {
	for _, keyword := range []string{"anyOf", "oneOf"} {
		union := v.member(keyword)
		if union == nil || union.kind != kindArray {
			continue
		}
		kept := slices.DeleteFunc(slices.Clone(union.items), isNull)
		if len(kept) == len(union.items) || len(kept) == 0 {
			continue
		}
		if len(kept) == 1 && kept[0].kind == kindObject {
			v.drop(keyword)
			v.under(kept[0])
			s.types(v)
		} else {
			union.items = kept
		}
		v.put("nullable", value{kind: kindBool, text: "true"})
	}
}

func isNull(v value) bool {
	if v.kind == kindString {
		return v.text == `"null"`
	}
	name := v.member("type")
	return name != nil && name.text == `"null"`
}

// properties adds a missing map of properties to an object, and removes unknown names from those that it requires.
func (s *shower) properties(v *value) {
	if kind := v.member("type"); kind == nil || kind.text != `"object"` {
		return
	}
	properties := v.member("properties")
	if properties == nil || properties.kind != kindObject {
		v.put("properties", value{kind: kindObject})
		properties = v.member("properties")
	}
	required := v.member("required")
	if required == nil {
		return
	}
	kept := slices.DeleteFunc(names(required), func(name string) bool { return properties.member(name) == nil })
	if len(kept) == 0 {
		v.drop("required")
		return
	}
	v.put("required", list(kept))
}
