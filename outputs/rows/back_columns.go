package rows

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
)

// back gathers what is wrong with a row that is read back.
type back struct {
	wrong []error
	names []string // of the columns that lead to the one that is read
}

func (b *back) bad(format string, args ...any) {
	if len(b.wrong) < 20 {
		b.wrong = append(b.wrong, fmt.Errorf(format, args...))
	}
}

// read is the inverse of fill.
func (b *back) read(row, to reflect.Value) {
	for _, c := range columnsOf(row.Type(), to.Type()) {
		from, v := row.Field(c.at), to
		switch {
		case from.Kind() == reflect.Pointer && from.IsNil(), from.Kind() == reflect.Slice && from.Len() == 0:
			continue
		case from.Type() == rowUsageType && !from.Interface().(Usage).reported():
			continue
		}
		for _, step := range c.path {
			v = made(v).Field(step)
		}
		b.names = append(b.names, c.name)
		b.value(v, from)
		b.names = b.names[:len(b.names)-1]
	}
}

// made is what a pointer leads to, which is made when it is nil, or the value itself.
func made(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer {
		return v
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Elem()
}

// value reads one value.
func (b *back) value(to, from reflect.Value) {
	if to.Type() == from.Type() {
		to.Set(from)
		return
	}
	from = reflect.Indirect(from)
	if to.Kind() == reflect.Pointer && from.Kind() == reflect.String {
		b.decode(to, from.String())
		return
	}
	to = made(to)
	switch to.Type() {
	case usageType:
		to.Set(reflect.ValueOf(from.Interface().(Usage).episode()))
		return
	case timeType:
		to.Set(reflect.ValueOf(b.time(from.Int())))
		return
	case durationType:
		to.SetInt(int64(b.duration(from.Int())))
		return
	case rawType:
		if text := from.String(); json.Valid([]byte(text)) {
			to.SetBytes([]byte(text))
		} else {
			b.bad("%s holds %.40q, which is not JSON", strings.Join(b.names, "."), text)
		}
		return
	}
	switch {
	case to.Kind() == reflect.String:
		to.SetString(from.String())
	case to.CanInt():
		to.SetInt(from.Int())
	case to.CanFloat():
		to.SetFloat(from.Float())
	case from.Kind() == reflect.String:
		b.decode(to, from.String())
	case to.Kind() == reflect.Struct:
		b.read(from, to)
	case to.Kind() == reflect.Map:
		to.Set(reflect.ValueOf(entries(from.Interface().([]Pair))))
	default:
		list := reflect.MakeSlice(to.Type(), from.Len(), from.Len())
		to.Set(list)
		for i := range list.Len() {
			b.value(list.Index(i), from.Index(i))
		}
	}
}

// decode reads what is kept as JSON; null stays what it is.
func (b *back) decode(to reflect.Value, text string) {
	if err := json.Unmarshal([]byte(text), to.Addr().Interface()); err != nil {
		b.bad("%s holds %.40q: %w", strings.Join(b.names, "."), text, err)
	}
}

// The first and the last time that JSON can write.
var earliest, latest = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

func (b *back) time(micros int64) time.Time {
	at := time.UnixMicro(micros).UTC()
	if at.Before(earliest) || at.After(latest) {
		b.bad("a time is %d microseconds after 1970 (want the years 0 to 9999)", micros)
	}
	return at
}

func (b *back) duration(micros int64) time.Duration {
	if micros > math.MaxInt64/1000 || micros < math.MinInt64/1000 {
		b.bad("a duration is %d microseconds (want at most %d)", micros, math.MaxInt64/1000)
		return 0
	}
	return time.Duration(micros) * time.Microsecond
}

func entries(list []Pair) map[string]string {
	m := make(map[string]string, len(list))
	for _, pair := range list {
		m[pair.Key] = pair.Value
	}
	return m
}
