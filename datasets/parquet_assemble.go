package datasets

import (
	"bytes"
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

func parquetColumns(columns []*parquet.Column) []*parquetColumn {
	return columnsBelow(columns, 0, 0)
}

func columnsBelow(columns []*parquet.Column, definition, repetition int) []*parquetColumn {
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
			node.fields = columnsBelow(column.Columns(), node.definition, node.repetition)
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

// assembler walks the schema and eats the runs.
type assembler struct {
	runs []run
	out  bytes.Buffer
}

// assemble builds the JSON object of a row. Levels that contradict each other are an error, never a panic.
func assemble(columns []*parquetColumn, values parquet.Row) (json.RawMessage, error) {
	a := assembler{}
	size := 64
	for _, value := range values {
		if size += 32; value.Kind() == parquet.ByteArray {
			size += len(value.ByteArray()) + len(value.ByteArray())/16
		}
		at := value.Column()
		for len(a.runs) <= at {
			a.runs = append(a.runs, nil)
		}
		a.runs[at] = append(a.runs[at], value)
	}
	a.out.Grow(size)
	if err := a.group(columns); err != nil {
		return nil, err
	}
	return a.out.Bytes(), nil
}

// group writes an object. Fields that are null are left out, and so are empty lists and maps that cannot be null: most
// writers put them where there is nothing.
func (a *assembler) group(fields []*parquetColumn) error {
	a.out.WriteByte('{')
	first := true
	for _, field := range fields {
		mark := a.out.Len()
		if !first {
			a.out.WriteByte(',')
		}
		name, err := encode(field.name)
		if err != nil || !utf8.ValidString(field.name) {
			return fmt.Errorf("column name %q is not UTF-8", field.name)
		}
		a.out.Write(name)
		a.out.WriteByte(':')
		start := a.out.Len()
		there, err := a.value(field)
		if err != nil {
			return fmt.Errorf("column %s: %w", field.name, err)
		}
		if !there || field.many() && !field.optional && a.out.Len() == start+len("[]") {
			a.out.Truncate(mark)
			continue
		}
		first = false
	}
	a.out.WriteByte('}')
	return nil
}

func (c *parquetColumn) many() bool { return c.repeated || c.list != nil || c.kv != nil }

// value writes one node, with all its repetitions, and tells whether it is there.
func (a *assembler) value(c *parquetColumn) (bool, error) {
	if c.repeated {
		return true, a.items(c, a.content)
	}
	if c.optional {
		level, err := a.level(c)
		if err != nil {
			return false, err
		}
		if level < c.definition {
			return false, a.skip(c)
		}
	}
	return true, a.content(c)
}

// content writes a node that is there, once.
func (a *assembler) content(c *parquetColumn) error {
	switch {
	case c.leaf >= 0:
		value, err := a.next(c)
		if err != nil {
			return err
		}
		if value.IsNull() {
			return fmt.Errorf("a value is missing where its level says that there is one")
		}
		encoded, err := c.encode(value)
		a.out.Write(encoded)
		return err
	case c.list != nil:
		if !c.list.wrapper(c.name) {
			return a.items(c.list, a.content)
		}
		return a.items(c.list, func(list *parquetColumn) error {
			there, err := a.value(list.fields[0])
			if !there {
				a.out.WriteString("null") // an item keeps its place
			}
			return err
		})
	case c.kv != nil:
		return a.entries(c.kv)
	}
	return a.group(c.fields)
}

// items writes a repeated node as a list.
func (a *assembler) items(c *parquetColumn, item func(*parquetColumn) error) error {
	a.out.WriteByte('[')
	first := true
	err := a.repeat(c, func() error {
		if !first {
			a.out.WriteByte(',')
		}
		first = false
		return item(c)
	})
	a.out.WriteByte(']')
	return err
}

// entries writes the repeated node of a MAP as an object. Keys that are not strings are written as text; null values
// are left out as everywhere.
func (a *assembler) entries(c *parquetColumn) error {
	a.out.WriteByte('{')
	first := true
	err := a.repeat(c, func() error {
		mark := a.out.Len()
		if !first {
			a.out.WriteByte(',')
		}
		start := a.out.Len()
		there, err := a.value(c.fields[0])
		if err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("a map with a key that is null")
		}
		key := json.RawMessage(bytes.Clone(a.out.Bytes()[start:]))
		if kindOf(key) != "a string" {
			a.out.Truncate(start)
			quoted, err := encode(string(key))
			if err != nil {
				return err
			}
			a.out.Write(quoted)
		}
		a.out.WriteByte(':')
		if there, err = a.value(c.fields[1]); err != nil {
			return err
		}
		if !there {
			a.out.Truncate(mark)
			return nil
		}
		first = false
		return nil
	})
	a.out.WriteByte('}')
	return err
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

// skip eats the one placeholder that every scalar below an absent node has.
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
