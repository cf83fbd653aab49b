package tools

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"trajgen/registry"
)

// User answers an agent's questions. The tool clarify finds it among the services of the session.
//
// Ask is called for one question at a time. The model gets the text of a *registry.Failure; any other error is the fault of the
// user, not of the agent.
type User interface {
	Ask(ctx context.Context, question string, choices []string) (string, error)
}

func init() {
	add(registry.Define(registry.Definition{
		Name: "clarify", Toolset: clarifyToolset, NoSandbox: true, Timeout: 10 * time.Minute,
		Description: "Asks the user one question and returns the answer. Use it when the task can be read in ways that lead to " +
			"different work and nothing in the working directory decides; otherwise take the sensible reading and say so. Give up " +
			"to 4 choices where the answers are known; the user may still answer something else.",
	}, clarify))
}

type clarifyArgs struct {
	Question string   `json:"question" doc:"One question that can be understood by itself." minlen:"1" maxlen:"4000"`
	Choices  []string `json:"choices,omitempty" alias:"options" doc:"Up to 4 answers to choose from; leave out for an open question." maxitems:"4"`
}

type clarifyResult struct {
	Question       string   `json:"question"`
	ChoicesOffered []string `json:"choices_offered"`
	UserResponse   string   `json:"user_response"`
}

func clarify(ctx context.Context, env *registry.Env, args clarifyArgs) (any, error) {
	question := strings.TrimSpace(args.Question)
	if question == "" {
		return nil, registry.Failf("no_question", "question is empty: ask something")
	}
	choices := make([]string, len(args.Choices))
	for i, choice := range args.Choices {
		choices[i] = strings.TrimSpace(choice)
		if choices[i] == "" || utf8.RuneCountInString(choices[i]) > maxChoice {
			return nil, registry.Failf("bad_choice", "choices[%d] must have 1 to %d characters", i, maxChoice)
		}
	}
	user, ok := registry.Service[User](env.Session)
	if !ok {
		return nil, registry.Failf("no_user", "no user can answer in this episode: decide by yourself with what you know, and say in the final answer what "+
			"you assumed")
	}
	answer, err := user.Ask(ctx, question, choices)
	if err != nil {
		return nil, err
	}
	return clarifyResult{Question: question, ChoicesOffered: choices, UserResponse: answer}, nil
}

// maxChoice bounds a choice, in characters.
const maxChoice = 500
