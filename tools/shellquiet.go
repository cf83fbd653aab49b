package tools

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// quietCommand is a command that does not change the shell's state. Most commands only run programs. Its shell needs a shorter
// prologue and does not report its state, which takes as long as starting a small program.
type quietCommand struct {
	programs []string // run by the shell itself, builtins included
	alone    bool     // the command begins with its only program, which can replace the shell
}

const (
	// quietly runs a quiet command. It reports only the directory, in case that was moved.
	quietly = `{ builtin eval -- "$__trajgen_command"; } 3>&-; __trajgen_status=$?; ` +
		`[[ . -ef $PWD ]] || builtin pwd -P >&3 2>/dev/null; builtin exit "$__trajgen_status"`
	// notQuiet is the report of a shell that finds an alias, or a function with a program's name, and runs nothing. Only the
	// sandbox's environment can define one.
	notQuiet = "\x00\x04"
)

// check is shell code that looks for aliases and functions.
func (q quietCommand) check() string {
	check := "if ((${#BASH_ALIASES[@]}))"
	for _, name := range q.programs {
		check += " || builtin declare -F " + name
	}
	return check + `; then builtin printf '\0\4' >&3; builtin exit; fi` + "\n"
}

// command is shell code that sets the variable that quietly runs.
func (q quietCommand) command(command string) string {
	set := "__trajgen_command=" + quoteShell(command)
	if q.alone && slices.Contains(steady, q.programs[0]) {
		set += "; builtin hash " + q.programs[0] + ` && __trajgen_command="exec $__trajgen_command"`
	}
	return set
}

// steady are programs that can replace the shell. For another one, the shell may have to report a kill or crash; mv could move
// the directory.
var steady = strings.Fields("awk basename cat chmod cmp comm cp cut date df diff dirname du egrep fgrep file find grep head jq ln ls " +
	"md5sum mkdir nl od paste readlink realpath rg rm rmdir sed seq sha256sum sort stat tac tail tee touch tr tree uniq wc which xxd")

// maxQuiet bounds the commands that are examined, in bytes; a longer one is a script, which rarely only runs programs.
const maxQuiet = 16 << 10

// maxPrograms bounds the check for functions.
const maxPrograms = 20

// quiet reports whether a command does not change the shell's state: it runs programs only, and no word of it assigns to a
// variable; subshells may do anything. Constructs that are not known to be harmless are not quiet.
func quiet(src string) (q quietCommand, ok bool) {
	if len(src) > maxQuiet || nesting(src) > maxNesting {
		return q, false
	}
	defer func() { // as in parseShell
		if recover() != nil {
			q, ok = quietCommand{}, false
		}
	}()
	file, err := parseBash(src)
	if err != nil {
		return q, false
	}
	var s still
	ok = s.statements(file.Stmts)
	q.programs = slices.Compact(slices.Sorted(slices.Values(s.programs)))
	if len(file.Stmts) == 1 {
		call, only := file.Stmts[0].Cmd.(*syntax.CallExpr)
		q.alone = only && !file.Stmts[0].Negated && len(call.Assigns) == 0 && call.Pos().Offset() == 0
	}
	return q, ok && len(q.programs) <= maxPrograms
}

// still collects the programs of a command. Its methods report whether the command changes nothing.
type still struct{ programs []string }

func (s *still) statements(all []*syntax.Stmt) bool {
	return !slices.ContainsFunc(all, func(each *syntax.Stmt) bool { return !s.statement(each) })
}

func (s *still) statement(stmt *syntax.Stmt) bool {
	if stmt.Background || stmt.Coprocess || slices.ContainsFunc(stmt.Redirs, func(r *syntax.Redirect) bool { return !s.redirect(r) }) {
		return false
	}
	switch cmd := stmt.Cmd.(type) {
	case nil, *syntax.Subshell:
		return true
	case *syntax.CallExpr:
		return s.call(cmd)
	case *syntax.Block:
		return s.statements(cmd.Stmts)
	case *syntax.BinaryCmd:
		return s.statement(cmd.X) && s.statement(cmd.Y)
	}
	return false
}

func (s *still) redirect(r *syntax.Redirect) bool {
	named := r.N != nil && strings.HasPrefix(r.N.Value, "{") // a variable that gets the number
	return !named && s.word(r.Word) && s.word(r.Hdoc)
}

var programName = regexp.MustCompile(`^[A-Za-z0-9_.+/][A-Za-z0-9_.+/-]*$`)

func (s *still) call(call *syntax.CallExpr) bool {
	if len(call.Args) == 0 || slices.ContainsFunc(call.Args, func(w *syntax.Word) bool { return !s.word(w) }) {
		return false
	}
	for _, assign := range call.Assigns { // for the program only
		if assign.Naked || assign.Index != nil || assign.Array != nil || !s.word(assign.Value) {
			return false
		}
	}
	name := call.Args[0].Lit()
	s.programs = append(s.programs, name)
	switch {
	case !programName.MatchString(name):
		return false
	case name == "printf": // it may assign
		if len(call.Args) == 1 {
			return true
		}
		first := plainWord(call.Args[1].Parts)
		return len(call.Assigns) == 0 && first != "" && !strings.ContainsAny(first[:1], "-?")
	case slices.Contains(stillBuiltins, name):
		return len(call.Assigns) == 0
	}
	return !slices.Contains(builtins, name)
}

// bash's builtins, and those that do not change its state.
var (
	stillBuiltins = []string{"echo", "false", "pwd", "true"}
	builtins      = strings.Fields(". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs " +
		"disown enable eval exec exit export fc fg getopts hash help history jobs kill let local logout mapfile popd pushd read " +
		"readarray readonly return set shift shopt source suspend test times trap type typeset ulimit umask unalias unset wait")
)

// word reports whether the expansion of a word assigns nothing.
func (s *still) word(w *syntax.Word) bool { return w == nil || s.parts(w.Parts) }

func (s *still) parts(parts []syntax.WordPart) bool {
	for _, part := range parts {
		ok := false
		switch p := part.(type) {
		case *syntax.Lit, *syntax.SglQuoted, *syntax.ProcSubst:
			ok = true
		case *syntax.DblQuoted:
			ok = s.parts(p.Parts)
		case *syntax.CmdSubst:
			ok = !p.TempFile && !p.ReplyVar // those run in the shell itself
		case *syntax.ParamExp:
			ok = !p.Excl && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
		}
		if !ok {
			return false
		}
	}
	return true
}
