package tools

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// quietCommand is one that changes nothing that its shell would hand on. Most are: they run programs. Their shell does
// not report, which takes as long as starting a small program, and needs less of a prologue.
type quietCommand struct {
	programs []string // that the shell itself runs, builtins among them
	alone    bool     // the command begins with its only program, which can take the shell's place
}

const (
	// quietly runs a quiet command. All that is reported is where the shell is in case its directory was moved.
	quietly = `{ builtin eval -- "$__trajgen_command"; } 3>&-; __trajgen_status=$?; ` +
		`[[ . -ef $PWD ]] || builtin pwd -P >&3 2>/dev/null; builtin exit "$__trajgen_status"`
	// notQuiet is what a shell reports, and runs nothing, that finds an alias, or a function of a program's name. Only the
	// sandbox's environment can have brought it.
	notQuiet = "\x00\x04"
)

// check is shell code that looks for what makes the command another one than it seems.
func (q quietCommand) check() string {
	check := "if ((${#BASH_ALIASES[@]}))"
	for _, name := range q.programs {
		check += " || builtin declare -F " + name
	}
	return check + `; then builtin printf '\0\4' >&3; builtin exit; fi` + "\n"
}

// command is shell code that sets what quietly runs.
func (q quietCommand) command(command string) string {
	set := "__trajgen_command=" + quoteShell(command)
	if q.alone && slices.Contains(steady, q.programs[0]) {
		set += "; builtin hash " + q.programs[0] + ` && __trajgen_command="exec $__trajgen_command"`
	}
	return set
}

// steady are programs that take the place of the shell. Of any other it may have to say that it was killed or crashed,
// and mv could move the directory.
var steady = strings.Fields("awk basename cat chmod cmp comm cp cut date df diff dirname du egrep fgrep file find grep head jq ln ls " +
	"md5sum mkdir nl od paste readlink realpath rg rm rmdir sed seq sha256sum sort stat tac tail tee touch tr tree uniq wc which xxd")

// maxQuiet bounds the commands that are looked at; what is longer is a script, which hardly ever just runs programs.
const maxQuiet = 16 << 10

// maxPrograms bounds what is asked about functions.
const maxPrograms = 20

// quiet tells whether a command changes nothing that its shell would hand on. That is so when it runs nothing but
// programs and no word of it assigns to a variable; subshells may do what they like. What is not known to be harmless
// is not.
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

// still collects the programs of a command that changes nothing. Its methods tell whether that is so.
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
	for _, assign := range call.Assigns { // for the program alone
		if assign.Naked || assign.Index != nil || assign.Array != nil || !s.word(assign.Value) {
			return false
		}
	}
	name := call.Args[0].Lit()
	s.programs = append(s.programs, name)
	switch {
	case !programName.MatchString(name):
		return false
	case name == "printf": // may be told to assign
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

// The commands that are bash's own, and those of them that leave it as it is.
var (
	stillBuiltins = []string{"echo", "false", "pwd", "true"}
	builtins      = strings.Fields(". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs " +
		"disown enable eval exec exit export fc fg getopts hash help history jobs kill let local logout mapfile popd pushd read " +
		"readarray readonly return set shift shopt source suspend test times trap type typeset ulimit umask unalias unset wait")
)

// word tells whether nothing is assigned when a word is expanded.
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
			ok = !p.TempFile && !p.ReplyVar // which run in the shell itself
		case *syntax.ParamExp:
			ok = !p.Excl && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
		}
		if !ok {
			return false
		}
	}
	return true
}
