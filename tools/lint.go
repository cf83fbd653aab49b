package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lint is the check of a written file's syntax. Nil is a file that is not checked.
type lint struct {
	Status  string `json:"status"` // ok or error
	Message string `json:"message,omitempty"`
}

// maxLint is the size up to which a file is checked.
const maxLint = 1 << 20

func lintFile(name string, data []byte) *lint {
	var check func([]byte) error
	switch strings.ToLower(path.Ext(name)) {
	case ".json":
		check = checkJSON
	case ".yaml", ".yml":
		check = checkYAML
	}
	if check == nil || len(data) > maxLint {
		return nil
	}
	if err := check(bytes.TrimPrefix(data, []byte(byteOrderMark))); err != nil {
		return &lint{Status: "error", Message: err.Error()}
	}
	return &lint{Status: "ok"}
}

func checkJSON(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("the file is empty")
	}
	var value json.RawMessage
	err := json.Unmarshal(data, &value)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := data[:max(0, min(int(syntax.Offset)-1, len(data)))]
		line := bytes.Count(before, []byte("\n")) + 1
		column := len(before) - bytes.LastIndexByte(before, '\n')
		return fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	return err
}

// checkYAML reads every document as nodes, which expands no aliases.
func checkYAML(data []byte) (err error) {
	defer func() {
		if r := recover(); r != nil { // the parser has panicked on odd input before
			err = fmt.Errorf("not valid YAML: %v", r)
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
