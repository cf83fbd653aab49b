package registry

import "encoding/json"

// Coerce exposes what becomes of a model's arguments: those that the tool gets, what was mended, and how much is wrong.
func Coerce(t Tool, raw string) (given json.RawMessage, coerced []string, problems int) {
	args, wrong := t.plan().parse(raw)
	return args.given, args.coerced, len(wrong)
}
