package policy_test

import (
	"strings"
	"testing"

	"trajgen/tools/policy"
)

func TestTyped(t *testing.T) {
	tests := []struct {
		name    string
		command string
		give    []string
		want    policy.Level // of the last one
	}{
		{"a harmless line", "bash", []string{"ls\n"}, policy.Allow},
		{"a line in pieces", "bash", []string{"rm ", "-rf ", "/\n"}, policy.Block},
		{"a line over two", "bash", []string{"rm \\\n", "-rf /\n"}, policy.Block},
		{"a variable of before", "bash", []string{"d=/\n", "rm -rf $d\n"}, policy.Block},
		{"a function of before", "sudo bash", []string{"f() {\n", "rm -rf $1\n", "}\n", "f /\n"}, policy.Block},
		{"a loop that is not finished", "bash", []string{"for i in 1 2; do\n"}, policy.Allow},
		{"a loop that is", "bash", []string{"for i in / /etc; do\n", "rm -rf $i\n", "done\n"}, policy.Block},
		{"a directory of before", "bash", []string{"cd /\n", "rm -f *\n"}, policy.Block},
		{"a here-document", "bash", []string{"sh <<E\n", "rm -rf /\n", "E\n"}, policy.Block},
		{"what is erased", "bash", []string{"rm -rf /x\x7f\r"}, policy.Block},
		{"what is cleared", "bash", []string{"reboot", "\x15ls\r"}, policy.Allow},
		{"what is completed", "bash", []string{"rm -rf /et\t\n"}, policy.Block},
		{"an interrupt", "bash", []string{"\x03"}, policy.Allow},
		{"keys that move", "bash", []string{"m -rf x\x01r\n"}, policy.Ask},
		{"a shell elsewhere", "ssh host", []string{"reboot\n"}, policy.Block},
		{"input of a program", "cat > x", []string{"rm -rf /\n"}, policy.Allow},
		{"code for an interpreter", "python3", []string{"import os; os.system('rm -rf /')\n"}, policy.Block},
		{"input of a script", "python3 x.py", []string{"rm -rf /\n"}, policy.Allow},
		{"SQL", "psql", []string{"DROP TABLE users;\n"}, policy.Ask},
		{"a query", "psql", []string{"SELECT 1;\n"}, policy.Allow},
		{"without end", "bash", []string{strings.Repeat("x", 2*policy.MaxCommand), "x"}, policy.Ask},
		{"after a line without end", "bash", []string{strings.Repeat("x", 2*policy.MaxCommand), "\n", "ls\n"}, policy.Allow},
		{"behind much space", "bash", []string{"rm" + strings.Repeat(" ", policy.MaxCommand/2), "-rf /\n"}, policy.Block},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			typed := policy.Typed{Command: tt.command}
			var got policy.Verdict
			for _, data := range tt.give {
				got, typed = typed.Add(data, nil)
			}
			if got.Verdict != tt.want {
				t.Errorf("%q into %s is %s (%s), want %s", tt.give, tt.command, got.Verdict, got.Rule, tt.want)
			}
		})
	}
}

// TestExcept shows that what is agreed to hides nothing else.
func TestExcept(t *testing.T) {
	except := policy.Context{Except: []string{"rm-recursive", "rm-system"}}
	for command, want := range map[string]policy.Level{
		"rm -r build":                     policy.Allow,
		"rm -r build && git push --force": policy.Ask,
		"rm -r build /":                   policy.Block,
	} {
		if got := policy.Check(command, except); got.Verdict != want {
			t.Errorf("Check(%q) = %s (%s), want %s", command, got.Verdict, got.Rule, want)
		}
	}
}

func TestCheckCode(t *testing.T) {
	for code, want := range map[string]policy.Level{
		"import os\nos.system('rm -rf /')":                        policy.Block,
		"import subprocess\nsubprocess.run(['rm', '-rf', '/'])":   policy.Block,
		"import os\nos.system('rm -rf ' + '/etc')":                policy.Block,
		"import shutil\nshutil.rmtree('/home')":                   policy.Block,
		"import shutil\nshutil.rmtree('build')":                   policy.Allow,
		"import subprocess\nsubprocess.run(['git', 'status'])":    policy.Allow,
		"import subprocess\nsubprocess.run('git push -f')":        policy.Allow, // nothing can be asked of a script as a whole
		"print('rm -rf /')":                                       policy.Allow,
		"open('Dockerfile').write('RUN rm -rf /var/lib/apt/*')\n": policy.Allow,
	} {
		if got := policy.CheckCode(code, policy.Context{}); got.Verdict != want {
			t.Errorf("CheckCode(%q) = %s (%s), want %s", code, got.Verdict, got.Rule, want)
		}
	}
}
