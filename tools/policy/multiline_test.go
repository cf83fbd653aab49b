package policy_test

import (
	"strings"
	"testing"

	"trajgen/tools/policy"
)

func TestCheckLines(t *testing.T) {
	tests := []struct {
		name string
		give string
		want policy.Level
	}{
		{"a heredoc to a shell", "bash <<EOF\nrm -rf /\nEOF", policy.Block},
		{"a quoted heredoc to a shell", "bash <<'EOF'\na=rm\n$a -rf /\nEOF", policy.Block},
		{"a harmless heredoc to a shell", "sh <<EOF\nls\nEOF", policy.Ask},
		{"a heredoc to an interpreter", "python3 <<EOF\nprint(1)\nEOF", policy.Ask},
		{"a heredoc to an interpreter with a dash", "python3 - <<'EOF'\nprint(1)\nEOF", policy.Ask},
		{"a heredoc to node", "node <<EOF\nconsole.log(1)\nEOF", policy.Ask},
		{"a heredoc to a file", "cat > x.py <<'EOF'\nimport os\nos.system('rm -rf /')\nEOF", policy.Allow},
		{"a heredoc to a file that runs", "cat > x.sh <<'EOF'\n#!/bin/bash\nrm -rf /\nEOF\nbash x.sh", policy.Block},
		{"a heredoc that substitutes", "cat <<EOF\n$(rm -rf /)\nEOF", policy.Block},
		{"a quoted heredoc does not", "cat <<'EOF'\n$(rm -rf /)\nEOF", policy.Allow},
		{"a heredoc to ssh", "ssh host <<EOF\nrm -rf /\nEOF", policy.Block},
		{"a heredoc through a pipe", "cat <<EOF | sh\nrm -rf /\nEOF", policy.Block},
		{"a heredoc of SQL", "psql <<EOF\nDROP TABLE users;\nEOF", policy.Ask},
		{"SQL over two lines", "DELETE FROM users\nWHERE id = 1", policy.Allow},
		{"SQL over two lines to a client", "psql -c 'DELETE FROM users\nWHERE id = 1'", policy.Allow},
		{"SQL with the condition in a comment", "psql -c 'DELETE FROM users -- WHERE id = 1'", policy.Ask},
		{"a line before an error", "rm -rf /\necho 'unterminated", policy.Block},
		{"an error alone", "ls\necho 'unterminated", policy.Ask},
		{"a continued line", "rm \\\n -rf \\\n /", policy.Block},
		{"a function over lines", "clean() {\n  rm -rf \"$1\"\n}\nclean /", policy.Block},
		{"a script", "set -e\ncd src\nmake\ngit status\n", policy.Allow},
		{"carriage returns", "ls\r\nls\r\n", policy.Allow},
		{"a NUL", "r\x00m -rf /", policy.Block},
		{"terminal escapes", "\x1b[31mrm\x1b[0m -rf /", policy.Block},
		{"full width", "ｒｍ -rf /", policy.Block},
		{"invisible characters", "r\u200bm -rf /", policy.Block},
		{"letters of other scripts", "echo 你好 > x.txt", policy.Allow},
		{"too long", "ls " + strings.Repeat("x", policy.MaxCommand), policy.Ask},
		{"as long as can be", "ls " + strings.Repeat("x", policy.MaxCommand-3), policy.Allow},
		{"nothing", "", policy.Allow},
		{"a comment", "# rm -rf /", policy.Allow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := policy.Check(tt.give, policy.Context{}); got.Verdict != tt.want {
				t.Errorf("Check(%.100q) = %s (%s), want %s", tt.give, got.Verdict, got.Rule, tt.want)
			}
		})
	}
}

func TestCheckContext(t *testing.T) {
	tests := []struct {
		name string
		give string
		ctx  policy.Context
		want policy.Level
	}{
		{"everything at the root", "rm -rf *", policy.Context{Dir: "/"}, policy.Block},
		{"everything in the workspace", "rm -rf *", policy.Context{Dir: "/w/x"}, policy.Ask},
		{"everything in a workspace that is the home", "rm -rf *", policy.Context{Dir: "/w/x", Home: "/w/x"}, policy.Ask},
		{"up to the root", "rm -rf ../..", policy.Context{Dir: "/w/x"}, policy.Block},
		{"up and down again", "rm -rf ../../etc", policy.Context{Dir: "/w/x"}, policy.Block},
		{"a known home", "rm -rf /data/me", policy.Context{Home: "/data/me"}, policy.Block},
		{"what holds the home", "rm -rf /data", policy.Context{Home: "/data/me"}, policy.Block},
		{"what an earlier call exported", "$a -rf /", policy.Context{Setup: `declare -x a="rm"`}, policy.Block},
		{"a directory that was exported", `rm -rf "$D"`, policy.Context{Setup: "declare -x D=\"/\""}, policy.Block},
		{"the setup itself is not judged", "ls", policy.Context{Setup: "x=$(rm -rf /)"}, policy.Allow},
		{"a relative file in /etc", "echo x > hosts", policy.Context{Dir: "/etc"}, policy.Ask},
		{"a relative file", "echo x > hosts", policy.Context{Dir: "/w/x"}, policy.Allow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := policy.Check(tt.give, tt.ctx); got.Verdict != tt.want {
				t.Errorf("Check(%q, %+v) = %s (%s), want %s", tt.give, tt.ctx, got.Verdict, got.Rule, tt.want)
			}
		})
	}
}
