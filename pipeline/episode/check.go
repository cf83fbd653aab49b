package episode

import (
	"encoding/json"
	"time"
)

// Check is one way to judge an episode. Exactly one of Command, Python, Exact, Contains, Number, Regex, JSON, Similar, SiteState,
// HomeState and Outbox is set; Tests are files for Command and Python, which run after they were put in place.
type Check struct {
	Name string `json:"name,omitempty"`
	// After is the message of the user, from 1, behind whose answer the check judges; 0 is the last. Below AtLeast the agent's part
	// ends there.
	After   int     `json:"after,omitempty"`
	AtLeast float64 `json:"at_least,omitempty"`
	Weight  float64 `json:"weight,omitempty"` // share of the reward; 0 means 1
	Command string  `json:"command,omitempty"`
	// Python is the path among Tests of a scorer: a module with a function score(answer, conversation, calls).
	Python string `json:"python,omitempty"`
	Tests  Files  `json:"tests,omitempty"`
	// Reward says where the reward of a command is: "exit" (default: status 0 is 1), "stdout" (the last line is a number),
	// "file" (reward.json or reward.txt in /logs/verifier), or what reads the output of tests, such as "pytest" (1 if the summary of
	// pytest -rA has no failure).
	Reward      string            `json:"reward,omitempty"`
	Env         map[string]string `json:"env,omitempty"` // of a command, in addition to the sandbox's
	Timeout     time.Duration     `json:"timeout,omitempty"`
	TestTimeout time.Duration     `json:"test_timeout,omitempty"` // of each test that a command runs with pytest or unittest
	// Verifier says where a command or a scorer runs; nil is the task's.
	Verifier *Verifier `json:"verifier,omitempty"`

	Exact    Texts `json:"exact,omitempty"`    // the final answer is one of these
	Contains Texts `json:"contains,omitempty"` // these are in the final answer
	Comparison

	Number *float64 `json:"number,omitempty"` // the last number of the final answer
	// Tolerance of Number, absolute; 0 compares exactly up to float rounding (1e-9 relative). With Relative, the wider one counts.
	Tolerance float64 `json:"tolerance,omitempty"`
	Relative  float64 `json:"relative,omitempty"`
	Unit      string  `json:"unit,omitempty"`  // of Number: the last number with this unit, or one that converts to it
	Regex     string  `json:"regex,omitempty"` // RE2, searched in the final answer

	JSON *JSONCheck `json:"json,omitempty"`
	Likeness

	SiteState *SiteState `json:"site_state,omitempty"`
	HomeState string     `json:"home_state,omitempty"` // an expression over what the home holds, like SiteState.Expect
	Outbox    string     `json:"outbox,omitempty"`     // an expression over the messages that were sent
}

// Texts are one or several texts. One is a JSON string, several are a list.
type Texts []string

// MarshalJSON writes a string or a list of strings.
func (t Texts) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return JSON(t[0])
	}
	return JSON([]string(t))
}

// UnmarshalJSON reads a string or a list of strings.
func (t *Texts) UnmarshalJSON(data []byte) error {
	var text *string
	if json.Unmarshal(data, &text) == nil {
		if *t = nil; text != nil {
			*t = Texts{*text}
		}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// Comparison says how the answer is compared with texts. Empty fields are the defaults.
type Comparison struct {
	Case    string `json:"case,omitempty"`    // keep (default), ignore
	Trim    string `json:"trim,omitempty"`    // ends (default of Exact), all: runs of white space count as one space, none (other defaults)
	Unicode string `json:"unicode,omitempty"` // none (default), nfc, nfkc
	Match   string `json:"match,omitempty"`   // how many of Contains: all (default), any
}

// JSONCheck is what a check expects of a JSON value: the answer, the last value in it, or a file.
type JSONCheck struct {
	File   string          `json:"file,omitempty"`   // below the working directory, instead of the answer
	Schema json.RawMessage `json:"schema,omitempty"` // a JSON Schema
	// Equal are values by their place: a JSON pointer, or names and numbers with dots between them.
	Equal map[string]json.RawMessage `json:"equal,omitempty"`
}

// Likeness is what a check expects of the wording of the final answer: how like a text it is, from 0 to 1.
type Likeness struct {
	Similar   string  `json:"similar,omitempty"`
	Measure   string  `json:"measure,omitempty"`   // levenshtein (default), f1, rouge_l
	Threshold float64 `json:"threshold,omitempty"` // the reward is 1 from here on, else 0; without it, the likeness itself
}

// SiteState is what a check expects of a web site of the task.
type SiteState struct {
	Site   string `json:"site"`
	Expect string `json:"expect"` // an expression over the state, which is true, false or a number from 0 to 1
}
