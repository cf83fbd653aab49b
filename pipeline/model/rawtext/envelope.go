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

// read reads the object at text[at:]. "parameters" is what Llama calls the arguments, and some models wrap it all into a
// "function" as the API does.
func (e *envelope) read(text string, at, depth int) (end int, st state) {
	return collection(text, at, 1, func(key string, start, end int, st state) {
		key = unquote(key)
		value := text[start:end]
		isText := st == isWhole && (value[0] == '"' || value[0] == '\'')
		switch {
		case (key == "name" || key == "tool_name" || key == "function") && isText: // the second is Cohere's
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

// envelope adds the call of an envelope that ended like that, and says whether it is one. limit is where an envelope that
// is not whole ends by its tags.
func (w *walker) envelope(e envelope, st state, limit int) bool {
	call, problem := Call{Name: e.name, Arguments: e.arguments}, ""
	if len(e.id) <= 128 {
		call.ID = e.id
	}
	switch {
	case !goodName(e.name), !e.has && (st != isWhole || e.other):
		return false
	case !e.has, e.state == isWhole && e.arguments == "null":
		call.Arguments, problem = "{}", noArguments
	case e.state == isCut:
		call.Arguments, call.Cut, problem = strings.TrimSpace(w.text[e.start:limit]), true, truncated
	case e.state == isBroken:
		call.Arguments, problem = withoutBrace(strings.TrimSpace(w.text[e.start:max(limit, e.start)])), broken
	default:
		if st != isWhole {
			problem = unclosed
		}
		if e.arguments[0] == '"' && isObject(strings.TrimSpace(unquote(e.arguments))) {
			call.Arguments, problem = unquote(e.arguments), quotedObject
		}
	}
	if call.Arguments == "" {
		return false
	}
	w.add(call, problem)
	return true
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
