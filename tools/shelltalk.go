package tools

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"trajgen/sandbox"
)

// The prologue of a shell, on one line so that the line numbers of the command are right. State and command come over the
// socket and not as arguments: they may be longer than arguments can be, and a command that finds processes by their command
// line (pkill -f) would otherwise find its own shell.
//
// The command is evaluated with descriptor 3 closed. bash keeps a copy elsewhere, which is closed in every program that it
// starts, and restores it before the EXIT trap runs, whatever the command did with descriptors. The shell reports once: after
// the command, or in the trap when the command ends the shell. It first switches tracing (set -x) off and discards the trace of
// that.
const (
	setOnes = `"$SHELLOPTS:$BASHOPTS"`
	report  = `{ builtin set +x; builtin printf '\0'; builtin pwd -P || builtin printf '%s\n' "$PWD"; ` +
		`builtin printf '\0'; builtin declare -px; ` +
		`builtin printf '\0%s\0' ` + setOnes + `; builtin declare -f; builtin declare -Fx; builtin printf '\0'; ` +
		`builtin alias -p; builtin printf '\0\1'; } >&3 2>/dev/null`
	background = `builtin unset -f exec; exec 3>&-; builtin eval -- "$__trajgen_command"`
	// reportBase reports the state before the command.
	reportBase = `{ declare -px; printf '\0%s\0' ` + setOnes + `; } >&3`
	// reportNone replaces it when the state is known.
	reportNone = `builtin printf '\0\0' >&3`
)

var foreground = `builtin trap '{ builtin set +x; [[ -n ${__trajgen_status-} ]] || builtin eval "$__trajgen_report"; } 2>/dev/null' EXIT; ` +
	`{ builtin eval -- "$__trajgen_command"; } 3>&-; ` +
	`{ __trajgen_status=$?; builtin set +xe; builtin eval "$__trajgen_report"; } 2>/dev/null; builtin exit "$__trajgen_status"`

// noDirectory is the report when the shell cannot enter the call's directory.
const noDirectory = "\x00\x02"

// shellCommand returns a bash that reads its input from the socket, if it needs any.
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
		Dir:    layout.Tmp, // the shell changes its directory itself, as that directory may not exist
		Socket: true,
	}
}

// readInput returns shell code that reads a text up to a NUL. Up to a delimiter, bash reads byte by byte, so it gets the number
// of characters and reads them at once. Before version 5 it may not be able to; 0 says that the number is unknown.
func readInput(name string, characters int) string {
	rest := `IFS= read -r -d '' -u 3 `
	if characters == 0 {
		return rest + name
	}
	return fmt.Sprintf(`%s=; ((BASH_VERSINFO < 5)) || IFS= read -r -N %d -u 3 %[1]s; %[3]s__trajgen_rest; %[1]s+=$__trajgen_rest`, name, characters, rest)
}

// manyBytes is the length from which reading byte by byte takes longer than two changes of the locale.
const manyBytes = 1 << 10

// scriptInput returns the input of a shell that gets its command beside its state, and the number of characters of the state.
// The number depends on the locale unless all are ASCII; for other long texts, bytes are counted in the C locale.
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

// shellInput is scriptInput for a state that contains the command.
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

// maxReport bounds the state that the runner remembers, in bytes; a larger state is not passed on.
const maxReport = 1 << 20

// talk sends a shell its input and reads its report.
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
		_, _ = io.Copy(io.Discard, conn) // otherwise the shell would block on writing and never end
	}
	return got
}

// refused reports whether the shell could not enter the call's directory.
func (g given) refused(report []byte) bool {
	return g.workdir != "" && bytes.HasSuffix(report, []byte(noDirectory))
}

func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
