package registry

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// aside are the names under which models say why they make a call. A tool does the same with them and without.
var aside = barely("description,explanation,reason,reasoning,rationale,justification,thought,thoughts,thinking,comment,purpose,intent,instruction")

// spell takes over what the tags of an argument struct say about names: alias lists other names of a field, last names
// under which the last one of what the field counts may be given, from the field before the colon on, and idle, at a
// field _, what makes no difference: an argument, or one with that value. A model is shown none of them.
func (n *node) spell(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t.Kind() == reflect.Slice {
			if n = n.items; n == nil {
				return
			}
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for _, field := range reflect.VisibleFields(t) {
		if idle := field.Tag.Get("idle"); idle != "" {
			n.idle = append(n.idle, strings.Split(idle, ",")...)
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		p := n.property(name)
		if p == nil {
			continue // what an embedded struct promotes, or what an episode's schema leaves out
		}
		p.aliases = barely(field.Tag.Get("alias"))
		from, last, _ := strings.Cut(field.Tag.Get("last"), ":")
		p.from, p.last = from, barely(last)
		p.node.spell(field.Type)
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

// rename gives arguments that have another name the one that the tool knows. One that would contradict another is left:
// validation refuses what the tool does not have.
func (c *checker) rename(v *value, n *node) {
	if !n.closed {
		return
	}
	strange := func(m member) bool { return n.property(m.key) == nil }
	if !slices.ContainsFunc(v.members, strange) {
		return
	}
	c.renameTo(v, n, func(p *property, m *member) *value {
		if short := bare(m.key); short == bare(p.name) || slices.Contains(p.aliases, short) {
			return &m.value
		}
		return nil
	})
	c.renameTo(v, n, func(p *property, m *member) *value { // now that where it begins has its name
		if !slices.Contains(p.last, bare(m.key)) {
			return nil
		}
		return n.counted(v, p, &m.value)
	})
	for _, m := range v.members {
		if strange(m) && c.idle(&m, n) {
			c.recordAs("ignored", m.key)
		}
	}
}

// renameTo puts each argument that the tool does not have under the name of the one for which it means a value.
func (c *checker) renameTo(v *value, n *node, means func(p *property, m *member) *value) {
	for i := 0; i < len(v.members); i++ {
		m := v.members[i]
		if n.property(m.key) != nil || m.value.kind == kindNull {
			continue
		}
		for j := range n.properties {
			p := &n.properties[j]
			meant := means(p, &m)
			if meant == nil {
				continue
			}
			switch other := v.member(p.name); {
			case other == nil:
				v.members[i] = member{key: p.name, name: quote(p.name), value: *meant}
			case other.canonical() == meant.canonical():
				v.members = slices.Delete(v.members, i, i+1)
				i--
			default:
				continue
			}
			c.recordAs("renamed", m.key)
			break
		}
	}
}

// counted is the number from where p begins to count up to the last one, both included.
func (n *node) counted(v *value, p *property, last *value) *value {
	start := n.property(p.from)
	if start == nil {
		return nil // an episode's schema leaves it out
	}
	first := start.node.fallback
	if given := v.member(p.from); given != nil && !absent(given, start) {
		first = given.said()
	}
	from, err1 := strconv.ParseInt(first, 10, 32)
	to, err2 := strconv.ParseInt(last.said(), 10, 32)
	if err1 != nil || err2 != nil || to < from {
		return nil
	}
	return &value{kind: kindNumber, text: strconv.FormatInt(to-from+1, 10)}
}

// said is a scalar without quotes.
func (v *value) said() string {
	if v.kind == kindString {
		return strings.TrimSpace(unquote(v.text))
	}
	return v.text
}

// idle tells what the tool would do no other thing for: null, a word about the call, what it does anyway.
func (c *checker) idle(m *member, n *node) bool {
	if m.value.kind == kindNull || len(c.path) == 0 && slices.Contains(aside, bare(m.key)) {
		return true
	}
	return slices.ContainsFunc(n.idle, func(each string) bool {
		name, only, limited := strings.Cut(each, "=")
		return bare(name) == bare(m.key) && (!limited || m.value.kind < kindArray && strings.EqualFold(only, m.value.said()))
	})
}

func (c *checker) recordAs(what, key string) {
	c.push(step{key: key, index: -1})
	c.coerced = append(c.coerced, what+":"+c.where())
	c.pop()
}

// unknown refuses an argument that the tool does not have: it would do something else than the model asked for.
func (c *checker) unknown(key string, v *value, n *node) {
	var names, open []string
	for i := range n.properties {
		name := n.properties[i].name
		if names = append(names, name); v.member(name) == nil {
			open = append(open, name)
		}
	}
	expected := "no such argument"
	if len(names) > 0 {
		expected = "one of " + strings.Join(names, ", ")
	}
	if meant := nearest(key, open); meant != "" {
		expected += "; did you mean " + meant + "?"
	}
	c.push(step{key: key, index: -1})
	c.report(expected, "an argument that the tool does not have")
	c.pop()
}

// halves records the texts with half of a surrogate pair, which no tool and no file can have: it becomes U+FFFD.
func (c *checker) halves(v *value) {
	for i := range v.items {
		c.push(step{index: i})
		c.halves(&v.items[i])
		c.pop()
	}
	for i := range v.members {
		m := &v.members[i]
		c.push(step{key: m.key, index: -1})
		if halved(m.name) {
			c.coerced = append(c.coerced, "surrogate:"+c.where())
		}
		c.halves(&m.value)
		c.pop()
	}
	if v.kind == kindString && halved(v.text) {
		c.coerced = append(c.coerced, "surrogate:"+c.where())
	}
}

// halved tells whether a JSON string escapes half of a surrogate pair: more comes out as U+FFFD than was written so.
func halved(text string) bool {
	if !strings.Contains(text, `\ud`) && !strings.Contains(text, `\uD`) {
		return false
	}
	escapes := strings.ToLower(strings.ReplaceAll(text, `\\`, ""))
	return strings.Count(unquote(text), "\uFFFD") > strings.Count(text, "\uFFFD")+strings.Count(escapes, `\ufffd`)
}
