package datasets

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"trajgen/pipeline/episode"
)

// memory takes the agent's memory from earlier sessions: {"memory": [...], "user": [...]}, either of them also as one text whose
// entries are separated by lines with a section sign.
func (d *decoder) memory(field string, value json.RawMessage) {
	memory := &episode.Memory{}
	d.entries(field, value, "with memory, user", func(at string, entry member) error {
		switch entry.name {
		case "memory":
			memory.Memory = d.notes(at, entry.value, episode.MaxMemory)
		case "user":
			memory.User = d.notes(at, entry.value, episode.MaxUserMemory)
		default:
			return errors.New("unknown key (have memory, user)")
		}
		return nil
	})
	if len(memory.Memory)+len(memory.User) > 0 {
		d.task.Memory = memory
	}
}

// notes takes a list of entries within its limit. Duplicates count once.
func (d *decoder) notes(at string, value json.RawMessage, limit int) []string {
	value = structured(value)
	var texts []string
	if text, ok := asString(value); ok {
		texts = strings.Split(strings.TrimSpace(text), episode.MemorySeparator)
	} else {
		items, err := elements(value)
		if err != nil {
			d.wrong.addf("%s: %s, want a list of strings", at, kindOf(value))
			return nil
		}
		for i, item := range items {
			text, ok := d.text(fmt.Sprintf("%s[%d]", at, i), item)
			if ok {
				texts = append(texts, text)
			}
		}
	}
	var notes []string
	for _, text := range texts {
		text = strings.TrimSpace(text)
		switch {
		case text == "":
			d.wrong.addf("%s: an entry is empty", at)
		case slices.Contains(strings.Split(text, "\n"), "§"):
			d.wrong.addf("%s: an entry has a line with nothing but §, which separates entries", at)
		case !slices.Contains(notes, text):
			notes = append(notes, text)
		}
	}
	if size := utf8.RuneCountInString(strings.Join(notes, episode.MemorySeparator)); size > limit {
		d.wrong.addf("%s: %d characters, over the limit of %d", at, size, limit)
	}
	return notes
}

// user takes the user that answers the agent's questions: {"answers": [{"match": ..., "answer": ...}], "default": ...} or
// {"model": true, "persona": ...}; scripted answers come before a model's.
func (d *decoder) user(field string, value json.RawMessage) {
	user := &episode.User{}
	is := d.entries(field, value, "with answers, default, or with model, persona", func(at string, entry member) error {
		switch entry.name {
		case "answers":
			user.Answers = d.answers(at, entry.value)
		case "default":
			user.Default, _ = d.text(at, entry.value)
		case "model":
			if err := json.Unmarshal(entry.value, &user.Model); err != nil {
				return fmt.Errorf("%s, want true or false; which model it is says user: {model: NAME} in the run file", kindOf(entry.value))
			}
		case "persona":
			user.Persona, _ = d.text(at, entry.value)
		default:
			return errors.New("unknown key (have answers, default, model, persona)")
		}
		return nil
	})
	switch {
	case !is:
		return
	case user.Persona != "" && !user.Model:
		d.wrong.addf("%s: persona goes with model: true", field)
	case user.Default != "" && user.Model:
		d.wrong.addf("%s: default is never said, as the model answers whatever no answer matches; leave one out", field)
	case !user.Model && len(user.Answers) == 0 && user.Default == "":
		d.wrong.addf("%s: it answers nothing, want answers, default or model", field)
	}
	d.task.User = user
}

func (d *decoder) answers(at string, value json.RawMessage) []episode.UserAnswer {
	items, err := elements(structured(value))
	if err != nil {
		d.wrong.addf(`%s: %s, want a list of {"match": ..., "answer": ...}`, at, kindOf(value))
		return nil
	}
	var answers []episode.UserAnswer
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", at, i)
		entries, err := members(item)
		if err != nil {
			d.wrong.addf("%s: %v with match, answer", at, err)
			continue
		}
		var answer episode.UserAnswer
		for _, entry := range entries {
			switch entry.name {
			case "match":
				if answer.Match, err = expression(entry.value); err != nil {
					d.wrong.addf("%s.match: %v", at, err)
				}
			case "answer":
				answer.Answer, _ = d.text(at+".answer", entry.value)
			default:
				d.wrong.addf("%s.%s: unknown key (have match, answer)", at, entry.name)
			}
		}
		if answer.Match == "" || strings.TrimSpace(answer.Answer) == "" {
			d.wrong.addf("%s: want both match, a regular expression, and answer", at)
		}
		answers = append(answers, answer)
	}
	return answers
}
