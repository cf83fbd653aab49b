package datasets

import (
	"bytes"
	"encoding/json"
	"fmt"

	"trajgen/pipeline/episode"
)

// A brief decoder does not read what is plainly a text that says something: it puts saidSomething in its place. Whoever
// surveys a dataset has no use for the texts, and they are most of it. It does not judge either: a row in which it finds
// anything wrong is decoded whole, for the true words.

// saidSomething stands for a text that is not blank.
const saidSomething = "something"

// skim decodes a row briefly. False: decode it whole. What task holds is overwritten.
func (d *decoder) skim(task *episode.Task, fields, metadata []member) bool {
	*task = episode.Task{Prompt: again(task.Prompt), Verify: again(task.Verify)}
	d.task, d.brief, d.wrong = task, true, nil
	d.decode(fields, metadata)
	return len(d.wrong) == 0
}

// plainWords says whether a value is a string that begins with what is no white space, and has no NUL.
func plainWords(value json.RawMessage) bool {
	return len(value) > 2 && value[0] == '"' && value[1] > ' ' && value[1] < 0x7f && value[1] != '\\' && value[1] != '"' &&
		!bytes.Contains(value, []byte(`\u0000`))
}

// words takes a string.
func (d *decoder) words(value json.RawMessage) (string, bool) {
	if d.brief && plainWords(value) {
		return saidSomething, true
	}
	return asString(value)
}

// prose takes a string without NUL.
func (d *decoder) prose(field string, value json.RawMessage) (string, bool) {
	if d.brief && plainWords(value) {
		return saidSomething, true
	}
	return d.text(field, value)
}

// answer takes a string or a number.
func (d *decoder) answer(value json.RawMessage) (string, error) {
	if d.brief && plainWords(value) {
		return saidSomething, nil
	}
	return asText(value)
}

// item names an item of a list for what is wrong with it, which nobody hears of a brief decoder.
func (d *decoder) item(field string, i int) string {
	if d.brief {
		return ""
	}
	return fmt.Sprintf("%s[%d]", field, i)
}
