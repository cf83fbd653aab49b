package registry

import (
	"slices"
	"strings"
)

// text is a string as a JSON value.
func text(s string) value { return value{kind: kindString, text: quote(s)} }

func list(all []string) value {
	v := value{kind: kindArray}
	for _, each := range all {
		v.items = append(v.items, text(each))
	}
	return v
}

// names are the strings of a list, or of one string.
func names(v *value) []string {
	if v == nil {
		return nil
	}
	if v.kind == kindString {
		return []string{unquote(v.text)}
	}
	var all []string
	for _, each := range v.items {
		if each.kind == kindString {
			all = append(all, unquote(each.text))
		}
	}
	return all
}

// put sets a member, and keeps its place if it exists.
func (v *value) put(key string, to value) {
	if old := v.member(key); old != nil {
		*old = to
		return
	}
	v.members = append(v.members, member{key: key, name: quote(key), value: to})
}

func (v *value) drop(keys ...string) {
	v.members = slices.DeleteFunc(slices.Clone(v.members), func(m member) bool { return slices.Contains(keys, m.key) })
}

// pick is the members of these names.
func (v *value) pick(keys ...string) []member {
	return slices.DeleteFunc(slices.Clone(v.members), func(m member) bool { return !slices.Contains(keys, m.key) })
}

// under adds members of another object that this one lacks.
func (v *value) under(other value) {
	for _, m := range other.members {
		if v.member(m.key) == nil {
			m.value = m.value.clone()
			v.members = append(v.members, m)
		}
	}
}

// sinkType moves the type beside a union into those of its branches that have none.
func (v *value) sinkType() {
	kind := v.member("type")
	for _, keyword := range []string{"anyOf", "oneOf"} {
		union := v.member(keyword)
		if kind == nil || union == nil || union.kind != kindArray {
			continue
		}
		for i := range union.items {
			if branch := &union.items[i]; branch.kind == kindObject && branch.member("type") == nil && branch.member("$ref") == nil {
				branch.put("type", *kind)
			}
		}
		v.drop("type")
		return
	}
}

// hint removes a keyword and puts its meaning into the description.
func (v *value) hint(words, key string) {
	gone := v.member(key)
	if gone == nil {
		return
	}
	said := string(gone.append(nil))
	switch gone.kind {
	case kindString:
		said = unquote(gone.text)
	case kindArray:
		said = strings.Join(strings.Split(strings.Trim(said, "[]"), ","), ", ")
	}
	v.drop(key)
	before := ""
	if description := v.member("description"); description != nil && description.kind == kindString {
		before = strings.TrimRight(unquote(description.text), " \n") + " "
	}
	v.put("description", text(before+words+said+"."))
}
