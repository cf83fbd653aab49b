package reward

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// saidFiles are the variables of a verifier that name files with what the agent said and did.
var saidFiles = []struct{ variable, name string }{
	{"ANSWER_FILE", "/answer.txt"}, {"CONVERSATION_FILE", "/conversation.json"}, {"CALLS_FILE", "/calls.json"},
}

var speaksOfSaid = regexp.MustCompile(`\b(?:ANSWER|CONVERSATION|CALLS)_FILE\b`)

// said makes these files, and the variables that name them; neither where what was said is not known.
func (g ground) said(subject Subject) (files []sandbox.FileWrite, env []string, err error) {
	if subject.Said == nil {
		return nil, nil, nil
	}
	messages, calls := subject.Said()
	conversation, err := episode.JSON(append([]episode.Message{}, messages...)) // a list, also of nothing
	if err != nil {
		return nil, nil, fmt.Errorf("encode the conversation for the verifier: %w", err)
	}
	traces, err := episode.JSON(append([]episode.ToolCall{}, calls...))
	if err != nil {
		return nil, nil, fmt.Errorf("encode the tool calls for the verifier: %w", err)
	}
	for i, data := range [][]byte{[]byte(subject.Answer), conversation, traces} {
		file := saidFiles[i]
		files = append(files, sandbox.FileWrite{Path: string(g) + file.name, Data: data, Mode: 0o444})
		env = append(env, file.variable+"="+string(g)+file.name)
	}
	return files, env, nil
}

// OfAnswer reports whether a check looks at what the agent said: its answer, its conversation or its calls.
func OfAnswer(check episode.Check) bool {
	switch {
	case check.Exact != nil, check.Contains != nil, check.Number != nil, check.Regex != "", check.Similar != "", check.Python != "":
		return true
	case check.JSON != nil:
		return check.JSON.File == ""
	}
	texts := append(slices.Collect(maps.Values(check.Env)), check.Command)
	return slices.ContainsFunc(texts, speaksOfSaid.MatchString) ||
		slices.ContainsFunc(slices.Collect(maps.Values(check.Tests)), func(file episode.File) bool { return speaksOfSaid.Match(file) })
}
