package datasets

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed bundled/*.yaml bundled/guard.py
var bundled embed.FS

// bundledRows reads the bundled files in the order of their names.
func bundledRows(yield func(row) bool) error {
	names, err := fs.Glob(bundled, "bundled/*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := bundled.ReadFile(name)
		if err != nil {
			return err
		}
		going := true
		err = yamlRows(data, func(r row) bool {
			r.file = name
			if bytes.Contains(r.text, []byte(importsGuard)) {
				guarded, err := withGuard(r.text)
				if r.text = guarded; err != nil {
					r.broken = err.Error()
				}
			}
			going = yield(r)
			return going
		})
		if err != nil || !going {
			return err
		}
	}
	return nil
}

const importsGuard = "from guard import "

// withGuard gives /tests/guard.py (bundled/guard.py) to each check of a task that has a file /tests/*.py which imports it. The
// module runs the agent's code in a process apart from the check's, for many tasks; none has to carry it along.
func withGuard(task json.RawMessage) (json.RawMessage, error) {
	guard, err := bundled.ReadFile("bundled/guard.py")
	if err != nil {
		return nil, fmt.Errorf("read the bundled tasks: %w", err)
	}
	decoded, err := decodeAny(task)
	if err != nil {
		return nil, fmt.Errorf("read a bundled task: %w", err)
	}
	fields := decoded.(map[string]any) // as every row is
	checks, several := fields["verify"].([]any)
	if !several {
		checks = []any{fields["verify"]}
	}
	for _, check := range checks {
		tests, _ := check.(map[string]any)["tests"].(map[string]any)
		for name, text := range tests {
			text, _ := text.(string)
			if strings.HasPrefix(name, "/tests/") && strings.HasSuffix(name, ".py") && strings.Contains(text, importsGuard) {
				tests["/tests/guard.py"] = string(guard)
				break
			}
		}
	}
	return encode(fields)
}

// bundledDigest covers names and contents, with their lengths, so that different sets of files have different digests.
func bundledDigest(context.Context) (string, error) {
	names, err := fs.Glob(bundled, "bundled/*")
	if err != nil {
		return "", fmt.Errorf("list the bundled tasks: %w", err)
	}
	sum := sha256.New()
	for _, name := range names {
		data, err := bundled.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("read the bundled tasks: %w", err)
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(data))
		sum.Write(data)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
