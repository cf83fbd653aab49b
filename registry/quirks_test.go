package registry_test

import (
	"slices"
	"testing"

	"trajgen/registry"
)

func TestQuirksFor(t *testing.T) {
	tests := []struct {
		say  string
		want registry.Quirks
	}{
		{"Failed to parse grammar", registry.Quirks{registry.QuirkFormat, registry.QuirkPattern}},
		{`JSON schema conversion failed: Pattern must start with '^' and end with '$'`, registry.Quirks{registry.QuirkPattern}},
		{`Invalid schema for function 'f': 'uri' is not a valid value of 'format'.`, registry.Quirks{registry.QuirkFormat}},
		{`Invalid JSON payload received. Unknown name "const" at 'tools[0].function_declarations[0].parameters'`, registry.Quirks{registry.QuirkKeywords}},
		{`tools[0].parameters.properties[x].enum: only allowed for STRING type`, registry.Quirks{registry.QuirkKeywords, registry.QuirkSlashEnums}},
		{`tools.function.parameters is not a valid schema: when using anyOf, type should be defined in anyOf items instead of the parent schema`,
			registry.Quirks{registry.QuirkUnionTypes}},
		{`function parameters: oneOf is not supported`, registry.Quirks{registry.QuirkUnions}},
		{`schema: $ref cannot be resolved`, registry.Quirks{registry.QuirkRefs}},
		{`Invalid schema`, registry.Quirks{registry.QuirkFormat, registry.QuirkPattern, registry.QuirkSlashEnums}},

		{`messages with role 'tool' must follow a message with 'tool_calls'`, nil},
		{`temperature: must be below 2`, nil},
		{`unsupported format of the image`, nil},
		{`this model does not support tools`, nil},
		{``, nil},
	}
	for _, tt := range tests {
		got := registry.QuirksFor(tt.say)
		if !slices.Equal(got, tt.want) || got.Validate() != nil {
			t.Errorf("QuirksFor(%q) = %q, want %q", tt.say, got, tt.want)
		}
	}
}
