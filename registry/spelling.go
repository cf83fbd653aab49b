package registry

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"trajgen/pipeline/where/nearest"
)

// explanations are names of arguments in which models explain a call. They make no difference to a tool.
var explanations = barely("description,explanation,reason,reasoning,rationale,justification,thought,thoughts,thinking,comment,purpose,intent,instruction")

// otherNames are the other names of an object's members.
type otherNames struct {
	aliases map[string][]string // of the member of that name, bare
	last    map[string]lastOf
	ignored []string // the tag idle
}

// lastOf are the names under which the last one of what a member counts may be given, bare, and from which member on.
type lastOf struct {
	names []string
	from  string
}

// spell reads the tags of an argument struct about names: alias lists other names of a field; last lists names under which the last
// item may be given instead of the number of items, counted from the field before the colon; and idle, at a field _, lists
// arguments that make no difference, always or with a value. The schema does not show them.
func (p *plan) spell(t reflect.Type, s *jsonschema.Schema) {
	for s != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		if t.Kind() == reflect.Slice {
			s = items(s)
		}
		t = t.Elem()
	}
	names := p.objects[s]
	if names == nil || t.Kind() != reflect.Struct {
		return
	}
	names.aliases, names.last = map[string][]string{}, map[string]lastOf{}
	for _, field := range reflect.VisibleFields(t) {
		if idle := field.Tag.Get("idle"); idle != "" {
			names.ignored = append(names.ignored, strings.Split(idle, ",")...)
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !knows(s, name) {
			continue // promoted by an embedded struct
		}
		names.aliases[name] = barely(field.Tag.Get("alias"))
		from, last, _ := strings.Cut(field.Tag.Get("last"), ":")
		names.last[name] = lastOf{barely(last), from}
		p.spell(field.Type, s.Properties[name])
	}
}

func barely(names string) []string {
	var all []string
	for name := range strings.SplitSeq(names, ",") {
		if name != "" {
			all = append(all, bare(name))
		}
	}
	return all
}

// rename gives arguments with another name the one that the tool knows. It leaves one that would contradict another argument, and
// the check then refuses it.
func (c *coercion) rename(v *value, s *jsonschema.Schema, at position) {
	names := c.plan.objects[s]
	if names == nil || !slices.ContainsFunc(v.members, func(m member) bool { return !knows(s, m.key) }) {
		return
	}
	c.renameTo(v, s, at, func(name string, m *member) *value {
		if short := bare(m.key); short == bare(name) || slices.Contains(names.aliases[name], short) {
			return &m.value
		}
		return nil
	})
	c.renameTo(v, s, at, func(name string, m *member) *value { // after the field that it counts from has its name
		if last := names.last[name]; slices.Contains(last.names, bare(m.key)) {
			return counted(v, s, last.from, &m.value)
		}
		return nil
	})
	for _, m := range v.members {
		if !knows(s, m.key) && names.idle(&m, at.depth == 0) {
			c.done = append(c.done, "ignored:"+at.member(m.key).String())
		}
	}
}

// renameTo moves each unknown argument to the known one for which it gives a value.
func (c *coercion) renameTo(v *value, s *jsonschema.Schema, at position, means func(name string, m *member) *value) {
	for i := 0; i < len(v.members); i++ {
		m := v.members[i]
		if knows(s, m.key) || m.value.kind == kindNull {
			continue
		}
		for _, name := range known(s) {
			meant := means(name, &m)
			if meant == nil {
				continue
			}
			switch other := v.member(name); {
			case other == nil:
				v.members[i] = member{key: name, name: quote(name), value: *meant}
			case string(other.append(nil)) == string(meant.append(nil)):
				v.members = slices.Delete(v.members, i, i+1)
				i--
			default:
				continue
			}
			c.done = append(c.done, "renamed:"+at.member(m.key).String())
			break
		}
	}
}

// counted is the number of items from the member's first one up to the last one, both included.
func counted(v *value, s *jsonschema.Schema, from string, last *value) *value {
	start := fallback(s.Properties[from])
	if i := slices.IndexFunc(v.members, func(m member) bool { return m.key == from }); i >= 0 && !absent(&v.members[i], s) {
		start = v.members[i].value.said()
	}
	first, err1 := strconv.ParseInt(start, 10, 32)
	to, err2 := strconv.ParseInt(last.said(), 10, 32)
	if err1 != nil || err2 != nil || to < first {
		return nil
	}
	return &value{kind: kindNumber, text: strconv.FormatInt(to-first+1, 10)}
}

// said is a scalar without quotes.
func (v *value) said() string {
	if v.kind == kindString {
		return strings.TrimSpace(unquote(v.text))
	}
	return v.text
}

// idle reports whether an argument makes no difference to the tool: null, an explanation, or the default behaviour.
func (n *otherNames) idle(m *member, top bool) bool {
	if m.value.kind == kindNull || top && slices.Contains(explanations, bare(m.key)) {
		return true
	}
	return slices.ContainsFunc(n.ignored, func(each string) bool {
		name, only, limited := strings.Cut(each, "=")
		return bare(name) == bare(m.key) && (!limited || m.value.kind < kindArray && strings.EqualFold(only, m.value.said()))
	})
}

// halves records the texts with half of a surrogate pair, which becomes U+FFFD.
func (c *coercion) halves(v *value, at position) {
	for i := range v.items {
		c.halves(&v.items[i], at.item(i))
	}
	for i := range v.members {
		m := &v.members[i]
		if halved(m.name) {
			c.done = append(c.done, "surrogate:"+at.member(m.key).String())
		}
		c.halves(&m.value, at.member(m.key))
	}
	if v.kind == kindString && halved(v.text) {
		c.done = append(c.done, "surrogate:"+at.String())
	}
}

// halved reports whether a JSON string escapes half of a surrogate pair: decoding gives more U+FFFD than it spells.
func halved(text string) bool {
	if !strings.Contains(text, `\ud`) && !strings.Contains(text, `\uD`) {
		return false
	}
	escapes := strings.ToLower(strings.ReplaceAll(text, `\\`, ""))
	return strings.Count(unquote(text), "\uFFFD") > strings.Count(text, "\uFFFD")+strings.Count(escapes, `\ufffd`)
}

// bare is a name as spellings of it have it in common.
func bare(name string) string { return nearest.Bare(name) }
