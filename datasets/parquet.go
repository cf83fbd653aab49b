package datasets

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	pqformat "github.com/parquet-go/parquet-go/format"

	"trajgen/pipeline/episode"
)

// parquetBatch is how many rows are decoded at a time: rows of agent tasks are large, and pages are read lazily.
const parquetBatch = 16

// parquetRows reads a file of any schema. Each row becomes a JSON object in the order of the columns; see parquetColumn for what
// the types become.
func parquetRows(opened *os.File, yield func(row) bool) error {
	var (
		file    *parquet.File
		rows    *parquet.GenericReader[any]
		columns []*parquetColumn
	)
	err := guarded(func() error {
		info, err := opened.Stat()
		if err != nil {
			return err
		}
		if file, err = parquet.OpenFile(opened, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true)); err != nil {
			return err
		}
		columns = parquetColumns(file.Root().Columns(), 0, 0)
		rows = parquet.NewGenericReader[any](file)
		return nil
	})
	if err != nil {
		return fmt.Errorf("the Parquet file is damaged or cut off: %w", err)
	}
	defer rows.Close()
	number := 0
	damaged := func(err error) error {
		return fmt.Errorf("after row %d: the Parquet file is damaged: %w", number, err)
	}
	batch := make([]parquet.Row, parquetBatch)
	for {
		n := 0
		err := guarded(func() (err error) {
			n, err = rows.ReadRows(batch)
			return err
		})
		if err != nil && err != io.EOF {
			return damaged(err)
		}
		for _, values := range batch[:n] {
			number++
			r := row{line: number, unit: "row"}
			if r.text, err = parquetObject(columns, values); err != nil {
				r.broken = err.Error()
			} else if len(r.text) > maxRow {
				r.broken = fmt.Sprintf("the row is larger than %d MiB", maxRow>>20)
			}
			if !yield(r) {
				return nil
			}
		}
		if n > 0 && err != io.EOF {
			continue
		}
		if int64(number) != file.NumRows() {
			return damaged(fmt.Errorf("%d rows instead of the %d that its footer promises", number, file.NumRows()))
		}
		return nil
	}
}

// guarded turns a panic of the library into an error, as the library panics on some invalid schemas and pages, and a dataset is
// untrusted input.
func guarded(read func() error) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = errors.Join(err, fmt.Errorf("%v", caught))
		}
	}()
	return read()
}

// parquetColumn is a node of the schema: a scalar, a group with its fields, or one of the two shapes
// that a group stands for. Parquet stores a row as flat runs of values, one run per scalar; the levels of a value say
// how much of its path is there (definition) and which list it continues (repetition).
type parquetColumn struct {
	name       string
	optional   bool
	repeated   bool
	definition int // level from which on the node is there
	repetition int // level at which a repeated node continues
	scalars    int // how many it has, each with a run

	scalar  bool
	logical any // the logical type, nil for none
	fields  []*parquetColumn
	list    *parquetColumn // LIST: the repeated node with the items
	kv      *parquetColumn // MAP: the repeated node with keys and values
}

// parquetColumns are the nodes below one that has these levels.
func parquetColumns(columns []*parquet.Column, definition, repetition int) []*parquetColumn {
	nodes := make([]*parquetColumn, len(columns))
	for i, column := range columns {
		node := &parquetColumn{
			name: column.Name(), optional: column.Optional(), repeated: column.Repeated(), definition: definition, repetition: repetition,
		}
		if node.optional || node.repeated {
			node.definition++
		}
		if node.repeated {
			node.repetition++
		}
		if logical := column.Type().LogicalType(); logical != nil {
			node.logical = logical.Value
		}
		if node.scalar = column.Leaf(); node.scalar {
			node.scalars = 1
		} else {
			node.fields = parquetColumns(column.Columns(), node.definition, node.repetition)
			for _, field := range node.fields {
				node.scalars += field.scalars
			}
			node.recognise()
		}
		nodes[i] = node
	}
	return nodes
}

// recognise sees lists and maps in their three-level form, and the older forms that the format's rules for backward
// compatibility allow.
func (c *parquetColumn) recognise() {
	if len(c.fields) != 1 || !c.fields[0].repeated {
		return
	}
	inner := c.fields[0]
	switch c.logical.(type) {
	case *pqformat.ListType:
		c.list = inner
	case *pqformat.MapType:
		if len(inner.fields) == 2 && inner.fields[0].scalar {
			c.kv = inner
		}
	}
}

// wrapper tells whether the repeated node of a LIST only wraps its item. It is the item itself when it is a scalar, has
// several fields, or has one of the names that old writers gave to items.
func (c *parquetColumn) wrapper(list string) bool {
	return len(c.fields) == 1 && !c.scalar && !c.fields[0].repeated && c.name != "array" && c.name != list+"_tuple"
}

// parquetRuns are the values of each scalar below a node.
type parquetRuns [][]parquet.Value

// parquetObject builds the JSON object of a row. Levels that contradict each other are an error, never a panic.
func parquetObject(columns []*parquetColumn, values parquet.Row) (json.RawMessage, error) {
	whole := parquetColumn{fields: columns}
	for _, column := range columns {
		whole.scalars += column.scalars
	}
	runs := make(parquetRuns, whole.scalars)
	for _, value := range values {
		if at := value.Column(); at >= 0 && at < len(runs) {
			runs[at] = append(runs[at], value)
		}
	}
	return whole.object(runs)
}

// object makes an object of a group. Fields that are null are left out, and so are empty lists and maps that cannot be null: most
// writers put them where there is nothing.
func (c *parquetColumn) object(runs parquetRuns) (json.RawMessage, error) {
	var list []member
	for _, field := range c.fields {
		if !utf8.ValidString(field.name) {
			return nil, fmt.Errorf("column name %q is not UTF-8", field.name)
		}
		value, err := field.value(runs[:field.scalars])
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", field.name, err)
		}
		runs = runs[field.scalars:]
		many := field.repeated || field.list != nil || field.kv != nil
		if value == nil || many && !field.optional && len(value) == len("[]") {
			continue
		}
		list = append(list, member{Name: field.name, Value: value})
	}
	return episode.Object(list), nil
}

// value makes JSON of a node with all its repetitions; nil when it is not there.
func (c *parquetColumn) value(runs parquetRuns) (json.RawMessage, error) {
	switch {
	case c.scalars == 0:
		return nil, nil // nothing says whether an empty group is there
	case len(runs[0]) == 0:
		return nil, errors.New("the row ends before it")
	case c.repeated:
		return c.items(runs, c.content)
	case runs[0][0].DefinitionLevel() < c.definition:
		return nil, nil
	}
	return c.content(runs)
}

// content makes JSON of a node that is there, once.
func (c *parquetColumn) content(runs parquetRuns) (json.RawMessage, error) {
	switch {
	case c.scalar:
		value := runs[0][0]
		if value.IsNull() {
			return nil, errors.New("a value is missing where its level says that there is one")
		}
		return parquetScalar(c.logical, value)
	case c.list != nil && !c.list.wrapper(c.name):
		return c.list.items(runs, c.list.content)
	case c.list != nil:
		return c.list.items(runs, c.list.fields[0].value)
	case c.kv != nil:
		return c.kv.entries(runs)
	}
	return c.object(runs)
}

// items makes a list of a repeated node. An item that is null keeps its place.
func (c *parquetColumn) items(runs parquetRuns, item func(parquetRuns) (json.RawMessage, error)) (json.RawMessage, error) {
	list := []json.RawMessage{}
	for _, runs := range c.repetitions(runs) {
		value, err := item(runs)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return episode.JSON(list)
}

// entries makes an object of the repeated node of a MAP. Keys that are not strings are written as text; null values are left
// out as everywhere.
func (c *parquetColumn) entries(runs parquetRuns) (json.RawMessage, error) {
	var list []member
	for _, runs := range c.repetitions(runs) {
		key, err := c.fields[0].value(runs[:1])
		if err == nil && key == nil {
			err = errors.New("a map with a key that is null")
		}
		if err != nil {
			return nil, err
		}
		value, err := c.fields[1].value(runs[1:])
		if err != nil {
			return nil, err
		}
		if value != nil {
			list = append(list, member{Name: keyText(key), Value: value})
		}
	}
	return episode.Object(list), nil
}

// repetitions divides the runs of a repeated node.
func (c *parquetColumn) repetitions(runs parquetRuns) (all []parquetRuns) {
	if len(runs) == 0 || len(runs[0]) == 0 || runs[0][0].DefinitionLevel() < c.definition {
		return nil
	}
	for scalar, run := range runs {
		for n := 0; len(run) > 0; n++ {
			end := 1
			for end < len(run) && run[end].RepetitionLevel() > c.repetition {
				end++
			}
			if n == len(all) {
				all = append(all, make(parquetRuns, len(runs)))
			}
			all[n][scalar], run = run[:end], run[end:]
		}
	}
	return all
}
