package tools

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"trajgen/sandbox"
)

// The prologue of a shell, on one line so that the line numbers of the command are right. State and command come over the
// socket and not as arguments: they may be longer than arguments can be, and a command that finds processes by their command
// line (pkill -f) would otherwise find its own shell.
//
// The command is evaluated with descriptor 3 closed. bash keeps a copy under another number, which is closed in every program that it
// starts, and restores it before the EXIT trap runs, whatever the command did with descriptors. The shell reports once: after
// the command, or in the trap when the command ends the shell. It first switches tracing (set -x) off and discards the trace of
// that.
const (
	setOnes = `"$SHELLOPTS:$BASHOPTS"`
	// report has no more writes than it needs: each of them wakes the runner.
	report = `{ builtin set +x; builtin declare -px; builtin printf '\0%s\0' ` + setOnes + `; builtin declare -f; builtin declare -Fx; ` +
		`builtin printf '\0'; builtin alias -p; builtin printf '\0'; builtin pwd -P || builtin printf '%s\n' "$PWD"; ` +
		`builtin printf '\0\1'; } >&3 2>/dev/null`
	background = `builtin unset -f exec; exec 3>&-; builtin eval -- "$__trajgen_command"`
	foreground = `builtin trap '{ builtin set +x; [[ -n ${__trajgen_status-} ]] || builtin eval "$__trajgen_report"; } 2>/dev/null' EXIT; ` +
		`{ builtin eval -- "$__trajgen_command"; } 3>&-; ` +
		`{ __trajgen_status=$?; builtin set +xe; builtin eval "$__trajgen_report"; } 2>/dev/null; builtin exit "$__trajgen_status"`
	// readState reads the given number of bytes and then, as bash before version 5 may not be able to do that, up to a NUL. The
	// latter alone would read byte by byte. Only in the C locale is a character one byte.
	readState = `{ __trajgen_state=; ((BASH_VERSINFO < 5)) || LC_ALL=C IFS= read -r -N %d -u 3 __trajgen_state; ` +
		`IFS= read -r -d '' -u 3 __trajgen_rest; __trajgen_state+=$__trajgen_rest; } 2>/dev/null; `
	// reportBase reports the state before the command.
	reportBase = `{ declare -px; printf '\0%s\0' ` + setOnes + `; } >&3`
	// refuseDirectory reports that the shell cannot enter the call's directory.
	refuseDirectory = `builtin printf '\0\2' >&3; builtin exit 1`
	noDirectory     = "\x00\x02"
)

// shellCommand returns a bash that reads its state and its command from the socket, or the program that needs no shell.
func (g given) shellCommand(prologue string, layout sandbox.Layout) sandbox.Command {
	if g.direct != nil {
		return *g.direct
	}
	prologue = `__trajgen_report=` + quoteShell(report) + `; ` + fmt.Sprintf(readState, len(g.state)) +
		`builtin eval "$__trajgen_state"; ` + prologue
	return sandbox.Command{
		Args:   []string{"bash", "--norc", "--noprofile", "-c", prologue, "bash"},
		Dir:    layout.Tmp, // the shell changes its directory itself, as that directory may not exist
		Socket: true,
	}
}

// maxReport bounds the state that the runner remembers, in bytes; a larger state is not passed on.
const maxReport = 1 << 20

// talk sends a shell its state and reads its report.
func (g given) talk(proc sandbox.Process) []byte {
	conn := proc.Socket()
	if conn == nil {
		return nil
	}
	if _, err := io.WriteString(conn, g.state+"\x00"); err != nil {
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
