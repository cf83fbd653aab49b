package policy

import (
	"bytes"
	_ "embed"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed rules.yaml
var rulesYAML []byte

// tables are what the policy knows of programs, and its rules: the content of rules.yaml by name.
type tables struct {
	names     map[string]string // the name by which the policy knows a program
	sorted    []string          // names that rules or the code know
	options   map[string]valued
	starters  map[string]starter
	languages map[string]language
	commands  map[string]*regexp.Regexp
	files     map[string]kind
	variables map[string]string
	evaluated words
	rules     map[string]Verdict
	rulesFor  map[string][]ruled
}

// valued are the options of a program that take a value.
type valued struct {
	letters, attached string // the value of the attached ones is optional, and in the same word
	long              []string
}

// starter describes how a program starts the command after its options.
type starter struct {
	Run      string
	Operands int
	Code     words
	Dir      words
	Text     bool
	Inside   bool
}

// language describes the options of an interpreter.
type language struct {
	Code, Module, Filter words
	Stdin                bool
}

// kind describes files by their canonical path.
type kind struct {
	Is, Except  *regexp.Regexp
	Like, Under words
}

// ruled is a condition with the id of its rule.
type ruled struct {
	id string
	condition
}

// condition is met by a call of one of the programs for which everything that is given holds.
type condition struct {
	Program, Verb                      words
	Acts                               bool
	Flag, Word                         words
	Line, First                        *regexp.Regexp
	File, Later, Earlier, Last, Writes string
	From, Code                         string
	Not                                *condition
	Any                                []condition
}

// words is a list in one line.
type words []string

// UnmarshalText splits a line.
func (w *words) UnmarshalText(line []byte) error {
	*w = strings.Fields(string(line))
	return nil
}

// table returns the tables, which are read when the first command is judged.
var table = sync.OnceValue(func() *tables {
	var file struct {
		Names     []words
		Options   map[string]words
		Starters  []starter
		Languages map[string]language
		Commands  map[string]*regexp.Regexp
		Files     map[string]kind
		Variables map[string]string
		Evaluated words
		Rules     []struct {
			Rule, Reason string
			Verdict      Level
			When         []condition
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(rulesYAML))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		panic(err)
	}
	t := &tables{
		languages: file.Languages, commands: file.Commands, files: file.Files, variables: file.Variables, evaluated: file.Evaluated,
		names: map[string]string{}, options: map[string]valued{}, starters: map[string]starter{},
		rules: map[string]Verdict{}, rulesFor: map[string][]ruled{},
	}
	for _, names := range file.Names {
		for _, name := range names {
			t.names[name] = names[0]
		}
	}
	for name, l := range file.Languages {
		t.options[name] = valued{letters: strings.Join(l.Code, ""), long: l.Code}
	}
	for name, takes := range file.Options {
		letters, attached, _ := strings.Cut(takes[0], "/")
		t.options[name] = valued{letters, attached, takes[1:]}
	}
	for _, s := range file.Starters {
		for key := range strings.SplitSeq(s.Run, ",") {
			t.starters[strings.TrimSpace(key)] = s
		}
	}
	for _, r := range file.Rules {
		t.rules[r.Rule] = Verdict{r.Verdict, r.Rule, r.Reason}
		for _, when := range r.When {
			for _, name := range when.Program {
				t.rulesFor[name] = append(t.rulesFor[name], ruled{r.Rule, when})
			}
		}
	}
	t.sorted = slices.AppendSeq([]string{"eval", "sudo"}, maps.Keys(t.names))
	t.sorted = slices.AppendSeq(t.sorted, maps.Keys(t.rulesFor))
	slices.Sort(t.sorted)
	t.sorted = slices.Compact(t.sorted)
	return t
})

// judge reports the rules of this program whose conditions hold.
func (c *call) judge() {
	rules := table().rulesFor[c.name]
	if len(rules) == 0 {
		return
	}
	verb, rest := c.verb()
	after := c.with(c.name, rest)
	after.line = c.line
	for _, rule := range rules {
		if len(rule.Verb) == 0 && rule.holds(c) || slices.Contains(rule.Verb, verb) && rule.holds(after) {
			c.j.report(rule.id)
		}
	}
}

func (w *condition) holds(c *call) bool {
	n := len(c.operands)
	switch {
	case w.Acts && (c.given.has("help", "version") || len(c.args) == 1 && (c.args[0] == "-h" || c.args[0] == "-V")),
		w.Flag != nil && !c.given.has(w.Flag...),
		w.Word != nil && !slices.ContainsFunc(c.args, func(arg string) bool { return slices.Contains(w.Word, arg) }),
		w.Line != nil && !w.Line.MatchString(c.line),
		w.First != nil && (n == 0 || !w.First.MatchString(c.operands[0])),
		w.File != "" && !c.j.any(c.operands, w.File),
		w.Later != "" && !c.j.any(c.operands[min(n, 1):], w.Later),
		w.Earlier != "" && !c.j.any(c.operands[:max(n-1, min(n, 1))], w.Earlier),
		w.Last != "" && !c.j.any(c.operands[max(n-1, 0):], w.Last),
		w.Writes != "" && !c.j.any(c.destinations(), w.Writes),
		w.From != "" && !strings.Contains(c.line+c.in.text, sources[w.From]),
		w.Code != "" && !tests[w.Code](c),
		w.Not != nil && w.Not.holds(c):
		return false
	}
	return w.Any == nil || slices.ContainsFunc(w.Any, func(w condition) bool { return w.holds(c) })
}
