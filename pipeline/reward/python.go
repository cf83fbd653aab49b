package reward

import (
	"context"
	"path"
	"strings"

	"trajgen/pipeline/episode"
)

var python = kind{
	verify: verifyPython, keys: []string{"python", "env", "tests", "timeout", "verifier"}, // which datasets read themselves: the scorer may be a file
	given: func(check episode.Check) bool { return check.Python != "" && check.Command == "" },
}

// verifyPython runs a scorer, which is among the check's files, as a command with the reward on stdout. Whatever goes wrong in it
// says nothing about the agent.
func verifyPython(ctx context.Context, check episode.Check, subject Subject) (judgement, error) {
	if subject.Said == nil {
		return judgement{}, &Broken{Class: "state", Message: "a scorer needs the agent's answer and conversation, which are not known here"}
	}
	sb, err := subject.Sandbox(ctx)
	if err != nil {
		return judgement{}, err
	}
	layout, scorer := sb.Layout(), check.Python
	if rest, private := strings.CutPrefix(scorer, "/tests/"); private {
		scorer = path.Join(layout.Tests, rest)
	}
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
	check.Command, check.Reward = "python3 "+quote(groundOf(layout).scoring())+" "+quote(scorer), "stdout"
	return verifyCommand(ctx, check, subject)
}
