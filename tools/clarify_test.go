package tools_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answers is a user who says the question back, with the choices.
type answers struct{ err error }

func (a answers) Ask(_ context.Context, question string, choices []string) (string, error) {
	if len(choices) > 0 {
		return choices[len(choices)-1], a.err
	}
	return "about " + question, a.err
}

func TestClarify(t *testing.T) {
	e := talk(t, answers{})
	got := e.ok("clarify", args{"question": " which color? "})
	if diff := cmp.Diff(args{"question": "which color?", "choices_offered": []any{}, "user_response": "about which color?"}, got); diff != "" {
		t.Error(diff)
	}
	got = e.ok("clarify", args{"question": "which?", "choices": []string{"red", " blue "}})
	if diff := cmp.Diff(args{"question": "which?", "choices_offered": []any{"red", "blue"}, "user_response": "blue"}, got); diff != "" {
		t.Error(diff)
	}
	e.fails("invalid_arguments", "clarify", args{"question": "which?", "choices": []string{"1", "2", "3", "4", "5"}})
	e.fails("bad_choice", "clarify", args{"question": "which?", "choices": []string{" "}})
	e.fails("no_question", "clarify", args{"question": " "})
	wantContains(t, talk(t).fails("no_user", "clarify", args{"question": "which?"})["error"], "decide by yourself")
	talk(t, answers{errors.New("gone")}).fails("error", "clarify", args{"question": "which?"})
}
