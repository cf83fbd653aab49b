package datasets

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// OwnShape names the rows that Fields describes, so that none is taken for another tool's.
const OwnShape = "task"

// shape builds the fields of a row from one of another tool. To add one, write its file and its line in shapes.
type shape struct {
	about string
	// is recognizes such a row by its columns; it must not match a row with our fields. With nil the shape must be named.
	is     func(c columns) bool
	fields func(b *builder, c columns)
}

var shapes = map[string]shape{
	"chat":     {about: "messages with the assistant's turns: the user's are played, the others are the reference solution", fields: chatFields},
	"hermes":   {about: "Hermes and ShareGPT conversations, likewise", is: isHermes, fields: hermesFields},
	"skyrl":    {about: "SkyRL, judged by the rule that data_source and env_class name", is: isSkyRL, fields: skyRLFields},
	OwnShape:   {about: "rows with the fields of a task"},
	"swebench": {about: "SWE-bench and its kin: an issue of a repository, judged by its tests", is: isSWE, fields: sweFields},
	"verl":     {about: "verl, judged by the rule that data_source names", is: isVerl, fields: verlFields},
}

// Shapes describes the shapes of rows that are known, OwnShape among them.
func Shapes() map[string]string {
	all := map[string]string{}
	for name, s := range shapes {
		all[name] = s.about
	}
	return all
}

// checkShape says what is wrong with the choice of a shape.
func (o Options) checkShape() error {
	switch _, known := shapes[o.Shape]; {
	case o.Shape != "" && !known:
		return fmt.Errorf("unknown shape %q (have %s)", o.Shape, strings.Join(slices.Sorted(maps.Keys(shapes)), ", "))
	case o.Shape != "" && o.Map != nil:
		return fmt.Errorf("both a shape and a mapping say how rows are read: leave one out")
	}
	return nil
}

// ownFields are fields of our own rows that no other tool's have: a row with one of them is ours, whatever else it keeps.
var ownFields = []string{"verify", "gold", "setup", "files"}

// columns are the entries of a row by name.
type columns map[string]json.RawMessage

func (c columns) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return c[name] == nil })
}

func (c columns) text(name string) string {
	text, _ := asText(c[name])
	return text
}

// inside are the columns of an object in a column, or of the JSON text of one.
func (c columns) inside(name string) columns {
	inner, _ := columnsIn(structured(c[name]))
	return inner
}

// columnsIn are the entries of an object, nil when it is none.
func columnsIn(object json.RawMessage) (columns, error) {
	entries, err := members(object)
	if err != nil {
		return nil, err
	}
	return columnsOf(entries), nil
}

func columnsOf(entries []member) columns {
	c := make(columns, len(entries))
	for _, entry := range entries {
		c[entry.Name] = entry.Value
	}
	return c
}

// builder collects the fields that a shape makes of a row.
type builder struct {
	fields []member
	notes  map[string]string // remarks for readers of the row
	wrong  problems
}

func (b *builder) set(field string, value any) {
	b.fields = append(b.fields, member{Name: field, Value: episode.MustJSON(value)})
}

// copy takes a column over as the field of that name.
func (b *builder) copy(c columns, name string) {
	if c.has(name) {
		b.fields = append(b.fields, member{Name: name, Value: c[name]})
	}
}

// note goes to the task's metadata.
func (b *builder) note(name, format string, arguments ...any) {
	if b.notes == nil {
		b.notes = map[string]string{}
	}
	b.notes[name] = fmt.Sprintf(format, arguments...)
}

// shapeOf finds the shape of a row: the requested one, or the one that matches its columns.
func (o Options) shapeOf(c columns) string {
	if o.Shape != "" {
		return o.Shape
	}
	if slices.ContainsFunc(ownFields, func(field string) bool { return c.has(field) }) {
		return OwnShape
	}
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		if s := shapes[name]; s.is != nil && s.is(c) {
			return name
		}
	}
	return OwnShape
}

// shaped builds the fields of a row of any shape. The metadata is nil for our own; else all of the row, and what the shape
// has to say.
func (o Options) shaped(row []member) (fields, metadata []member, wrong problems) {
	c := columnsOf(row)
	name := o.shapeOf(c)
	if name == OwnShape {
		return row, nil, nil
	}
	b := &builder{}
	shapes[name].fields(b, c)
	if len(b.wrong) > 0 {
		b.wrong[0] = "as a row of the shape " + name + ": " + b.wrong[0]
		return nil, nil, b.wrong
	}
	metadata = slices.Clone(row)
	b.note("name", "%s", name)
	key := "shape"
	for c[key] != nil {
		key = "trajgen_" + key
	}
	return b.fields, append(metadata, member{Name: key, Value: episode.MustJSON(b.notes)}), nil
}
