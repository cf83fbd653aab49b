package datasets

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"trajgen/pipeline/episode"
)

// arrowRow encodes the values of a row as JSON, in the same forms as those of Parquet (see parquetScalar): values without a JSON
// form become text. Invalid offsets in a damaged column panic.
type arrowRow struct {
	size int // of the values so far
}

// object encodes a row or a struct. Fields that are null are left out, and so are empty lists that cannot be null.
func (r *arrowRow) object(fields []arrow.Field, columns []arrow.Array, i int) (json.RawMessage, error) {
	var list []member
	for at, field := range fields {
		if !utf8.ValidString(field.Name) {
			return nil, fmt.Errorf("column name %q is not UTF-8", field.Name)
		}
		value, err := r.value(columns[at], i)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", field.Name, err)
		}
		_, many := field.Type.(arrow.ListLikeType)
		if value != nil && !(many && !field.Nullable && len(value) == len("[]")) {
			list = append(list, member{Name: field.Name, Value: value})
		}
	}
	return episode.Object(list), nil
}

// value encodes one value; nil when it is null. It looks through dictionaries, runs and extensions for the value itself: a type
// nests no deeper than the schema was allowed to.
func (r *arrowRow) value(values arrow.Array, i int) (json.RawMessage, error) {
	if i < 0 || i >= values.Len() {
		return nil, fmt.Errorf("it points to value %d of %d", i, values.Len())
	}
	switch typed := values.(type) {
	case *array.RunEndEncoded:
		return r.value(typed.Values(), typed.GetPhysicalIndex(i))
	case array.ExtensionArray:
		return r.value(typed.Storage(), i)
	case *array.Null:
		return nil, nil
	}
	if values.IsNull(i) {
		return nil, nil
	}
	switch typed := values.(type) {
	case *array.Dictionary:
		return r.value(typed.Dictionary(), typed.GetValueIndex(i))
	case *array.Map:
		return r.entries(typed, i)
	case array.ListLike:
		return r.list(typed, i)
	case *array.Struct:
		fields := typed.DataType().(*arrow.StructType).Fields()
		columns := make([]arrow.Array, len(fields))
		for at := range fields {
			columns[at] = typed.Field(at)
		}
		return r.object(fields, columns, i)
	}
	value, err := arrowScalar(values, i)
	if err != nil {
		return nil, err
	}
	return value, r.grow(len(value))
}

// grow bounds the size of a row, as a few bytes may expand to very many.
func (r *arrowRow) grow(size int) error {
	if r.size += size; r.size > maxRow {
		return fmt.Errorf("the row is larger than %d MiB", maxRow>>20)
	}
	return nil
}

// arrowSpan is where the items of a list lie. Whether they are there shows in each.
func arrowSpan(list array.ListLike, i int) (start, end int64, err error) {
	if start, end = list.ValueOffsets(i); end < start {
		err = fmt.Errorf("a list from item %d to %d", start, end)
	}
	return start, end, err
}

func (r *arrowRow) list(list array.ListLike, i int) (json.RawMessage, error) {
	start, end, err := arrowSpan(list, i)
	if err != nil {
		return nil, err
	}
	items := []json.RawMessage{}
	for at := start; at < end; at++ {
		item, err := r.value(list.ListValues(), int(at))
		if err == nil {
			err = r.grow(len(",null"))
		}
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return episode.JSON(items)
}

// entries makes an object of a map. Keys that are not strings are written as text; null values are left out as everywhere.
func (r *arrowRow) entries(entries *array.Map, i int) (json.RawMessage, error) {
	start, end, err := arrowSpan(entries, i)
	if err != nil {
		return nil, err
	}
	var list []member
	for at := start; at < end; at++ {
		key, err := r.value(entries.Keys(), int(at))
		if err == nil && key == nil {
			err = errors.New("a map with a key that is null")
		}
		if err != nil {
			return nil, err
		}
		value, err := r.value(entries.Items(), int(at))
		if err != nil {
			return nil, err
		}
		if value != nil {
			list = append(list, member{Name: keyText(key), Value: value})
		}
	}
	return episode.Object(list), nil
}

// arrowScalar writes one value that is not null and holds no others.
func arrowScalar(values arrow.Array, i int) (json.RawMessage, error) {
	switch typed := values.(type) {
	case interface{ Value(int) string }:
		return utf8Text(typed.Value(i))
	case interface{ Value(int) []byte }:
		return bytesOrText(typed.Value(i))
	case *array.Float16:
		return encodeFloat(float64(typed.Value(i).Float32()), 32)
	case *array.Float32:
		return encodeFloat(float64(typed.Value(i)), 32)
	case *array.Float64:
		return encodeFloat(typed.Value(i), 64)
	case *array.Decimal128:
		return decimalText(typed.Value(i).BigInt(), int(typed.DataType().(*arrow.Decimal128Type).Scale))
	case *array.Decimal256:
		return decimalText(typed.Value(i).BigInt(), int(typed.DataType().(*arrow.Decimal256Type).Scale))
	case *array.Time32:
		return encodeClock(int64(typed.Value(i)), typed.DataType().(*arrow.Time32Type).Unit.Multiplier())
	case *array.Time64:
		return encodeClock(int64(typed.Value(i)), typed.DataType().(*arrow.Time64Type).Unit.Multiplier())
	case *array.Timestamp:
		return encodeInstant(int64(typed.Value(i)), typed.DataType().(*arrow.TimestampType).Unit.Multiplier())
	case *array.Duration:
		count, unit := int64(typed.Value(i)), typed.DataType().(*arrow.DurationType).Unit.Multiplier()
		long := time.Duration(count) * unit
		if int64(long/unit) != count {
			return nil, fmt.Errorf("a duration of %d times %s", count, unit)
		}
		return episode.JSON(long.String())
	}
	return episode.JSON(values.GetOneForMarshal(i)) // booleans, whole numbers, dates and intervals
}
