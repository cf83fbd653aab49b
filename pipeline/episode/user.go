package episode

// User is who answers the agent's questions (the tool clarify): a script, or a model that plays a person.
type User struct {
	Answers []UserAnswer `json:"answers,omitempty"` // the first one that matches counts
	Default string       `json:"default,omitempty"` // the answer when none matches
	Model   bool         `json:"model,omitempty"`   // a model answers, as Persona
	Persona string       `json:"persona,omitempty"` // who the model is and what it knows
}

// UserAnswer is what a scripted user says to a question.
type UserAnswer struct {
	Match  string `json:"match"` // RE2, searched in the question
	Answer string `json:"answer"`
}

// UserTrace says what the user of an episode was asked, and what a model that played one cost. None of it is part of
// the agent's own usage.
type UserTrace struct {
	Questions int    `json:"questions"` // that were answered
	Model     string `json:"model,omitempty"`
	Usage     Usage  `json:"usage,omitzero"`
}
