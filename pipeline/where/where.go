// Package where compiles conditions, such as `difficulty == "hard" and turns < 10`, by which rows are kept or left out.
//
// The language is that of github.com/expr-lang/expr (https://expr-lang.org): evaluation always ends, reads only the given row
// and has no side effects.
package where

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"trajgen/pipeline/where/nearest"
)

// Condition is a compiled condition. It is safe for concurrent use.
type Condition struct {
	source  string
	program *vm.Program
	open    []string // names in it that rows may have or not: NAME, or MAP.NAME
}

// Parse compiles a condition over the given names. Each name has an example of its type, so that a comparison of a text with a
// number is an error here and not in the middle of a run; a nil example is of any type. An unknown name is an error that lists
// the known ones, unless open says that rows may have other names, which are nil in rows without them; Names finds out whether
// any row has them. An example that is a map with entries allows only those keys, each with its own example; an empty map allows
// any key.
func Parse(source string, names map[string]any, open bool) (*Condition, error) {
	if strings.TrimSpace(source) == "" {
		return nil, fmt.Errorf("condition is empty (want an expression, such as %s)", example(names))
	}
	kinds := kindsOf(names)
	options := []expr.Option{expr.Env(kinds), expr.AsBool(), expr.Patch(nothings{})}
	used, err := namesIn(source, names)
	if err != nil {
		return nil, err
	}
	if open {
		options = append(options, expr.AllowUndefinedVariables())
	} else {
		used.wrong = append(used.wrong, used.unknown...)
	}
	if len(used.wrong) > 0 {
		return nil, fmt.Errorf("condition %q: unknown name %s", source, suggest(used.wrong[0], names))
	}
	program, err := expr.Compile(source, options...)
	if err != nil {
		return nil, fmt.Errorf("condition %q: %s", source, explain(err))
	}
	return &Condition{source: source, program: program, open: append(used.unknown, used.members...)}, nil
}

// suggest adds to an unknown name the one that was probably meant, and those that there are beside it.
func suggest(name string, names map[string]any) string {
	have := slices.Sorted(maps.Keys(names))
	if in, _, field := strings.Cut(name, "."); field {
		fields, _ := names[in].(map[string]any)
		have = have[:0]
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			have = append(have, in+"."+key)
		}
	}
	return fmt.Sprintf("%s%s (have %s)", name, nearest.DidYouMean(name, have), strings.Join(have, ", "))
}

// kindsOf are the types of examples.
func kindsOf(examples map[string]any) types.Map {
	kinds := types.Map{}
	for name, value := range examples {
		kinds[name] = types.Any
		if fields, ok := value.(map[string]any); ok && len(fields) > 0 {
			kinds[name] = kindsOf(fields)
		} else if value != nil {
			kinds[name] = types.TypeOf(value)
		}
	}
	return kinds
}

// Match reports whether the condition holds for a row.
func (c *Condition) Match(row map[string]any) (bool, error) {
	out, err := expr.Run(c.program, row)
	if err != nil {
		return false, fmt.Errorf("condition %q: %s", c.source, explain(err))
	}
	match, ok := out.(bool)
	if !ok {
		return false, fmt.Errorf("condition %q is %v for this row (want true or false)", c.source, out)
	}
	return match, nil
}

// nothings makes comparisons with nil false, as in databases: a missing reward is neither over 0.5 nor under it. In the library
// they are errors.
type nothings struct{}

func (nothings) Visit(node *ast.Node) {
	order, ok := (*node).(*ast.BinaryNode)
	if !ok || !slices.Contains([]string{"<", "<=", ">", ">="}, order.Operator) {
		return
	}
	for _, side := range []ast.Node{order.Left, order.Right} {
		if kind := side.Type(); kind == nil || kind.Kind() == reflect.Interface {
			there := &ast.BinaryNode{Operator: "!=", Left: side, Right: &ast.NilNode{}}
			ast.Patch(node, &ast.BinaryNode{Operator: "and", Left: there, Right: *node})
		}
	}
}

// String is the condition as it was written.
func (c *Condition) String() string { return c.source }

// ErrUnknown is wrapped by the error about a name that no row has.
var ErrUnknown = errors.New("no row has")

// Names finds out whether each optional name of a condition is in some row, as a condition about a name in no row holds for all
// rows or for none. NAME?.KEY and get(NAME, "KEY") are exempt. It is for one goroutine.
type Names struct {
	source  string
	missing []string
	absent  map[string]bool // optional names that some row could have had
	have    map[string]bool // for the message
}

// Names returns a Names without any row.
func (c *Condition) Names() *Names {
	return &Names{source: c.source, missing: slices.Clone(c.open), absent: map[string]bool{}, have: map[string]bool{}}
}

// Found reports whether each name is in some row.
func (n *Names) Found() bool { return len(n.missing) == 0 }

// Add looks at a row. A row without the map of a name does not count for that name.
func (n *Names) Add(row map[string]any) {
	if n.Found() {
		return
	}
	const most = 200
	for name, value := range row {
		if len(n.have) < most {
			n.have[name] = true
		}
		inner, _ := value.(map[string]any)
		for key := range inner {
			if len(n.have) < most {
				n.have[name+"."+key] = true
			}
		}
	}
	n.missing = slices.DeleteFunc(n.missing, func(name string) bool {
		in, key, _ := strings.Cut(name, ".")
		value, there := row[in]
		if key == "" {
			n.absent[name] = true
			return there
		}
		inner, _ := value.(map[string]any)
		n.absent[name] = n.absent[name] || there
		_, there = inner[key]
		return there
	})
}

// Err lists the names that were in no row, and some that were.
func (n *Names) Err() error {
	missing := slices.DeleteFunc(slices.Clone(n.missing), func(name string) bool { return !n.absent[name] })
	if len(missing) == 0 {
		return nil
	}
	have := slices.DeleteFunc(slices.Sorted(maps.Keys(n.have)), func(name string) bool {
		_, key, _ := strings.Cut(name, ".")
		return n.have[key] // the shorter name works, too
	})
	for i, name := range missing {
		missing[i] += nearest.DidYouMean(name, have)
	}
	return fmt.Errorf("condition %q: %w %s (have %s)", n.source, ErrUnknown, strings.Join(missing, ", "), strings.Join(have, ", "))
}

// namesIn finds the names in a condition that are neither given nor its own variables.
func namesIn(source string, names map[string]any) (*usedNames, error) {
	tree, err := parser.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("condition %q: %s", source, explain(err))
	}
	used := &usedNames{have: names}
	ast.Walk(&tree.Node, used)
	own := func(name string) bool { return name == "$env" || slices.Contains(used.own, name) }
	used.unknown = slices.DeleteFunc(used.unknown, own)
	return used, nil
}

// usedNames collects names that are not given. The condition's own variables are visited after their uses.
type usedNames struct {
	have    map[string]any
	own     []string
	unknown []string
	members []string // of maps that allow any key: MAP.NAME
	wrong   []string // of maps that lack the key
}

func (u *usedNames) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.VariableDeclaratorNode:
		u.own = append(u.own, n.Name)
	case *ast.IdentifierNode:
		if _, ok := u.have[n.Value]; !ok && !slices.Contains(u.unknown, n.Value) {
			u.unknown = append(u.unknown, n.Value)
		}
	case *ast.MemberNode:
		in, isName := n.Node.(*ast.IdentifierNode)
		key, isText := n.Property.(*ast.StringNode)
		if !isName || !isText || n.Optional {
			return
		}
		fields, ok := u.have[in.Value].(map[string]any)
		if _, known := fields[key.Value]; ok && len(fields) == 0 {
			u.members = append(u.members, in.Value+"."+key.Value)
		} else if ok && !known {
			u.wrong = append(u.wrong, in.Value+"."+key.Value)
		}
	}
}

// explain puts an error of the library on one line.
func explain(err error) string {
	at, ok := err.(*file.Error)
	if !ok {
		return strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return fmt.Sprintf("%s (at character %d)", at.Message, at.Column+1)
}

// example shows what a condition looks like.
func example(names map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if _, ok := names[name].(string); ok {
			return fmt.Sprintf("%s == %q", name, "...")
		}
	}
	return "true"
}
