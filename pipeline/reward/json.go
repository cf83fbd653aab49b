package reward

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

var jsonKind = kind{
	keys:   []string{"json"},
	given:  func(check episode.Check) bool { return check.JSON != nil },
	read:   readJSON,
	verify: verifyJSON,
}

var jsonKeys = []string{"equal", "file", "schema"}

// readJSON takes {"schema": ..., "equal": {PLACE: VALUE}, "file": PATH}.
func readJSON(check *episode.Check, _ string, value Value) error {
	check.JSON = &episode.JSONCheck{}
	var given map[string]json.RawMessage
	if json.Unmarshal(value.JSON(), &given) != nil {
		return fmt.Errorf("want an object with %s", strings.Join(jsonKeys, ", "))
	}
	for key := range given {
		if !slices.Contains(jsonKeys, key) {
			return unknown("key", key, jsonKeys)
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, value.JSON()); err != nil {
		return err
	}
	if err := json.Unmarshal(compact.Bytes(), check.JSON); err != nil {
		return fmt.Errorf("%w; want a path in file, a JSON Schema in schema, and an object of places and values in equal", err)
	}
	if len(check.JSON.Schema) == 0 && len(check.JSON.Equal) == 0 {
		return errors.New("it needs a schema, or places and values in equal")
	}
	if file := check.JSON.File; file != "" && (path.IsAbs(file) || !fs.ValidPath(path.Clean(file)) || path.Clean(file) == ".") {
		return fmt.Errorf("file: %q, want a path below the working directory", file)
	}
	_, err := schemaOf(check.JSON)
	return err
}

// verifyJSON judges the JSON value in the answer, or in a file that the agent left.
func verifyJSON(ctx context.Context, check episode.Check, subject Subject) (judgement, error) {
	want := check.JSON
	schema, err := schemaOf(want)
	if err != nil {
		return judgement{}, &Broken{Class: "spec", Message: "verify: " + err.Error()}
	}
	in, find, text := "the answer", jsonIn, subject.Answer
	if want.File != "" {
		in, find = want.File, parseJSON
		if text, err = readLeft(ctx, want.File, subject); err != nil {
			var missing *fs.PathError
			if errors.As(err, &missing) && !errors.Is(err, sandbox.ErrGone) && ctx.Err() == nil {
				return judgement{detail: err.Error()}, nil
			}
			return judgement{}, late(ctx, readTime, err)
		}
	}
	value, err := find(text)
	if err == nil && schema != nil {
		err = schema.Validate(value)
	}
	for _, place := range slices.Sorted(maps.Keys(want.Equal)) {
		if err == nil {
			err = equalAt(value, place, want.Equal[place])
		}
	}
	if err != nil {
		return judgement{detail: fmt.Sprintf("%s: %s", in, clip(strings.ReplaceAll(err.Error(), "\n", " ")))}, nil
	}
	return judgement{value: 1, detail: "the JSON of " + in + " is as it should be"}, nil
}

// schemaOf compiles the schema of a check; nil where it has none. A schema cannot refer to files of this machine.
func schemaOf(check *episode.JSONCheck) (*jsonschema.Schema, error) {
	if len(check.Schema) == 0 {
		return nil, nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(check.Schema))
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	const name = "mem:///schema.json"
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noFiles{})
	if err = compiler.AddResource(name, document); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	schema, err := compiler.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return schema, nil
}

type noFiles struct{}

func (noFiles) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %s, outside itself", url)
}

const mostJSON = 16 << 20 // bytes of a file

// readLeft reads a file that the agent left, after its processes ended.
func readLeft(ctx context.Context, name string, subject Subject) (string, error) {
	sb, err := subject.Sandbox(ctx)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if err := sb.KillAll(ctx); err != nil {
		return "", fmt.Errorf("end the agent's processes: %w", err)
	}
	data, _, err := sb.Files().Read(ctx, path.Join(sb.Layout().Workdir, name), 0, mostJSON+1)
	if err == nil && len(data) > mostJSON {
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("more than %d MiB", mostJSON>>20)}
	}
	return string(data), err
}
