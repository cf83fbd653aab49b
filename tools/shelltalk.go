package tools

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"trajgen/sandbox"
)

// The prologue of a shell, on one line so that the command's own line numbers are right. State and command come over
// the socket and not as arguments: they may be longer than an argument, and a command that looks for processes by
// their command line (pkill -f) would otherwise find its own shell.
//
// The command is evaluated with descriptor 3 closed. bash keeps the original elsewhere, closed in every program that
// it starts, and has put it back when the EXIT trap runs, whatever the command did with descriptors. The report is
// made once: after the command, or by the trap when the command ends the shell. Tracing (set -x) is switched off
// first and its last line thrown away.
const (
	setOnes = `"$SHELLOPTS:$BASHOPTS"`
	report  = `{ builtin set +x; builtin printf '\0'; builtin pwd -P || builtin printf '%s\n' "$PWD"; ` +
		`builtin printf '\0'; builtin declare -px; ` +
		`builtin printf '\0%s\0' ` + setOnes + `; builtin declare -f; builtin declare -Fx; builtin printf '\0'; ` +
		`builtin alias -p; builtin printf '\0\1'; } >&3 2>/dev/null`
	background = `builtin unset -f exec; exec 3>&-; builtin eval -- "$__trajgen_command"`
	// reportBase is how a shell found its state.
	reportBase = `{ declare -px; printf '\0%s\0' ` + setOnes + `; } >&3`
	// reportNone stands in its place when it is known.
	reportNone = `builtin printf '\0\0' >&3`
)

var foreground = `builtin trap '{ builtin set +x; [[ -n ${__trajgen_status-} ]] || builtin eval "$__trajgen_report"; } 2>/dev/null' EXIT; ` +
	`{ builtin eval -- "$__trajgen_command"; } 3>&-; ` +
	`{ __trajgen_status=$?; builtin set +xe; builtin eval "$__trajgen_report"; } 2>/dev/null; builtin exit "$__trajgen_status"`

// noDirectory is what a shell reports when the directory that the call asked for cannot be entered.
const noDirectory = "\x00\x02"

// shellCommand is a bash that waits for what it is given on the socket, unless none is needed.
func (g given) shellCommand(prologue string, layout sandbox.Layout) sandbox.Command {
	if g.direct != nil {
		return *g.direct
	}
	read := readInput("__trajgen_state", g.pieces) + `; builtin eval "$__trajgen_state"; `
	if g.quiet {
		prologue = read + quietly
	} else {
		prologue = `__trajgen_report=` + quoteShell(report) + `; ` + read + prologue
	}
	return sandbox.Command{
		Args:   []string{"bash", "--norc", "--noprofile", "-c", prologue, "bash"},
		Dir:    layout.Tmp, // the shell goes where it belongs by itself, as that directory may be gone
		Socket: true,
	}
}

// readInput is shell code that reads a text that ends with a NUL. bash reads up to a delimiter byte by byte, so it is
// told how many characters there are and takes them at once. Before version 5 it may not be able to, and 0 says that the
// number is unknown.
func readInput(name string, characters int) string {
	rest := `IFS= read -r -d '' -u 3 `
	if characters == 0 {
		return rest + name
	}
	return fmt.Sprintf(`%s=; ((BASH_VERSINFO < 5)) || IFS= read -r -N %d -u 3 %[1]s; %[3]s__trajgen_rest; %[1]s+=$__trajgen_rest`, name, characters, rest)
}

// manyBytes is from where on reading byte by byte costs more than two changes of the locale.
const manyBytes = 1 << 10

// scriptInput is what a shell reads that gets its command beside its state, and how many characters the state has. How
// many there are depends on the locale unless all are ASCII; of other texts that are long, bytes are counted in C's.
func scriptInput(state, command string) (input string, characters int) {
	switch {
	case isASCII(state) && isASCII(command):
		state = readInput("__trajgen_command", len(command)) + "\n" + state
		return state + "\x00" + command + "\x00", len(state)
	case len(state)+len(command) < manyBytes:
		return readInput("__trajgen_command", 0) + "\n" + state + "\x00" + command + "\x00", 0
	}
	return fmt.Sprintf(`LC_ALL=C IFS= read -r -N %d -u 3 __trajgen_state
LC_ALL=C IFS= read -r -N %d -u 3 __trajgen_command
builtin eval "$__trajgen_state"`+"\x00%s%s", len(state), len(command), state, command), 0
}

// shellInput is scriptInput of a state that has the command in it.
func shellInput(state string) (input string, characters int) {
	switch {
	case isASCII(state):
		return state + "\x00", len(state)
	case len(state) < manyBytes:
		return state + "\x00", 0
	}
	return fmt.Sprintf(`LC_ALL=C IFS= read -r -N %d -u 3 __trajgen_state
builtin eval "$__trajgen_state"`+"\x00%s", len(state), state), 0
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// maxReport bounds what a shell can make the runner remember; a state that is larger is not handed on.
const maxReport = 1 << 20

// talk hands a shell its input and reads its report.
func (g given) talk(proc sandbox.Process) []byte {
	conn := proc.Socket()
	if conn == nil {
		return nil
	}
	if _, err := io.WriteString(conn, g.input); err != nil {
		return nil
	}
	var got []byte
	buf := make([]byte, 16<<10)
	for len(got) < maxReport && !bytes.HasSuffix(got, []byte("\x00\x01")) && !g.refused(got) {
		n, err := conn.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			return got
		}
	}
	if len(got) >= maxReport {
		_, _ = io.Copy(io.Discard, conn) // or the shell would wait for a reader and never end
	}
	return got
}

// refused tells whether the directory that was asked for could not be entered.
func (g given) refused(report []byte) bool {
	return g.workdir != "" && bytes.HasSuffix(report, []byte(noDirectory))
}

func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
