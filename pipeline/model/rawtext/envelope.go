package rawtext

import "strings"

// envelope is {"name": ..., "arguments": {...}} as most formats have it, with its parts in any order.
type envelope struct {
	id, name  string
	arguments string
	start     int // of the arguments
	state     state
	has       bool // arguments
	other     bool // members that a call has not
}

// readEnvelope reads the object at text[at:]. "parameters" is what Llama calls the arguments, and some models wrap it
// all into a "function" as the API does.
func readEnvelope(text string, at int) (e envelope, end int, st state) {
	end, st = e.read(text, at, 0)
	return e, end, st
}

func (e *envelope) read(text string, at, depth int) (int, state) {
	return members(text, at, func(key string, start, end int, st state) {
		key = unquote(key)
		value := text[start:end]
		isText := st == isWhole && (value[0] == '"' || value[0] == '\'')
		switch {
		case (key == "name" || key == "tool_name") && isText: // the latter is Cohere's
			e.name = strings.TrimSpace(unquote(value))
		case key == "function" && isText:
			e.name = strings.TrimSpace(unquote(value))
		case key == "function" && isObject(value) && depth == 0:
			e.read(text, start, depth+1)
		case key == "arguments", key == "parameters" && !e.has:
			e.has, e.start, e.state, e.arguments = true, start, st, value
		case key == "id" && isText:
			e.id = unquote(value)
		case key == "type", key == "index", key == "id", key == "tool_call_id":
		default:
			e.other = true
		}
	})
}

// call makes a call of the envelope that ended like that. limit is where an envelope that is not whole ends by its tags.
func (e *envelope) call(text string, st state, limit int) (call Call, problem string, ok bool) {
	call = Call{Name: e.name}
	if len(e.id) <= 128 {
		call.ID = e.id
	}
	switch {
	case !goodName(e.name):
		return call, "", false
	case !e.has:
		call.Arguments = "{}"
		return call, noArguments, st == isWhole && !e.other
	case e.state == isCut:
		call.Arguments, call.Cut = strings.TrimSpace(text[e.start:limit]), true
		return call, truncated, call.Arguments != ""
	case e.state == isBroken:
		call.Arguments = withoutBrace(strings.TrimSpace(text[e.start:max(limit, e.start)]))
		return call, broken, call.Arguments != ""
	}
	call.Arguments = e.arguments
	if st != isWhole {
		problem = unclosed
	}
	switch {
	case e.arguments == "null":
		call.Arguments, problem = "{}", noArguments
	case e.arguments[0] == '"':
		if inner := unquote(e.arguments); isObject(strings.TrimSpace(inner)) {
			call.Arguments, problem = inner, quotedObject
		}
	}
	return call, problem, true
}

// objectCall reads the arguments of a call that has them as one object. Where that is broken, limit tells from there on
// where the call ends.
func (w *walker) objectCall(call Call, at int, closer string, limit func(from int) int) (end int) {
	end, st := jsonValue(w.text, at)
	problem := ""
	switch st {
	case isCut:
		call.Cut, problem = true, truncated
	case isBroken:
		end, problem = limit(end), broken
	}
	call.Arguments = strings.TrimSpace(w.text[at:end])
	w.add(call, problem)
	end, _ = closed(w.text, end, closer)
	return end
}

// withoutBrace takes the brace off that closes the envelope, if there are enough of them.
func withoutBrace(arguments string) string {
	if inner, ok := strings.CutSuffix(arguments, "}"); ok && strings.HasSuffix(strings.TrimSpace(inner), "}") {
		return strings.TrimSpace(inner)
	}
	return arguments
}
