package datasets

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	pqformat "github.com/parquet-go/parquet-go/format"

	"trajgen/pipeline/episode"
)

// parquetScalar writes one value that is not null as JSON. It goes by the logical type, which also stands for the older
// converted types. What JSON has no form for becomes text: dates 2006-01-02, instants RFC 3339 in UTC, decimals plain numbers,
// bytes that are not UTF-8 {"base64": ...}, numbers that are not finite "NaN" and "Infinity".
func parquetScalar(logical any, v parquet.Value) (json.RawMessage, error) {
	switch logical := logical.(type) {
	case *pqformat.StringType, *pqformat.EnumType:
		return utf8Text(string(v.ByteArray()))
	case *pqformat.JsonType:
		if raw := v.ByteArray(); utf8.Valid(raw) && json.Valid(raw) {
			return bytes.Clone(raw), nil
		}
		return utf8Text(string(v.ByteArray())) // what is not JSON stays text
	case *pqformat.DecimalType:
		return decimalText(unscaled(v), int(logical.Scale))
	case *pqformat.DateType:
		return episode.JSON(time.Unix(int64(v.Int32())*86400, 0).UTC().Format(time.DateOnly))
	case *pqformat.TimeType:
		return encodeClock(integer(v), unitOf(logical.Unit))
	case *pqformat.TimestampType:
		return encodeInstant(integer(v), unitOf(logical.Unit))
	case *pqformat.IntType:
		if logical.IsSigned {
			break
		}
		if v.Kind() == parquet.Int32 {
			return episode.JSON(v.Uint32())
		}
		return episode.JSON(v.Uint64())
	case *pqformat.UUIDType:
		raw := v.ByteArray()
		if len(raw) != 16 {
			return nil, fmt.Errorf("a UUID of %d bytes", len(raw))
		}
		return episode.JSON(fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:]))
	}
	switch v.Kind() {
	case parquet.Boolean:
		return episode.JSON(v.Boolean())
	case parquet.Int32, parquet.Int64:
		return episode.JSON(integer(v))
	case parquet.Int96:
		return encodeInt96(v.Int96())
	case parquet.Float:
		return encodeFloat(float64(v.Float()), 32)
	case parquet.Double:
		return encodeFloat(v.Double(), 64)
	}
	// Bytes without a logical type are text more often than not: older writers do not say.
	return bytesOrText(v.ByteArray())
}

// unscaled is a decimal with every digit, without its point.
func unscaled(v parquet.Value) *big.Int {
	if kind := v.Kind(); kind == parquet.Int32 || kind == parquet.Int64 {
		return big.NewInt(integer(v))
	}
	raw := v.ByteArray() // two's complement, big-endian
	number := new(big.Int).SetBytes(raw)
	if len(raw) > 0 && raw[0]&0x80 != 0 {
		number.Sub(number, new(big.Int).Lsh(big.NewInt(1), uint(len(raw)*8)))
	}
	return number
}

func decimalText(unscaled *big.Int, scale int) (json.RawMessage, error) {
	if scale < 0 || scale > 1000 {
		return nil, fmt.Errorf("a decimal with scale %d", scale)
	}
	digits := new(big.Int).Abs(unscaled).String()
	if scale > 0 {
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if unscaled.Sign() < 0 {
		digits = "-" + digits
	}
	return json.RawMessage(digits), nil
}

func encodeFloat(number float64, bits int) (json.RawMessage, error) {
	switch {
	case math.IsNaN(number):
		return episode.JSON("NaN")
	case math.IsInf(number, 1):
		return episode.JSON("Infinity")
	case math.IsInf(number, -1):
		return episode.JSON("-Infinity")
	case bits == 32:
		return episode.JSON(float32(number)) // the shortest decimal that is this float32
	}
	return episode.JSON(number)
}

func encodeClock(count int64, unit time.Duration) (json.RawMessage, error) {
	if count < 0 || count > int64(24*time.Hour/unit) {
		return nil, fmt.Errorf("a time of day of %d times %s", count, unit)
	}
	return episode.JSON(time.Unix(0, 0).UTC().Add(time.Duration(count) * unit).Format("15:04:05.999999999"))
}

func encodeInstant(count int64, unit time.Duration) (json.RawMessage, error) {
	perSecond := int64(time.Second / unit)
	seconds, rest := count/perSecond, count%perSecond
	if rest < 0 {
		seconds, rest = seconds-1, rest+perSecond
	}
	return encodeTime(time.Unix(seconds, rest*int64(unit)).UTC())
}

func encodeTime(instant time.Time) (json.RawMessage, error) {
	if year := instant.Year(); year < 0 || year > 9999 {
		return nil, fmt.Errorf("a timestamp in the year %d", year)
	}
	return episode.JSON(instant.Format(time.RFC3339Nano))
}

// encodeInt96 reads the timestamps of old Spark and Impala: nanoseconds of a day, and the Julian day.
func encodeInt96(v deprecated.Int96) (json.RawMessage, error) {
	const julianDayOf1970 = 2440588
	var raw [8]byte
	binary.LittleEndian.PutUint32(raw[:4], v[0])
	binary.LittleEndian.PutUint32(raw[4:], v[1])
	days := int64(v[2]) - julianDayOf1970
	nanoseconds := int64(binary.LittleEndian.Uint64(raw[:]))
	return encodeTime(time.Unix(days*86400, nanoseconds).UTC())
}

func integer(v parquet.Value) int64 {
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

func unitOf(unit pqformat.TimeUnit) time.Duration {
	switch unit.Value.(type) {
	case *pqformat.MilliSeconds:
		return time.Millisecond
	case *pqformat.MicroSeconds:
		return time.Microsecond
	}
	return time.Nanosecond
}
