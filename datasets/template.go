package datasets

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"trajgen/pipeline/episode"
)

// templateFunctions are what a mapping's templates may call. The value comes last, so that calls can be piped.
var templateFunctions = template.FuncMap{
	"json": func(value any) (string, error) {
		text, err := episode.JSON(value)
		return string(text), err
	},
	"trim":  func(value any) string { return strings.TrimSpace(plain(value)) },
	"lower": func(value any) string { return strings.ToLower(plain(value)) },
	"upper": func(value any) string { return strings.ToUpper(plain(value)) },
	"split": func(separator string, value any) (items []any) {
		for part := range strings.SplitSeq(plain(value), separator) {
			items = append(items, part)
		}
		return items
	},
	"join": func(separator string, list any) (string, error) {
		items, ok := list.([]any)
		if !ok {
			return "", notList(list)
		}
		texts := make([]string, len(items))
		for i, item := range items {
			texts[i] = plain(item)
		}
		return strings.Join(texts, separator), nil
	},
	"first": func(list any) (any, error) { return itemOf(list, func(int) int { return 0 }) },
	"last":  func(list any) (any, error) { return itemOf(list, func(n int) int { return n - 1 }) },
	"replace": func(old, new string, value any) string {
		return strings.ReplaceAll(plain(value), old, new)
	},
	"regexFind": func(expression string, value any) (string, error) {
		compiled, err := regexp.Compile(expression)
		if err != nil {
			return "", err
		}
		match := compiled.FindStringSubmatch(plain(value))
		switch {
		case match == nil:
			return "", nil
		case len(match) > 1:
			return match[1], nil
		}
		return match[0], nil
	},
	"regexReplace": func(expression, new string, value any) (string, error) {
		compiled, err := regexp.Compile(expression)
		if err != nil {
			return "", err
		}
		return compiled.ReplaceAllString(plain(value), new), nil
	},
	"indent": func(spaces int, value any) (string, error) {
		if spaces < 0 || spaces > 100 {
			return "", fmt.Errorf("indent by %d spaces, want 0 to 100", spaces)
		}
		pad := strings.Repeat(" ", spaces)
		return pad + strings.ReplaceAll(plain(value), "\n", "\n"+pad), nil
	},
	"default": func(fallback, value any) any {
		if value == nil || plain(value) == "" {
			return fallback
		}
		return value
	},
	"int": func(value any) (int, error) {
		text := strings.ReplaceAll(strings.TrimSpace(plain(value)), ",", "")
		if number, err := strconv.Atoi(text); err == nil {
			return number, nil
		}
		number, err := strconv.ParseFloat(text, 64)
		if err != nil || number != math.Trunc(number) || math.Abs(number) > 1<<53 {
			return 0, fmt.Errorf("%q is not a whole number", plain(value))
		}
		return int(number), nil
	},
}

// plain is a value as a template prints it; what is not there is empty.
func plain(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case json.Number:
		return value.String()
	}
	return fmt.Sprint(value)
}

func notList(value any) error { return fmt.Errorf("%T, want a list", value) }

func itemOf(list any, index func(n int) int) (any, error) {
	items, ok := list.([]any)
	if !ok {
		return nil, notList(list)
	}
	if len(items) == 0 {
		return nil, errors.New("the list is empty")
	}
	return items[index(len(items))], nil
}

// mention notes the fields of the row that a template names: .field, $.field and index . "field". Inside range and
// with the dot is something else (atRoot is false), but the dollar still is the row.
func mention(node parse.Node, atRoot bool, names map[string]bool) {
	branch := func(b parse.BranchNode, inner bool) {
		mention(b.Pipe, atRoot, names)
		mention(b.List, inner, names)
		mention(b.ElseList, atRoot, names)
	}
	switch node := node.(type) {
	case *parse.ListNode:
		if node == nil {
			return
		}
		for _, inner := range node.Nodes {
			mention(inner, atRoot, names)
		}
	case *parse.ActionNode:
		mention(node.Pipe, atRoot, names)
	case *parse.TemplateNode:
		mention(node.Pipe, atRoot, names)
	case *parse.IfNode:
		branch(node.BranchNode, atRoot)
	case *parse.RangeNode:
		branch(node.BranchNode, false)
	case *parse.WithNode:
		branch(node.BranchNode, false)
	case *parse.PipeNode:
		if node == nil {
			return
		}
		for _, command := range node.Cmds {
			mention(command, atRoot, names)
		}
	case *parse.CommandNode:
		for _, argument := range node.Args {
			mention(argument, atRoot, names)
		}
		if len(node.Args) < 3 || node.Args[0].String() != "index" {
			return
		}
		row := node.Args[1].String()
		if key, ok := node.Args[2].(*parse.StringNode); ok && (row == "$" || row == "." && atRoot) {
			names[key.Text] = true
		}
	case *parse.ChainNode:
		mention(node.Node, atRoot, names)
	case *parse.FieldNode:
		if atRoot {
			names[node.Ident[0]] = true
		}
	case *parse.VariableNode:
		if node.Ident[0] == "$" && len(node.Ident) > 1 {
			names[node.Ident[1]] = true
		}
	}
}
