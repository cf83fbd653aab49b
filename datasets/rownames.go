package datasets

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"trajgen/pipeline/episode"
)

// RowNames are the names that a condition on tasks can use, each with an example. A condition can also use the keys of the metadata,
// which are nil in rows without them, if another row has them; metadata has all keys. A missing field is an empty text or list.
func RowNames() map[string]any {
	return map[string]any{
		"id": "", "row": 0, "prompt": "", "system": "", "setup": "", "image": "", "cwd": "", "network": "", "distribution": "", "difficulty": "",
		"tags": []string{}, "toolsets": []string{}, "files": []string{}, "metadata": map[string]any{},
	}
}

// RowValues are those names' values for one task.
func RowValues(task *episode.Task) map[string]any {
	var asked []string
	for _, message := range task.Prompt {
		if message.Role == "user" {
			asked = append(asked, message.Content)
		}
	}
	metadata := map[string]any{}
	if len(task.Metadata) > 0 {
		metadata, _ = plainNumbers(decodeAny(task.Metadata)).(map[string]any)
	}
	values := maps.Clone(metadata)
	maps.Copy(values, map[string]any{
		"id": task.ID, "row": task.Row, "prompt": strings.Join(asked, "\n"), "system": task.System, "setup": task.Setup, "image": task.Image,
		"cwd": task.Cwd, "network": task.Network, "distribution": task.Distribution, "difficulty": task.Difficulty,
		"tags": append([]string{}, task.Tags...), "toolsets": append([]string{}, task.Toolsets...),
		"files": slices.Sorted(maps.Keys(task.Files)), "metadata": metadata,
	})
	return values
}

// plainNumbers converts numbers that were kept as text.
func plainNumbers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			value[name] = plainNumbers(inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = plainNumbers(inner)
		}
	case json.Number:
		if n, err := strconv.Atoi(value.String()); err == nil {
			return n
		}
		if f, err := value.Float64(); err == nil {
			return f
		}
		return value.String() // larger than any number that can be compared
	}
	return value
}

// stratumOf names the value of a field, by its name or by a path such as metadata.level. A row without the field has the
// stratum "".
func stratumOf(values map[string]any, field string) (string, bool) {
	value, ok := values[field]
	if !ok {
		var inner any = values
		for _, name := range strings.Split(field, ".") {
			object, isObject := inner.(map[string]any)
			if inner, ok = object[name]; !isObject || !ok {
				return "", false
			}
		}
		value = inner
	}
	if text, isText := value.(string); isText {
		return text, text != ""
	}
	encoded, err := episode.JSON(value)
	if err != nil || string(encoded) == "[]" || string(encoded) == "null" {
		return "", false
	}
	return string(encoded), true
}
