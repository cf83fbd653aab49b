package harbor

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v3"
)

//go:embed task.yaml
var taskSchema []byte

var schema = sync.OnceValue(func() *jsonschema.Schema {
	var document any
	if err := yaml.Unmarshal(taskSchema, &document); err != nil {
		panic(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(configName, document); err != nil {
		panic(err)
	}
	return compiler.MustCompile(configName)
})

// decode reads task.toml, as far as its values are those of the schema, and reports those that are not.
func (c *config) decode(t *task) {
	if err := toml.Unmarshal([]byte(t.text(configName)), &c.whole); err != nil {
		t.wrongf("%s: %v", configName, err)
		return
	}
	if wrong, ok := errors.AsType[*jsonschema.ValidationError](schema().Validate(c.whole)); ok {
		c.invalid(t, wrong)
	}
	data, _ := json.Marshal(c.whole) // what JSON has no word for is reported with the row
	_ = json.Unmarshal(data, c)      // what has the wrong type was reported
}

// invalid reports what is wrong within task.toml, in the words of the schema.
func (c *config) invalid(t *task, wrong *jsonschema.ValidationError) {
	s, value, at := schema(), any(c.whole), ""
	for _, key := range wrong.InstanceLocation {
		switch v := value.(type) {
		case map[string]any:
			value, at = v[key], strings.TrimPrefix(at+"."+key, ".")
			s = property(s, key)
		case []any:
			i, _ := strconv.Atoi(key)
			value, at = v[i], fmt.Sprintf("%s[%s]", at, key)
			s = s.Items2020
		}
	}
	switch is := wrong.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference:
		for _, cause := range wrong.Causes {
			c.invalid(t, cause)
		}
	case *kind.AdditionalProperties:
		for _, key := range is.Properties {
			if s.PatternProperties != nil {
				t.wrongf("%s: %s.%s: %s", configName, at, key, s.Description)
				continue
			}
			t.wrongf("%s: %s: it is not known here (have %s)",
				configName, strings.TrimPrefix(at+"."+key, "."), strings.Join(sortedNames(s.Properties), ", "))
		}
	default:
		if text, is := value.(string); is {
			value = strconv.Quote(text)
		}
		t.wrongf("%s: %s: %v, %s", configName, at, value, s.Description)
	}
}

// property is the schema of a key.
func property(s *jsonschema.Schema, key string) *jsonschema.Schema {
	if s.Properties[key] != nil {
		return s.Properties[key]
	}
	for _, each := range s.PatternProperties {
		return each
	}
	return s
}
