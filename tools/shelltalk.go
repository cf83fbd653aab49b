package tools

import (
	"bytes"
	"fmt"
	"io"
	"strings"

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
	readState = `IFS= read -r -d '' -u 3 __trajgen_state; eval "$__trajgen_state"; `
	setOnes   = `"$SHELLOPTS:$BASHOPTS"`
	report    = `{ builtin set +x; builtin printf '\0'; builtin pwd -P || builtin printf '%s\n' "$PWD"; ` +
		`builtin printf '\0'; builtin declare -px; ` +
		`builtin printf '\0%s\0' ` + setOnes + `; builtin declare -f; builtin declare -Fx; builtin printf '\0'; ` +
		`builtin alias -p; builtin printf '\0\1'; } >&3 2>/dev/null`
	background = readState + `builtin unset -f exec; exec 3>&-; builtin eval -- "$__trajgen_command"`
	// reportBase is how a shell found its state.
	reportBase = `{ declare -px; printf '\0%s\0' ` + setOnes + `; } >&3` + "\n"
)

var foreground = `__trajgen_report=` + quoteShell(report) + `; ` + readState +
	`builtin trap '{ builtin set +x; [[ -n ${__trajgen_status-} ]] || builtin eval "$__trajgen_report"; } 2>/dev/null' EXIT; ` +
	`{ builtin eval -- "$__trajgen_command"; } 3>&-; ` +
	`{ __trajgen_status=$?; builtin set +xe; builtin eval "$__trajgen_report"; } 2>/dev/null; builtin exit "$__trajgen_status"`

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

// shellInput is what a shell reads: code to evaluate, which reads the command in turn. bash reads up to a delimiter
// byte by byte, so what is long comes by its length, which it reads in pieces (but not before version 4.1).
func shellInput(state, command string) string {
	if len(state)+len(command) < 8<<10 {
		return `IFS= read -r -d '' -u 3 __trajgen_command` + "\n" + state + "\x00" + command + "\x00"
	}
	return fmt.Sprintf(`LC_ALL=C IFS= read -r -N %d -u 3 __trajgen_state
LC_ALL=C IFS= read -r -N %d -u 3 __trajgen_command
builtin eval "$__trajgen_state"`+"\x00%s%s", len(state), len(command), state, command)
}

// maxReport bounds what a shell can make the runner remember; a state that is larger is not handed on.
const maxReport = 1 << 20

// talk hands a shell its input and reads its report.
func (g given) talk(proc sandbox.Process) []byte {
	conn := proc.Socket()
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
