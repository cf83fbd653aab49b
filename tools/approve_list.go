package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"trajgen/tools/policy"
)

// AllowList is a file of commands that were approved for good: a JSON object {"rule": ..., "command": ...} a line. An entry
// without a command approves all commands under the rule. Rules that block cannot be approved. The zero value has no file: it
// lasts for the run.
type AllowList struct {
	path string

	mu      sync.Mutex // guards the rest, and writing
	allowed map[string]bool
	rules   map[string]bool // rules that are approved for all commands
}

type allowedCommand struct {
	Rule    string `json:"rule"`
	Command string `json:"command,omitempty"`
}

// OpenAllowList reads the file. If it does not exist, the first approval makes it.
func OpenAllowList(path string) (*AllowList, error) {
	l := &AllowList{path: path, rules: map[string]bool{}}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open allow list: %w", err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if err := l.take(line); err != nil {
			return nil, fmt.Errorf("allow list %s, line %d: %w", path, i+1, err)
		}
	}
	return l, nil
}

// take parses a line of the file.
func (l *AllowList) take(text string) error {
	if text = strings.TrimSpace(text); text == "" || strings.HasPrefix(text, "#") {
		return nil
	}
	var line allowedCommand
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		return err
	}
	if err := checkRule(line.Rule, line.Command != ""); err != nil {
		return err
	}
	if line.Command == "" {
		l.rules[line.Rule] = true
	} else {
		l.allow(line)
	}
	return nil
}

func (l *AllowList) allow(line allowedCommand) {
	if l.allowed == nil {
		l.allowed = map[string]bool{}
	}
	l.allowed[line.key()] = true
}

// checkRule refuses an invalid entry. In a container, a rule that blocks asks instead, so an entry for one command may name it.
func checkRule(id string, alone bool) error {
	rules := policy.Rules()
	i := slices.IndexFunc(rules, func(rule policy.Verdict) bool { return rule.Rule == id })
	if i < 0 {
		return fmt.Errorf("there is no rule %q (trajgen command rules lists them)", id)
	}
	if rules[i].Verdict == policy.Block && !alone {
		return fmt.Errorf("rule %s blocks: it cannot be allowed", id)
	}
	return nil
}

func (c allowedCommand) key() string {
	return Question{Rule: c.Rule, Command: c.Command}.key()
}

// has reports whether a command was approved for good: itself, or all the rules that ask about it.
func (l *AllowList) has(q Question, judge judgement) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	rules, have := slices.Sorted(maps.Keys(l.rules)), l.allowed[q.key()]
	l.mu.Unlock()
	if have || !slices.Contains(rules, q.Rule) {
		return have
	}
	rest := judge(rules)
	if rest.Verdict == policy.Allow {
		return true
	}
	q.Rule = rest.Rule
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.allowed[q.key()]
}

// add appends a command.
func (l *AllowList) add(q Question) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	line := allowedCommand{q.Rule, policy.Canonical(q.Command)}
	if l.allowed[line.key()] {
		return nil
	}
	if l.path != "" {
		if err := l.write(line); err != nil {
			return fmt.Errorf("write allow list: %w", err)
		}
	}
	l.allow(line)
	return nil
}

// write appends a line to the file in one write. If the last line has no end, it adds one first.
func (l *AllowList) write(line allowedCommand) error {
	var text bytes.Buffer
	before, err := os.ReadFile(l.path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case len(before) > 0 && !bytes.HasSuffix(before, []byte("\n")):
		text.WriteByte('\n')
	}
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // users read it
	if err := encoder.Encode(line); err != nil {
		return err
	}
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text.Bytes())
	return errors.Join(err, file.Close())
}
