package tools

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	l := &AllowList{path: path, allowed: map[string]bool{}, rules: map[string]bool{}}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open allow list: %w", err)
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		text, err := lines.ReadString('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("read allow list %s: %w", path, err)
		}
		if bad := l.take(text); bad != nil {
			return nil, fmt.Errorf("allow list %s, line %d: %w", path, n, bad)
		}
		if err == io.EOF {
			return l, nil
		}
	}
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
		l.allowed[line.key()] = true
	}
	return nil
}

// checkRule refuses an invalid entry. In a container, a rule that blocks asks instead, so an entry for one command may name it.
func checkRule(id string, alone bool) error {
	i := slices.IndexFunc(policy.Rules(), func(rule policy.Verdict) bool { return rule.Rule == id })
	if i < 0 {
		return fmt.Errorf("there is no rule %q (trajgen command rules lists them)", id)
	}
	if policy.Rules()[i].Verdict == policy.Block && !alone {
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
	rules, have := slices.Sorted(maps.Keys(l.rules)), len(l.allowed) > 0 && l.allowed[q.key()]
	l.mu.Unlock()
	if have || !slices.Contains(rules, q.Rule) {
		return have
	}
	rest, _ := judge(rules)
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
	if l.allowed == nil {
		l.allowed = map[string]bool{}
	}
	if l.path == "" {
		l.allowed[line.key()] = true
		return nil
	}
	if err := l.write(line); err != nil {
		return err
	}
	l.allowed[line.key()] = true
	return nil
}

// write appends a line to the file in one write. If the last line has no end, it adds one first.
func (l *AllowList) write(line allowedCommand) (err error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // users read it
	if err := encoder.Encode(line); err != nil {
		return err
	}
	file, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open allow list: %w", err)
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = fmt.Errorf("write allow list %s: %w", l.path, err)
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var last [1]byte
	if size := info.Size(); size > 0 {
		if _, err := file.ReadAt(last[:], size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			_, err = file.Write(append([]byte{'\n'}, text.Bytes()...))
			return err
		}
	}
	_, err = file.Write(text.Bytes())
	return err
}
