package rows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"trajgen/pipeline/episode"
)

// Rows are filled from episodes, and read back, by the names of their fields: a column is the episode's field of the same
// name, which may end in US, or the one that its tag names.
//
//	of:"Key.Task"             a field of a field; behind a pointer that is nil there is nothing
//	of:"Fault.Class,always"   null is only what is not there: an empty text or a zero is none otherwise
//	of:"Verify,html"          JSON in which the characters of HTML are escaped
//	of:"-"                    code of its own fills it
//
// What has no column type of its own stands as JSON.

// column is a field of a row.
type column struct {
	at           int
	name         string
	path         []int // to the field of the episode
	always, html bool
}

type typePair struct{ row, of reflect.Type }

var known sync.Map // typePair to []column

// columnsOf panics for a column without a field: a bug that every test would see.
func columnsOf(row, of reflect.Type) []column {
	if found, ok := known.Load(typePair{row, of}); ok {
		return found.([]column)
	}
	var columns []column
	for i := range row.NumField() {
		f := row.Field(i)
		path, options, _ := strings.Cut(f.Tag.Get("of"), ",")
		if path == "-" {
			continue
		}
		if _, same := of.FieldByName(f.Name); path == "" {
			path = f.Name
			if !same {
				path = strings.TrimSuffix(path, "US")
			}
		}
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		c := column{at: i, name: name, always: options == "always", html: options == "html"}
		in := of
		for step := range strings.SplitSeq(path, ".") {
			if in.Kind() == reflect.Pointer {
				in = in.Elem()
			}
			field, ok := in.FieldByName(step)
			if !ok {
				panic(fmt.Sprintf("column %s of %s: %s has no field %s", name, row, in, step))
			}
			c.path, in = append(c.path, field.Index...), field.Type
		}
		columns = append(columns, c)
	}
	known.Store(typePair{row, of}, columns)
	return columns
}

var (
	rowUsageType = reflect.TypeFor[Usage]()
	usageType    = reflect.TypeFor[episode.Usage]()
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	rawType      = reflect.TypeFor[json.RawMessage]()
)

// fill sets the columns of a row.
func fill(row, from reflect.Value) error {
columns:
	for _, c := range columnsOf(row.Type(), from.Type()) {
		v := from
		for _, step := range c.path {
			if v.Kind() == reflect.Pointer {
				if v.IsNil() {
					continue columns
				}
				v = v.Elem()
			}
			v = v.Field(step)
		}
		if err := c.fill(row.Field(c.at), v); err != nil {
			return err
		}
	}
	return nil
}

// fill sets one value.
func (c *column) fill(to, from reflect.Value) error {
	if from.Kind() == reflect.Pointer {
		if from.IsNil() {
			return nil
		}
		if from.Type() == to.Type() {
			to.Set(from)
			return nil
		}
		there := *c
		there.always = true
		return there.fill(to, from.Elem())
	}
	if to.Kind() == reflect.Pointer {
		if !c.always && absent(from) {
			return nil
		}
		value := reflect.New(to.Type().Elem())
		to.Set(value)
		to = value.Elem()
	}
	switch from.Type() {
	case to.Type():
		to.Set(from) // shares what the episode has
		return nil
	case usageType:
		to.Set(reflect.ValueOf(newUsage(from.Interface().(episode.Usage))))
		return nil
	case timeType:
		to.SetInt(from.Interface().(time.Time).UnixMicro())
		return nil
	case durationType:
		to.SetInt(time.Duration(from.Int()).Microseconds())
		return nil
	case rawType:
		to.SetString(string(from.Bytes()))
		return nil
	}
	switch kind := from.Kind(); {
	case kind == reflect.String:
		to.SetString(from.String())
	case from.CanInt():
		to.SetInt(from.Int())
	case to.Kind() == reflect.String:
		text, err := c.encode(from.Interface())
		if err != nil {
			return fmt.Errorf("encode %s: %w", c.name, err)
		}
		to.SetString(text)
	case kind == reflect.Struct:
		return fill(to, from)
	case kind == reflect.Map:
		to.Set(reflect.ValueOf(pairs(from.Interface().(map[string]string))))
	case kind == reflect.Slice && !from.IsNil():
		list := reflect.MakeSlice(to.Type(), from.Len(), from.Len())
		to.Set(list)
		for i := range list.Len() {
			if err := c.fill(list.Index(i), from.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// absent says that a value is none, which a column that can be null shows as null.
func absent(v reflect.Value) bool {
	switch {
	case v.Kind() == reflect.Slice:
		return v.Len() == 0
	case v.Type() == timeType:
		return v.Interface().(time.Time).IsZero()
	}
	return v.IsZero()
}

func (c *column) encode(value any) (string, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(c.html)
	err := encoder.Encode(value)
	return strings.TrimSuffix(buf.String(), "\n"), err
}

// pairs returns a map's entries, sorted.
func pairs(m map[string]string) []Pair {
	var rows []Pair
	for _, key := range slices.Sorted(maps.Keys(m)) {
		rows = append(rows, Pair{Key: key, Value: m[key]})
	}
	return rows
}

func newUsage(u episode.Usage) Usage {
	if !u.Reported {
		return Usage{}
	}
	count := func(n int) *int64 { return new(int64(n)) }
	return Usage{count(u.Prompt), count(u.Completion), count(u.Reasoning), count(u.Cached)}
}
