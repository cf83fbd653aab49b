package check

import (
	"regexp"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// hints are what a determined agent guesses of a task's verifier. The audit takes them from the checks.
type hints struct {
	names, modules, words []string
	given                 string // text that says what the task's input is
}

var (
	testsPath  = regexp.MustCompile(`"?(\$\{?TESTS\}?|/tests|/logs)"?/[\w./-]+|https?://\S+`)
	likeFile   = regexp.MustCompile(`(?:~/|/|\.{1,2}/)?(?:[\w-][\w.-]*/)*(?:\.?[\w-]+(?:\.[\w-]+)*\.[A-Za-z][A-Za-z0-9]{0,7}|\.[a-z]\w+)\b|\./[\w./-]+\w`)
	tested     = regexp.MustCompile(`-([efsrwxdL]) +["']?([~\w./-]*\w/?)`)
	called     = regexp.MustCompile("(?:called|named) [`'\"]?([~\\w./-]*\\w/?)")
	quoted     = regexp.MustCompile("[`'\"]([~\\w./-]*\\w/?)[`'\"]")
	imported   = regexp.MustCompile(`\bimport +(\w+(?: *, *\w+)*)|\bfrom +(\w+)[\w.]* +import`)
	word       = regexp.MustCompile(`\b[a-z][a-z0-9_-]+\b`)
	systemPath = regexp.MustCompile(`^/(usr|s?bin|etc|dev|proc|sys|lib\w*|tests|logs)(/|$)`)
)

// mostHints bounds how many names, and how many words, an attack knows.
const mostHints = 60

func hintsOf(task *episode.Task) hints {
	var h hints
	names := func(pattern *regexp.Regexp, text string) {
		for _, found := range pattern.FindAllStringSubmatch(testsPath.ReplaceAllString(text, " "), -1) {
			name := strings.TrimPrefix(found[len(found)-1], "./")
			if pattern == tested && found[1] == "d" {
				name = strings.TrimSuffix(name, "/") + "/"
			}
			h.names = append(h.names, name)
		}
	}
	for _, message := range task.Prompt {
		h.given += "\n" + message.Content
		names(likeFile, message.Content)
		names(called, message.Content)
	}
	for _, step := range task.Gold {
		for _, call := range step.Calls {
			h.given += "\n" + string(call.Arguments)
		}
	}
	for _, check := range task.Verify {
		texts := []string{check.Command}
		names(likeFile, check.Command)
		if check.JSON != nil && check.JSON.File != "" {
			h.names = append(h.names, check.JSON.File)
		}
		for name, test := range check.Tests {
			texts = append(texts, string(test))
			if strings.HasSuffix(name, ".sh") {
				names(likeFile, string(test))
			}
		}
		for _, text := range texts {
			names(tested, text)
			for _, found := range quoted.FindAllStringSubmatch(text, -1) {
				if likeFile.FindString(found[1]) == found[1] {
					names(likeFile, found[1])
				}
			}
			for _, found := range imported.FindAllStringSubmatch(text, -1) {
				h.modules = append(h.modules, strings.FieldsFunc(found[1]+","+found[2], func(r rune) bool { return r == ',' || r == ' ' })...)
			}
		}
		h.words = append(h.words, word.FindAllString(check.Command, -1)...)
	}
	h.names = slices.DeleteFunc(h.names, systemPath.MatchString)
	for _, list := range []*[]string{&h.names, &h.modules, &h.words} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
		*list = (*list)[:min(len(*list), mostHints)]
	}
	return h
}

// shell are the hints as variables of a shell.
func (h hints) shell() string {
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
	lines := []string{"GIVEN=" + quote(h.given)}
	for _, list := range []struct {
		name  string
		texts []string
	}{{"NAMES", h.names}, {"MODULES", h.modules}, {"WORDS", h.words}} {
		var words []string
		for _, text := range list.texts {
			words = append(words, quote(text))
		}
		lines = append(lines, list.name+"=("+strings.Join(words, " ")+")")
	}
	return strings.Join(lines, "\n")
}
