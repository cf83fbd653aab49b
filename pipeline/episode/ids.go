package episode

import (
	"errors"
	"fmt"
	"strconv"
)

// IDs are token ids. A prompt has tens of thousands, so they are read and written without a detour through values of
// type any.
type IDs []int32

// MaxIDs bounds one list of ids, far above every model's context.
const MaxIDs = 1 << 22

// MarshalJSON writes a list of numbers. Compressed, that is a fifth smaller than the same ids as base64.
func (ids IDs) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 6*len(ids)+2), '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return append(b, ']'), nil
}

// UnmarshalJSON reads a list of whole numbers from 0 to 2^31-1, or null. Every other number is an error.
func (ids *IDs) UnmarshalJSON(data []byte) error {
	*ids = nil
	rest := skipSpace(data)
	if string(rest) == "null" {
		return nil
	}
	if len(rest) == 0 || rest[0] != '[' {
		return errors.New("token ids are no list")
	}
	rest = skipSpace(rest[1:])
	if len(rest) > 0 && rest[0] == ']' {
		*ids = IDs{}
		return nil
	}
	list := make(IDs, 0, min(len(rest)/5, 1<<16))
	for {
		id, after, err := readID(rest)
		if err != nil {
			return err
		}
		if len(list) == MaxIDs {
			return fmt.Errorf("more than %d token ids", MaxIDs)
		}
		list = append(list, id)
		rest = skipSpace(after)
		if len(rest) == 0 || rest[0] != ',' && rest[0] != ']' {
			return notID(list, rest)
		}
		if rest[0] == ']' {
			*ids = list
			return nil
		}
		rest = skipSpace(rest[1:])
	}
}

// readID reads the number at the start of data.
func readID(data []byte) (id int32, rest []byte, err error) {
	var n int64
	digits := 0
	for digits < len(data) && data[digits] >= '0' && data[digits] <= '9' {
		if n = 10*n + int64(data[digits]-'0'); n > 1<<31-1 {
			return 0, nil, fmt.Errorf("a token id is over %d", 1<<31-1)
		}
		digits++
	}
	if digits == 0 {
		return 0, nil, notID(nil, data)
	}
	return int32(n), data[digits:], nil
}

// notID is the error about the text in place of an id.
func notID(before IDs, data []byte) error {
	found := data[:min(len(data), 12)]
	if len(before) > 0 {
		return fmt.Errorf("behind token id %d stands %q (want whole numbers)", before[len(before)-1], found)
	}
	return fmt.Errorf("%q is no token id (want whole numbers)", found)
}

func skipSpace(data []byte) []byte {
	for len(data) > 0 && (data[0] == ' ' || data[0] == '\n' || data[0] == '\r' || data[0] == '\t') {
		data = data[1:]
	}
	return data
}
