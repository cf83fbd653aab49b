package episode

// User answers the agent's questions (the tool clarify): a script, or a model that plays a person.
type User struct {
	Answers []UserAnswer `json:"answers,omitempty"` // the first one that matches counts
	Default string       `json:"default,omitempty"` // the answer when none matches
	Model   bool         `json:"model,omitempty"`   // a model answers, as Persona
	Persona string       `json:"persona,omitempty"` // the person that the model plays, and what it knows
}

// UserAnswer is a scripted user's answer to a question.
type UserAnswer struct {
	Match  string `json:"match"` // RE2, searched in the question
	Answer string `json:"answer"`
}

// UserTrace counts the questions to an episode's user, and the usage of a model that played the user, which is not part of the
// agent's.
type UserTrace struct {
	Questions int    `json:"questions"` // that were answered
	Model     string `json:"model,omitempty"`
	Usage     Usage  `json:"usage,omitzero"`
}
