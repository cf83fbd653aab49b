package sessions

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"trajgen/pipeline/episode"
	"trajgen/tools/internal/chars"
)

// Bounds of what is kept and shown, in characters.
const (
	maxTitle   = 80
	maxEdge    = 300    // of the first question and of the last answer
	maxIndexed = 20_000 // of one message
	maxShown   = 1500   // of one message in a result
	maxQuery   = 1000
	maxTerms   = 32
)

// spoken returns a message as it is indexed and shown: its text, and a line for each call. Reasoning is left out.
func spoken(message episode.Message) string {
	var text strings.Builder
	text.WriteString(message.Content)
	for _, call := range message.Calls {
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		text.WriteString("→ " + call.Name + " " + call.Arguments)
	}
	return chars.First(text.String(), maxIndexed, "…")
}

// shown reports whether a message is a session's own: not the system prompt, nor text of the harness, such as the same examples
// in every session.
func shown(message episode.Message) bool { return message.Role != "system" && !message.Harness }

func firstUser(messages []episode.Message) string {
	for _, message := range messages {
		if message.Role == "user" && shown(message) {
			return message.Content
		}
	}
	return ""
}

// title returns the first line of the question.
func title(opening string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(opening), "\n")
	return chars.First(strings.TrimSpace(line), maxTitle, "…")
}

func shownCount(messages []episode.Message) int {
	n := 0
	for _, message := range messages {
		if shown(message) {
			n++
		}
	}
	return n
}

var ordinal = regexp.MustCompile(`#[0-9]+$`)

// baseTask returns a task's id without the ordinal that distinguishes rows with one id.
func baseTask(id string) string { return ordinal.ReplaceAllString(id, "") }

// expression turns a model's query into one for FTS5 that is always valid: words and "phrases", word* for a prefix, AND, OR and
// NOT between them. A NOT before the first word applies to all that follow; such a query matches nothing without other words.
// simple says that it has words only; loose then matches any of them.
func expression(query string) (strict, loose string, simple bool) {
	var parts, words, without []string
	operator, pending := "", false
	simple = true
	for _, term := range terms(query) {
		switch term {
		case "AND", "OR", "NOT":
			operator, pending, simple = term, true, false
			continue
		}
		quoted, prefix := strings.HasPrefix(term, `"`), strings.HasSuffix(term, "*")
		bare := strings.Trim(term, `"*`)
		if !strings.ContainsFunc(bare, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			continue
		}
		if len(words)+len(without) == maxTerms {
			break
		}
		word := `"` + strings.ReplaceAll(bare, `"`, ``) + `"`
		if prefix && !quoted {
			word += "*"
		}
		simple = simple && !quoted
		if len(parts) == 0 && pending && operator == "NOT" {
			without, pending = append(without, word), false
			continue
		}
		if len(parts) > 0 {
			if !pending {
				operator = "AND"
			}
			parts = append(parts, operator)
		}
		pending = false
		parts, words = append(parts, word), append(words, word)
	}
	strict = strings.Join(parts, " ")
	if len(parts) > 0 && len(without) > 0 {
		strict = "(" + strict + ") NOT (" + strings.Join(without, " OR ") + ")"
	}
	return strict, strings.Join(words, " OR "), simple && len(words) > 1
}

// terms splits a query at white space outside of quotes.
func terms(query string) []string {
	query = strings.ToValidUTF8(strings.ReplaceAll(query, "\x00", " "), " ")
	var list []string
	for query = strings.TrimSpace(chars.First(query, maxQuery, "…")); query != ""; query = strings.TrimSpace(query) {
		if query[0] == '"' {
			if end := strings.IndexByte(query[1:], '"'); end >= 0 {
				list = append(list, query[:end+2])
				query = query[end+2:]
				continue
			}
		}
		end := strings.IndexFunc(query, unicode.IsSpace)
		if end < 0 {
			end = len(query)
		}
		_, first := utf8.DecodeRuneInString(query)
		end = max(end, first)
		list = append(list, query[:end])
		query = query[end:]
	}
	return list
}
