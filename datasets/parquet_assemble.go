package datasets

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	pqformat "github.com/parquet-go/parquet-go/format"
)

// parquetColumn is a node of the schema: a scalar with its encoder, a group with its fields, or one of the two shapes
// that a group stands for. Parquet stores a row as flat runs of values, one run per scalar; the levels of a value say
// how much of its path is there (definition) and which list it continues (repetition).
type parquetColumn struct {
	name       string
	optional   bool
	repeated   bool
	definition int // level from which on the node is there
	repetition int // level at which a repeated node continues

	leaf   int // index of the scalar's run, -1 for a group
	encode scalarEncoder
	fields []*parquetColumn
	list   *parquetColumn // LIST: the repeated node with the items
	kv     *parquetColumn // MAP: the repeated node with keys and values
}

// parquetColumns are the nodes below one that has these levels.
func parquetColumns(columns []*parquet.Column, definition, repetition int) []*parquetColumn {
	nodes := make([]*parquetColumn, len(columns))
	for i, column := range columns {
		node := &parquetColumn{
			name: column.Name(), optional: column.Optional(), repeated: column.Repeated(),
			definition: definition, repetition: repetition, leaf: -1,
		}
		if node.optional || node.repeated {
			node.definition++
		}
		if node.repeated {
			node.repetition++
		}
		if column.Leaf() {
			node.leaf, node.encode = column.Index(), encoderOf(column.Type())
		} else {
			node.fields = parquetColumns(column.Columns(), node.definition, node.repetition)
			node.recognise(column)
		}
		nodes[i] = node
	}
	return nodes
}

// recognise sees lists and maps in their three-level form, and the older forms that the format's rules for backward
// compatibility allow.
func (c *parquetColumn) recognise(column *parquet.Column) {
	logical := column.Type().LogicalType()
	if logical == nil || len(c.fields) != 1 || !c.fields[0].repeated {
		return
	}
	inner := c.fields[0]
	switch logical.Value.(type) {
	case *pqformat.ListType:
		c.list = inner
	case *pqformat.MapType:
		if len(inner.fields) == 2 && inner.fields[0].leaf >= 0 {
			c.kv = inner
		}
	}
}

// wrapper tells whether the repeated node of a LIST only wraps its item. It is the item itself when it is a scalar, has
// several fields, or has one of the names that old writers gave to items.
func (c *parquetColumn) wrapper(list string) bool {
	return len(c.fields) == 1 && c.leaf < 0 && !c.fields[0].repeated && c.name != "array" && c.name != list+"_tuple"
}

// run is what is left of one scalar's values in a row.
type run []parquet.Value

// assembler walks the schema and consumes the runs.
type assembler struct{ runs []run }

// assemble builds the JSON object of a row. Levels that contradict each other are an error, never a panic.
func assemble(columns []*parquetColumn, values parquet.Row) (json.RawMessage, error) {
	a := assembler{}
	for _, value := range values {
		at := value.Column()
		for len(a.runs) <= at {
			a.runs = append(a.runs, nil)
		}
		a.runs[at] = append(a.runs[at], value)
	}
	return a.group(columns)
}

// group makes an object. Fields that are null are left out, and so are empty lists and maps that cannot be null: most
// writers put them where there is nothing.
func (a *assembler) group(fields []*parquetColumn) (json.RawMessage, error) {
	var list []member
	for _, field := range fields {
		if !utf8.ValidString(field.name) {
			return nil, fmt.Errorf("column name %q is not UTF-8", field.name)
		}
		value, err := a.value(field)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", field.name, err)
		}
		if value == nil || field.many() && !field.optional && len(value) == len("[]") {
			continue
		}
		list = append(list, member{field.name, value})
	}
	return joined(list), nil
}

func (c *parquetColumn) many() bool { return c.repeated || c.list != nil || c.kv != nil }

// value takes one node, with all its repetitions; nil when it is not there.
func (a *assembler) value(c *parquetColumn) (json.RawMessage, error) {
	if c.repeated {
		return a.items(c, a.content)
	}
	if c.optional {
		level, err := a.level(c)
		if err != nil {
			return nil, err
		}
		if level < c.definition {
			return nil, a.skip(c)
		}
	}
	return a.content(c)
}

// content takes a node that is there, once.
func (a *assembler) content(c *parquetColumn) (json.RawMessage, error) {
	switch {
	case c.leaf >= 0:
		value, err := a.next(c)
		if err != nil {
			return nil, err
		}
		if value.IsNull() {
			return nil, fmt.Errorf("a value is missing where its level says that there is one")
		}
		return c.encode(value)
	case c.list != nil:
		if !c.list.wrapper(c.name) {
			return a.items(c.list, a.content)
		}
		return a.items(c.list, func(list *parquetColumn) (json.RawMessage, error) {
			item, err := a.value(list.fields[0])
			if item == nil {
				item = json.RawMessage("null") // an item keeps its place
			}
			return item, err
		})
	case c.kv != nil:
		return a.entries(c.kv)
	}
	return a.group(c.fields)
}

// items makes a list of a repeated node.
func (a *assembler) items(c *parquetColumn, item func(*parquetColumn) (json.RawMessage, error)) (json.RawMessage, error) {
	out := json.RawMessage{'['}
	err := a.repeat(c, func() error {
		if len(out) > 1 {
			out = append(out, ',')
		}
		value, err := item(c)
		out = append(out, value...)
		return err
	})
	return append(out, ']'), err
}

// entries makes an object of the repeated node of a MAP. Keys that are not strings are written as text; null values are left
// out as everywhere.
func (a *assembler) entries(c *parquetColumn) (json.RawMessage, error) {
	var list []member
	err := a.repeat(c, func() error {
		key, err := a.value(c.fields[0])
		if err != nil {
			return err
		}
		if key == nil {
			return fmt.Errorf("a map with a key that is null")
		}
		value, err := a.value(c.fields[1])
		if value != nil {
			list = append(list, member{keyText(key), value})
		}
		return err
	})
	return joined(list), err
}

// repeat calls one for each repetition of a node.
func (a *assembler) repeat(c *parquetColumn, one func() error) error {
	level, err := a.level(c)
	if err != nil {
		return err
	}
	if level < c.definition {
		return a.skip(c)
	}
	for {
		before := len(a.runs[c.scalar()])
		if err := one(); err != nil {
			return err
		}
		left := a.runs[c.scalar()]
		if len(left) == 0 || left[0].RepetitionLevel() != c.repetition {
			return nil
		}
		if len(left) == before {
			return fmt.Errorf("its levels never end")
		}
	}
}

// scalar is the run that tells about a node: that of the first scalar below it.
func (c *parquetColumn) scalar() int {
	for c.leaf < 0 {
		if len(c.fields) == 0 {
			return -1
		}
		c = c.fields[0]
	}
	return c.leaf
}

func (a *assembler) level(c *parquetColumn) (int, error) {
	at := c.scalar()
	if at < 0 || at >= len(a.runs) || len(a.runs[at]) == 0 {
		return 0, fmt.Errorf("the row ends before it")
	}
	return a.runs[at][0].DefinitionLevel(), nil
}

func (a *assembler) next(c *parquetColumn) (parquet.Value, error) {
	if c.leaf >= len(a.runs) || len(a.runs[c.leaf]) == 0 {
		return parquet.Value{}, fmt.Errorf("the row ends before it")
	}
	value := a.runs[c.leaf][0]
	a.runs[c.leaf] = a.runs[c.leaf][1:]
	return value, nil
}

// skip consumes the placeholder that every scalar below an absent node has.
func (a *assembler) skip(c *parquetColumn) error {
	if c.leaf >= 0 {
		_, err := a.next(c)
		return err
	}
	for _, field := range c.fields {
		if err := a.skip(field); err != nil {
			return err
		}
	}
	return nil
}
