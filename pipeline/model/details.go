package model

import (
	"bytes"
	"encoding/json"

	"trajgen/pipeline/episode"
)

// details collects OpenRouter's reasoning_details. A provider wants them back unchanged, and a stream delivers them in
// fragments: each is joined to the entry of its type and index, so that streams and plain replies give the same list.
type details struct {
	entries []*detail
	parts   int
}

// detail is an entry: its fields in the order in which they came.
type detail struct {
	part   int // number of the chunk that began it; entries of one chunk are never fragments of each other
	names  []string
	fields map[string]json.RawMessage
}

// joined has the types that come in fragments, each with the field whose fragments are concatenated. For the other fields the
// last value counts.
var joined = map[string]string{`"reasoning.text"`: "text", `"reasoning.summary"`: "summary"}

func (d *details) add(raw json.RawMessage) {
	var list []json.RawMessage
	if !present(raw) || json.Unmarshal(raw, &list) != nil {
		return
	}
	d.parts++
	for _, item := range list {
		entry := readDetail(item)
		if entry == nil {
			continue
		}
		entry.part = d.parts
		if whole := d.find(entry); whole != nil {
			whole.join(entry)
		} else {
			d.entries = append(d.entries, entry)
		}
	}
}

// find returns the entry that a fragment continues: the last one, if it is of the same type, index and id.
func (d *details) find(fragment *detail) *detail {
	if len(d.entries) == 0 {
		return nil
	}
	last := d.entries[len(d.entries)-1]
	same := func(name string) bool { return bytes.Equal(last.fields[name], fragment.fields[name]) }
	otherID := present(fragment.fields["id"]) && present(last.fields["id"]) && !same("id")
	if last.part == fragment.part || joined[string(last.fields["type"])] == "" || !same("type") || !same("index") || otherID {
		return nil
	}
	return last
}

func (d *detail) join(fragment *detail) {
	d.part = fragment.part
	text := joined[string(d.fields["type"])]
	for _, name := range fragment.names {
		value := fragment.fields[name]
		before, known := d.fields[name]
		switch {
		case !known:
			d.names = append(d.names, name)
			d.fields[name] = value
		case name == text && len(value) > 0 && value[0] == '"' && len(before) > 0 && before[0] == '"':
			// Concatenates two JSON strings between their quotes, which also joins a surrogate pair that was split. The slice is
			// ours and grows in place: there are as many fragments as tokens.
			d.fields[name] = append(before[:len(before)-1], value[1:]...)
		case present(value):
			d.fields[name] = value
		}
	}
}

// readDetail reads an object in the order of its fields; nil for anything else.
func readDetail(raw json.RawMessage) *detail {
	fields, err := episode.Members(raw)
	if err != nil {
		return nil
	}
	d := &detail{fields: map[string]json.RawMessage{}}
	for _, field := range fields {
		if _, twice := d.fields[field.Name]; !twice {
			d.names = append(d.names, field.Name)
		}
		d.fields[field.Name] = field.Value
	}
	return d
}

// list is the whole list, or nil without entries.
func (d *details) list() json.RawMessage {
	if len(d.entries) == 0 {
		return nil
	}
	var b []byte
	for i, entry := range d.entries {
		var fields []episode.Member
		for _, name := range entry.names {
			fields = append(fields, episode.Member{Name: name, Value: entry.fields[name]})
		}
		b = append(append(b, "[,"[min(i, 1)]), episode.Object(fields)...)
	}
	var compact bytes.Buffer
	json.Compact(&compact, append(b, ']')) // of valid JSON
	return compact.Bytes()
}
