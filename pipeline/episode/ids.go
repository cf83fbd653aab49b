package episode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// IDs are token ids.
type IDs []int32

// MaxIDs bounds one list of ids, far above every model's context.
const MaxIDs = 1 << 22

// MarshalJSON writes a list of numbers. Compressed, that is a fifth smaller than the same ids as base64.
func (ids IDs) MarshalJSON() ([]byte, error) { return json.Marshal(append([]int32{}, ids...)) }

// UnmarshalJSON reads a list of whole numbers from 0 to 2^31-1, or null. Every other number is an error.
func (ids *IDs) UnmarshalJSON(data []byte) error {
	var list []int32
	err := json.Unmarshal(data, &list)
	switch {
	case err != nil, list != nil && bytes.ContainsAny(data, "-n"): // encoding/json reads a null in a list as 0
		*ids = nil
		return fmt.Errorf("not a list of whole numbers from 0 to %d: %.40s", math.MaxInt32, data)
	case len(list) > MaxIDs:
		return fmt.Errorf("more than %d token ids", MaxIDs)
	}
	*ids = list
	return nil
}
