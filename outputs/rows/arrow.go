package rows

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// This file is the same schema in Arrow: made of the same structs, so that the two cannot differ.

// ArrowTrajectories and ArrowToolCalls are the Arrow schemas of the two tables.
var (
	ArrowTrajectories = arrow.NewSchema(arrowFields(reflect.TypeFor[Trajectory]()), nil)
	ArrowToolCalls    = arrow.NewSchema(arrowFields(reflect.TypeFor[ToolCall]()), nil)
)

func arrowFields(row reflect.Type) []arrow.Field {
	fields := make([]arrow.Field, row.NumField())
	for i := range fields {
		f := row.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		fields[i] = arrow.Field{Name: name, Type: arrowType(f.Type, options), Nullable: f.Type.Kind() == reflect.Pointer}
	}
	return fields
}

// arrowType panics for a type that the schema has not got: a bug that every test would see.
func arrowType(t reflect.Type, options string) arrow.DataType {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return arrow.BinaryTypes.String
	case reflect.Bool:
		return arrow.FixedWidthTypes.Boolean
	case reflect.Int8:
		return arrow.PrimitiveTypes.Int8
	case reflect.Int32:
		return arrow.PrimitiveTypes.Int32
	case reflect.Int64:
		if strings.Contains(options, "timestamp(microsecond)") {
			return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
		}
		return arrow.PrimitiveTypes.Int64
	case reflect.Uint64:
		return arrow.PrimitiveTypes.Uint64
	case reflect.Float32:
		return arrow.PrimitiveTypes.Float32
	case reflect.Float64:
		return arrow.PrimitiveTypes.Float64
	case reflect.Struct:
		return arrow.StructOf(arrowFields(t)...)
	case reflect.Slice:
		element := arrow.Field{Name: "element", Type: arrowType(t.Elem(), ""), Nullable: t.Elem().Kind() == reflect.Pointer}
		return arrow.ListOfField(element)
	}
	panic(fmt.Sprintf("no Arrow type for %s", t))
}

// AppendArrow adds a row to a builder of its schema, and returns about how many bytes it takes.
func AppendArrow[Row any](b *array.RecordBuilder, row *Row) (size int64) {
	v := reflect.ValueOf(row).Elem()
	for i := range v.NumField() {
		size += appendArrow(b.Field(i), v.Field(i))
	}
	return size
}

func appendArrow(b array.Builder, v reflect.Value) int64 {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			b.AppendNull()
			return 1
		}
		v = v.Elem()
	}
	size := int64(8)
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(v.String())
		size = 4 + int64(v.Len())
	case *array.BooleanBuilder:
		b.Append(v.Bool())
	case *array.Int8Builder:
		b.Append(int8(v.Int()))
	case *array.Int32Builder:
		b.Append(int32(v.Int()))
	case *array.Int64Builder:
		b.Append(v.Int())
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.Int()))
	case *array.Uint64Builder:
		b.Append(v.Uint())
	case *array.Float32Builder:
		b.Append(float32(v.Float()))
	case *array.Float64Builder:
		b.Append(v.Float())
	case *array.StructBuilder:
		b.Append(true)
		for i := range v.NumField() {
			size += appendArrow(b.FieldBuilder(i), v.Field(i))
		}
	case *array.ListBuilder:
		b.Append(true)
		for i := range v.Len() {
			size += appendArrow(b.ValueBuilder(), v.Index(i))
		}
	}
	return size
}

// ReadArrow is the inverse of AppendArrow: it reads the i-th row of a record of the same schema. The row shares nothing
// with the record.
func ReadArrow[Row any](record arrow.Record, i int, row *Row) error {
	v := reflect.ValueOf(row).Elem()
	for c := range v.NumField() {
		if err := readArrow(record.Column(c), i, v.Field(c)); err != nil {
			return fmt.Errorf("column %s: %w", record.ColumnName(c), err)
		}
	}
	return nil
}

func readArrow(a arrow.Array, i int, v reflect.Value) error {
	if i >= a.Len() {
		return fmt.Errorf("it has %d values and not %d", a.Len(), i+1)
	}
	if v.Kind() == reflect.Pointer {
		if a.IsNull(i) {
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	} else if a.IsNull(i) {
		return errors.New("a value is null that must be there")
	}
	switch a := a.(type) {
	case *array.String:
		text := strings.Clone(a.Value(i))
		if !utf8.ValidString(text) {
			return fmt.Errorf("%.40q is not UTF-8", text)
		}
		v.SetString(text)
	case *array.Boolean:
		v.SetBool(a.Value(i))
	case *array.Int8:
		v.SetInt(int64(a.Value(i)))
	case *array.Int32:
		v.SetInt(int64(a.Value(i)))
	case *array.Int64:
		v.SetInt(a.Value(i))
	case *array.Timestamp:
		v.SetInt(int64(a.Value(i)))
	case *array.Uint64:
		v.SetUint(a.Value(i))
	case *array.Float32:
		v.SetFloat(float64(a.Value(i)))
	case *array.Float64:
		v.SetFloat(a.Value(i))
	case *array.Struct:
		for f := range v.NumField() {
			if err := readArrow(a.Field(f), i, v.Field(f)); err != nil {
				return err
			}
		}
	case *array.List:
		from, to := a.ValueOffsets(i)
		if from < 0 || to < from || to > int64(a.ListValues().Len()) {
			return fmt.Errorf("a list is the values %d to %d of %d", from, to, a.ListValues().Len())
		}
		list := reflect.MakeSlice(v.Type(), int(to-from), int(to-from))
		for n := range list.Len() {
			if err := readArrow(a.ListValues(), int(from)+n, list.Index(n)); err != nil {
				return err
			}
		}
		v.Set(list)
	default:
		return fmt.Errorf("type %s", a.DataType())
	}
	return nil
}
