package episode

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// File is a file's content.
type File []byte

// MarshalJSON writes text as a string and anything else as {"base64": "..."}.
func (f File) MarshalJSON() ([]byte, error) {
	if utf8.Valid(f) {
		return json.Marshal(string(f))
	}
	return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString(f)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *File) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		*f = File(text)
		return nil
	}
	var encoded struct {
		Base64 *string `json:"base64"`
	}
	if err := json.Unmarshal(data, &encoded); err != nil || encoded.Base64 == nil {
		return fmt.Errorf(`file content must be a string or {"base64": "..."}`)
	}
	raw, err := base64.StdEncoding.DecodeString(*encoded.Base64)
	if err != nil {
		return fmt.Errorf("base64 file content: %w", err)
	}
	*f = raw
	return nil
}
