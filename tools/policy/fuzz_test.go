package policy_test

import (
	"regexp"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"trajgen/tools/policy"
)

// plain are words that mean the same with and without quotes.
var plain = regexp.MustCompile(`^[A-Za-z0-9_/.][A-Za-z0-9_/.-]*$`)

// quotings writes a word so that bash reads the same.
var quotings = []func(word string) string{
	func(word string) string { return "'" + word + "'" },
	func(word string) string { return `"` + word + `"` },
	func(word string) string { return `\` + word },
	func(word string) string { return "''" + word },
	func(word string) string { return word[:len(word)-1] + "'" + word[len(word)-1:] + "'" },
	func(word string) string { return "$'" + word + "'" },
	func(word string) string { return "${nothing:-" + word + "}" },
	func(word string) string { return "$(echo " + word + ")" },
}

// quoted are the ways to write a command with one of its words quoted.
func quoted(command string) []string {
	if strings.Contains(command, "alias") {
		return nil // a quoted word is not an alias
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(command), "")
	if err != nil {
		return nil
	}
	var all []string
	syntax.Walk(file, func(node syntax.Node) bool {
		if _, inner := node.(*syntax.CmdSubst); inner {
			return false // quotes within backquotes are another matter
		}
		call, ok := node.(*syntax.CallExpr)
		if !ok {
			return true
		}
		for _, word := range call.Args {
			text := word.Lit()
			from, to := word.Pos().Offset(), word.End().Offset()
			if !plain.MatchString(text) || command[from:to] != text {
				continue
			}
			for _, quote := range quotings {
				all = append(all, command[:from]+quote(text)+command[to:])
			}
		}
		return true
	})
	return all
}

// TestQuoting shows that quotes hide nothing.
func TestQuoting(t *testing.T) {
	n := 0
	for _, level := range []policy.Level{policy.Ask, policy.Block} {
		for _, command := range commands(t, level) {
			for _, other := range quoted(command) {
				n++
				if got := policy.Check(other, policy.Context{}); level.Worse(got.Verdict) {
					t.Errorf("Check(%q) = %s (%s), but it is %s as %q", other, got.Verdict, got.Rule, level, command)
				}
			}
		}
	}
	if n < 1000 {
		t.Errorf("only %d ways to quote were tried", n)
	}
}

func FuzzCheck(f *testing.F) {
	for _, level := range []policy.Level{policy.Allow, policy.Ask, policy.Block} {
		for _, command := range commands(f, level) {
			f.Add(command)
		}
	}
	f.Fuzz(func(t *testing.T, command string) {
		got := policy.Check(command, policy.Context{Dir: "/work", Home: "/home/me"})
		if again := policy.Check(command, policy.Context{Dir: "/work", Home: "/home/me"}); again != got {
			t.Errorf("Check(%q) = %v and then %v", command, got, again)
		}
		if got.Verdict != policy.Allow && (got.Rule == "" || got.Reason == "") {
			t.Errorf("Check(%q) = %+v without a rule and a reason", command, got)
		}
		if len(command) > 300 {
			return
		}
		for _, other := range quoted(command) {
			if verdict := policy.Check(other, policy.Context{Dir: "/work", Home: "/home/me"}); got.Verdict.Worse(verdict.Verdict) {
				t.Errorf("Check(%q) = %v, but %q is %v", other, verdict, command, got)
			}
		}
	})
}

// TestBounds shows that hostile text has an end for the judge: what is given up on needs somebody who agrees.
func TestBounds(t *testing.T) {
	deep := func(open, inner, close string) string {
		n := (policy.MaxCommand - len(inner)) / (len(open) + len(close))
		return strings.Repeat(open, n) + inner + strings.Repeat(close, n)
	}
	tests := map[string]struct{ command, rule string }{
		"subshells":      {deep("(", "ls", ")"), "too-complex"},
		"substitutions":  {deep("$(", "ls", ")"), "too-complex"},
		"quoted":         {deep(`"$(`, "ls", `)"`), "too-complex"},
		"blocks":         {deep("{ ", "ls", ";}"), "too-complex"},
		"braces":         {"echo " + deep("{a,", "b", "}")[:policy.MaxCommand-10], "too-complex"},
		"brace products": {"echo " + strings.Repeat("{a,b}", 1000), ""},
		"open braces":    {"echo " + strings.Repeat("{", 100_000), "too-complex"},
		"sequences":      {"echo {1..1000000000}{1..1000000000}", ""},
		"ifs":            {deep("if ls; then ", "ls", "; fi"), "too-complex"},
		"parameters":     {"echo " + deep("${a:-", "b", "}")[:policy.MaxCommand-10], "too-complex"},
		"arithmetic":     {"echo $((" + strings.Repeat("-", 100_000) + "1))", "unparsable"},
		"not":            {"[[ " + strings.Repeat("! ", 60_000) + "x ]]", ""},
		"parentheses":    {"echo $((" + strings.Repeat("(", 60_000) + "1" + strings.Repeat(")", 60_000) + "))", "too-complex"},
		"open only":      {strings.Repeat("(", 100_000), "too-complex"},
		"open arith":     {strings.Repeat("((", 60_000), "too-complex"},
		"backquotes":     {strings.Repeat("`", 100_000), "too-complex"},
		"lists":          {strings.Repeat("ls&&", 30_000) + "ls", "too-complex"},
		"pipes":          {strings.Repeat("ls|", 30_000) + "ls", "too-complex"},
		"lines":          {strings.Repeat("ls\n", 40_000), "too-complex"},
		"doubling":       {"a=xxxxxxxxxxxxxxxx;" + strings.Repeat("a=$a$a;", 1000) + "$a", "unknown-command"},
		"recursion":      {"f() { f; f; f; }; f", ""},
		"mutual":         {"f() { g; g; }; g() { f; f; }; f", ""},
		"evals":          {strings.Repeat("eval ", 20_000) + "ls", "too-complex"},
		"eval itself":    {"a='eval $a'; eval $a; x='eval \"$x$x\"'; eval \"$x\"", "too-complex"},
		"loops":          {strings.Repeat("for i in 1 2 3 4 5 6 7 8; do ", 30) + "ls" + strings.Repeat("; done", 30), "too-complex"},
		"choices":        {"if a; then x=1 y=1 z=1; else x=2 y=2 z=2; fi;" + strings.Repeat("echo $x$y$z${u:-1}${v:-2}${w:-3};", 1000), "too-complex"},
		"prefixes":       {strings.Repeat("sudo ", 20_000) + "ls", "too-complex"},
		"functions":      {strings.Repeat("f() { ", 10_000) + "ls" + strings.Repeat("; }", 10_000), "too-complex"},
		"heredocs":       {strings.Repeat("cat <<EOF\nx\nEOF\n", 5_000), "too-complex"},
		"redirections":   {"ls " + strings.Repeat(">a ", 30_000), ""},
		"patterns":       {"x=" + strings.Repeat("a", 4000) + "; echo ${x##" + strings.Repeat("*a", 50) + "b}", "too-complex"},
		"globs":          {strings.Repeat("*", 60_000) + " x", "unknown-command"},
		"tags":           {"echo " + strings.Repeat("\\", 100_001), ""},
		"xargs":          {"echo {1..9}{1..9}{1..9} | xargs -I{} sh -c 'echo {} | xargs -I{} sh -c \"echo {}\"'", "shell-code"},
		"parallel":       {strings.Repeat("parallel ", 3000) + "rm", "too-complex"},
		"downloads":      {"curl " + strings.Repeat("-O http://a/b ", 8000), ""},
		"uploads":        {"wget " + strings.Repeat("http://a/b ", 10_000), ""},
		"assignments":    {"awk " + strings.Repeat("-v a=b ", 10_000) + "'BEGIN{system(a)}'", ""},
		"links":          {strings.Repeat("ln -s a b;ln -s b a;", 1000) + "rm b/x", "too-complex"},
		"a megabyte":     {strings.Repeat("$(", 1<<19), "too-long"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := policy.Check(tt.command, policy.Context{}); got.Rule != tt.rule {
				t.Errorf("it is %s (%s), want rule %q", got.Verdict, got.Rule, tt.rule)
			}
			canonical := policy.Canonical(tt.command)
			if again := policy.Canonical(canonical); again != canonical {
				t.Errorf("written the same way it is another: %.200q", again)
			}
			for _, program := range []string{"bash", "cat"} {
				got, _ := policy.Typed{Command: program}.Add(tt.command, nil)
				if program == "cat" && got.Verdict != policy.Allow {
					t.Errorf("as input of cat it is %s (%s)", got.Verdict, got.Rule)
				}
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, bench := range []struct{ name, command string }{
		{"word", "ls"},
		{"ordinary", "cd src && go test ./... 2>&1 | tail -n 20"},
		{"loop", `for f in *.txt; do mv "$f" "${f%.txt}.md"; done`},
		{"git", "git add -A && git commit -m 'a message' && git push origin main"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				policy.Check(bench.command, policy.Context{Dir: "/work"})
			}
		})
	}
}
