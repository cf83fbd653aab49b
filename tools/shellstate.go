package tools

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"trajgen/registry"
	"trajgen/sandbox"
)

// shellState is what the shells of an episode hand on to each other: the working directory and the exported
// environment. Every command has a bash of its own; it gets the state at its start and reports it at its end over
// descriptor 3, which its commands do not see.
type shellState struct {
	mu    sync.Mutex // guards the rest
	dir   string     // "" is the sandbox's working directory
	base  []string   // how the first shell found its environment: one declaration each
	shown []string   // how the last shell left it; nil while nothing was reported
}

func shellOf(s *registry.Session) *shellState {
	return registry.State(s, "tools.shell", func() *shellState { return &shellState{} })
}

// directory is where the next command starts.
func (s *shellState) directory(layout sandbox.Layout) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" {
		return layout.Workdir
	}
	return s.dir
}

// The prologue of a shell, on one line so that the command's own line numbers are right. State and command come over
// the socket and not as arguments: they may be longer than an argument, and a command that looks for processes by
// their command line (pkill -f) would otherwise find its own shell.
//
// The command is evaluated with descriptor 3 closed. bash keeps the original elsewhere, closed in every program that
// it starts, and has put it back when the EXIT trap runs, whatever the command did with descriptors. The report is
// made once: after the command, or by the trap when the command ends the shell. Tracing (set -x) is switched off
// first and its last line thrown away.
const (
	readState = `IFS= read -r -d '' -u 3 __trajgen_state; IFS= read -r -d '' -u 3 __trajgen_command; ` +
		`eval "$__trajgen_state"; `
	report = `{ set +x; builtin printf '\0'; builtin pwd -P; builtin printf '\0'; ` +
		`builtin declare -px; builtin printf '\0\1'; } >&3 2>/dev/null`
	foreground = readState +
		`trap '{ set +x; [[ -n ${__trajgen_status-} ]] || __trajgen_report; } 2>/dev/null' EXIT; ` +
		`__trajgen_report() ` + report + `; ` +
		`{ eval -- "$__trajgen_command"; } 3>&-; ` +
		`{ __trajgen_status=$?; set +xe; __trajgen_report; } 2>/dev/null; exit "$__trajgen_status"`
	background = readState +
		`exec 3>&-; exec bash --norc --noprofile -c "$__trajgen_command"`
)

// noDirectory is what a shell reports when the directory that the call asked for cannot be entered.
const noDirectory = "\x00\x02"

// shellCommand is a bash that waits for its state and command on the socket.
func shellCommand(prologue string, layout sandbox.Layout) sandbox.Command {
	return sandbox.Command{
		Args:   []string{"bash", "--norc", "--noprofile", "-c", prologue, "bash"},
		Dir:    layout.Tmp, // the shell goes where it belongs by itself, as that directory may be gone
		Socket: true,
	}
}

// input is what a shell reads from the socket. A directory that was asked for must exist; the one that an earlier
// command left is given up for the sandbox's own when it is gone.
func (s *shellState) input(layout sandbox.Layout, workdir, command string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	if s.base == nil {
		b.WriteString("{ declare -px; printf '\\0'; } >&3\n")
	} else {
		b.WriteString("printf '\\0' >&3\n")
	}
	b.WriteString("{ ")
	if s.dir != "" {
		b.WriteString("cd -- " + quoteShell(s.dir) + " || ")
	}
	b.WriteString("cd -- " + quoteShell(layout.Workdir) + "\n")
	if workdir != "" {
		b.WriteString("cd -- " + quoteShell(expandHome(workdir, layout)) + ` >/dev/null || { printf '\0\2' >&3; exit 1; }` + "\n")
	}
	b.WriteString("unset -v OLDPWD; declare -x OLDPWD\n" + s.changes() + "} 2>/dev/null\nunset -v __trajgen_state\n")
	return b.String() + "\x00" + command + "\x00"
}

// changes is shell code that turns the first environment into the last.
func (s *shellState) changes() string {
	if s.shown == nil {
		return ""
	}
	left := map[string]bool{}
	for _, each := range s.shown {
		left[declared(each)] = true
	}
	var b strings.Builder
	found := map[string]bool{}
	for _, each := range s.base {
		found[each] = true
		if name := declared(each); !left[name] {
			b.WriteString("unset -v " + name + "\n")
		}
	}
	for _, each := range s.shown {
		if !found[each] {
			b.WriteString(each + "\n")
		}
	}
	return b.String()
}

// maxReport bounds what a shell can make the runner remember.
const maxReport = 256 << 10

// serve hands a shell its input and reads its report. workdir tells a call with a directory of its own, whose end is
// not handed on. It returns false when that directory does not exist.
func (s *shellState) serve(_ context.Context, proc sandbox.Process, input string, workdir string) bool {
	conn := proc.Socket()
	if _, err := io.WriteString(conn, input); err != nil {
		return true
	}
	var got []byte
	buf := make([]byte, 4096)
	for len(got) < maxReport && !bytes.HasSuffix(got, []byte("\x00\x01")) && !bytes.HasSuffix(got, []byte(noDirectory)) {
		n, err := conn.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			break
		}
	}
	if workdir != "" && bytes.HasSuffix(got, []byte(noDirectory)) {
		return false
	}
	s.remember(got, workdir == "")
	return true
}

// remember takes over a report: the first environment, then directory and environment at the end. A command that
// replaced or killed its shell reports nothing at its end, and the state stays as it was.
func (s *shellState) remember(got []byte, moved bool) {
	parts := strings.Split(string(got), "\x00")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base == nil && len(parts) > 1 {
		s.base = declarations(parts[0])
	}
	if len(parts) != 5 || parts[4] != "\x01" {
		return
	}
	if moved {
		s.dir = strings.TrimSuffix(parts[2], "\n")
	}
	s.shown = declarations(parts[3])
}

var (
	declaration = regexp.MustCompile(`^declare -[A-Za-z-]+ ([A-Za-z_][A-Za-z0-9_]*)(=|$)`)
	// What every shell sets for itself.
	ownVariables = []string{"PWD", "SHLVL", "_", "SHELLOPTS", "BASHOPTS"}
)

func declared(line string) string {
	if match := declaration.FindStringSubmatch(line); match != nil {
		return match[1]
	}
	return ""
}

// declarations cuts the output of declare -px. A value of several lines stays with its name.
func declarations(text string) []string {
	var starts []int
	at := 0
	for line := range strings.Lines(text) {
		if declared(strings.TrimSuffix(line, "\n")) != "" {
			starts = append(starts, at)
		}
		at += len(line)
	}
	all := []string{}
	for i, start := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		each := strings.TrimSuffix(text[start:end], "\n")
		if name := declared(each); !slices.Contains(ownVariables, name) && !strings.HasPrefix(name, "__trajgen") {
			all = append(all, each)
		}
	}
	return all
}

func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
