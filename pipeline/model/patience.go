package model

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"trajgen/pipeline/episode"
)

// text decodes a JSON string; it returns "" for anything else.
func text(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	var s string
	json.Unmarshal(raw, &s) // stays empty if this fails
	return s
}

// argumentText is the arguments as a JSON string. An object instead of a string becomes the text of its bytes.
func argumentText(raw json.RawMessage) json.RawMessage {
	if !present(raw) || raw[0] == '"' {
		return raw
	}
	return episode.MustJSON(string(raw))
}

// contentPart is a part of a content that is a list.
type contentPart struct {
	Type     json.RawMessage `json:"type"`
	Text     json.RawMessage `json:"text"`
	Thinking json.RawMessage `json:"thinking"` // a text, or a list of parts
}

func contentParts(raw json.RawMessage) (parts []contentPart) {
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &parts) != nil {
		return nil
	}
	return parts
}

// problem is an error body of any known shape.
type problem struct {
	Message    string
	Type       string
	Code       string
	State      string // Google's name of the error
	RetryDelay string // Google's, such as 17s
	Reset      string // when a rate limit resets
}

// status is the HTTP status that the code stands for, or 0.
func (p problem) status() int {
	n, err := strconv.Atoi(p.Code)
	if err != nil || n < 400 || n > 599 {
		return 0
	}
	return n
}

// parseProblem reads {"error":{...}}, {"error":"..."}, {"message":...}, {"detail":...}, or a list of one of these. Of a body
// that is not JSON it takes the start.
func parseProblem(body []byte) problem {
	p := parseNested(body, 0)
	if found := resetAt.FindSubmatch(body); found != nil {
		p.Reset = string(found[1])
	}
	return p
}

// resetAt finds the rate limit's header that OpenRouter puts in the body, also where a gateway wraps the body in a string.
var resetAt = regexp.MustCompile(`(?i)x-ratelimit-reset\\*"\s*:\s*\\*"?(\d+)`)

// deepest bounds how many errors within the message of an error are parsed.
const deepest = 2

func parseNested(body []byte, nested int) problem {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 { // Google
		body = list[0]
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		s := strings.TrimSpace(string(body))
		if s == "" {
			return problem{}
		}
		return problem{Message: "answer is not JSON: " + excerpt(body)}
	}
	if inner, ok := fields["error"]; ok && present(inner) {
		if inner[0] == '{' {
			fields = nil
			json.Unmarshal(inner, &fields)
		} else if s := text(inner); s != "" && fields["message"] == nil {
			return problem{Message: s}
		}
	}
	p := problem{Type: cmp.Or(text(fields["type"]), text(fields["__type"])), Code: scalar(fields["code"])}
	for _, name := range []string{"message", "detail", "msg", "title"} {
		if raw := fields[name]; p.Message == "" && present(raw) {
			p.Message = scalar(raw)
			if p.Message == "" {
				p.Message = string(raw) // FastAPI's detail is a list
			}
		}
	}
	if p.Message == "" {
		p.Message = excerpt(body)
	}
	for _, s := range servers {
		if s.problem != nil {
			s.problem(&p, fields)
		}
	}
	if inner := strings.TrimSpace(p.Message); strings.HasPrefix(inner, "{") && json.Valid([]byte(inner)) && nested < deepest {
		if said := parseNested([]byte(inner), nested+1); said.Message != "" { // a gateway wraps the server's error
			said.Code = cmp.Or(said.Code, p.Code)
			return said
		}
	}
	return p
}

// scalar is a string without its quotes, or a number as it was written.
func scalar(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] == '[' || raw[0] == '{' || string(raw) == "null" {
		return ""
	}
	if raw[0] == '"' {
		return text(raw)
	}
	return string(raw)
}
