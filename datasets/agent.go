package datasets

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"trajgen/pipeline/episode"
)

var memoryKeys = keys[episode.Memory]{
	"memory": func(p *problems, m *episode.Memory, at string, value json.RawMessage) {
		m.Memory = notes(p, at, value, episode.MaxMemory)
	},
	"user": func(p *problems, m *episode.Memory, at string, value json.RawMessage) {
		m.User = notes(p, at, value, episode.MaxUserMemory)
	},
}

// readMemory takes the agent's memory from earlier sessions: {"memory": [...], "user": [...]}, either of them also as one text
// whose entries are separated by lines with a section sign.
func readMemory(p *problems, t *episode.Task, at string, value json.RawMessage) {
	memory := &episode.Memory{}
	memoryKeys.read(p, memory, at, value)
	if len(memory.Memory)+len(memory.User) > 0 {
		t.Memory = memory
	}
}

// notes takes a list of entries within its limit. Duplicates count once.
func notes(p *problems, at string, value json.RawMessage, limit int) []string {
	var texts []string
	if text, ok := asString(structured(value)); ok {
		texts = strings.Split(strings.TrimSpace(text), episode.MemorySeparator)
	} else {
		for i, entry := range p.list(at, value, "strings") {
			text, err := asPlain(entry)
			if err != nil {
				p.addf("%s: %v", item(at, i), err)
				continue
			}
			texts = append(texts, text)
		}
	}
	var notes []string
	for _, text := range texts {
		text = strings.TrimSpace(text)
		switch {
		case text == "":
			p.addf("%s: an entry is empty", at)
		case slices.Contains(strings.Split(text, "\n"), "§"):
			p.addf("%s: an entry has a line with nothing but §, which separates entries", at)
		case !slices.Contains(notes, text):
			notes = append(notes, text)
		}
	}
	if size := utf8.RuneCountInString(strings.Join(notes, episode.MemorySeparator)); size > limit {
		p.addf("%s: %d characters, over the limit of %d", at, size, limit)
	}
	return notes
}

var userKeys = keys[episode.User]{
	"answers": readAnswers,
	"default": field(asPlain, func(u *episode.User) *string { return &u.Default }),
	"model":   field(asUserModel, func(u *episode.User) *bool { return &u.Model }),
	"persona": field(asPlain, func(u *episode.User) *string { return &u.Persona }),
}

var answerKeys = keys[episode.UserAnswer]{
	"match":  field(asPattern, func(a *episode.UserAnswer) *string { return &a.Match }),
	"answer": field(asPlain, func(a *episode.UserAnswer) *string { return &a.Answer }),
}

// readUser takes the user that answers the agent's questions: {"answers": [{"match": ..., "answer": ...}], "default": ...} or
// {"model": true, "persona": ...}; scripted answers come before a model's.
func readUser(p *problems, t *episode.Task, at string, value json.RawMessage) {
	user := &episode.User{}
	_, is := userKeys.read(p, user, at, value)
	switch {
	case !is:
		return
	case user.Persona != "" && !user.Model:
		p.addf("%s: persona goes with model: true", at)
	case user.Default != "" && user.Model:
		p.addf("%s: default is never said, as the model answers whatever no answer matches; leave one out", at)
	case !user.Model && len(user.Answers) == 0 && user.Default == "":
		p.addf("%s: it answers nothing, want answers, default or model", at)
	}
	t.User = user
}

func readAnswers(p *problems, user *episode.User, at string, value json.RawMessage) {
	for i, entry := range p.list(at, value, `{"match": ..., "answer": ...}`) {
		var answer episode.UserAnswer
		_, is := answerKeys.read(p, &answer, item(at, i), entry)
		if is && (answer.Match == "" || strings.TrimSpace(answer.Answer) == "") {
			p.addf("%s: want both match, a regular expression, and answer", item(at, i))
		}
		user.Answers = append(user.Answers, answer)
	}
}

func asUserModel(value json.RawMessage) (model bool, err error) {
	if json.Unmarshal(value, &model) != nil {
		err = fmt.Errorf("%s, want true or false; which model it is says user: {model: NAME} in the run file", kindOf(value))
	}
	return model, err
}
