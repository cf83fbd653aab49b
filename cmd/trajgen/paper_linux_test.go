package main

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// pseudoTerminal is a terminal of 120 columns.
func pseudoTerminal(t *testing.T) *os.File {
	_, follower := pseudoTerminals(t)
	return follower
}

// pseudoTerminals are both ends of one.
func pseudoTerminals(t *testing.T) (leader, follower *os.File) {
	t.Helper()
	leader, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there are no terminals here:", err)
	}
	t.Cleanup(func() { leader.Close() })
	err = unix.IoctlSetPointerInt(int(leader.Fd()), unix.TIOCSPTLCK, 0)
	if err == nil {
		err = unix.IoctlSetWinsize(int(leader.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 120})
	}
	number, err2 := unix.IoctlGetInt(int(leader.Fd()), unix.TIOCGPTN)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	follower, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no terminals here:", err)
	}
	t.Cleanup(func() { follower.Close() })
	return leader, follower
}

func TestPaper(t *testing.T) {
	file := pseudoTerminal(t)
	for _, tt := range []struct {
		term, noColor string
		color, bar    bool
	}{{"xterm", "", true, true}, {"xterm", "1", false, true}, {"dumb", "", false, false}} {
		t.Setenv("TERM", tt.term)
		t.Setenv("NO_COLOR", tt.noColor)
		width, color := paper(file)
		if _, bar := terminal(file); width != 120 || color != tt.color || bar != tt.bar {
			t.Errorf("TERM=%s NO_COLOR=%s: width %d, color %v, bar %v; want %+v", tt.term, tt.noColor, width, color, bar, tt)
		}
	}
	if width, color := paper(new(bytes.Buffer)); width != 0 || color {
		t.Errorf("where there is no terminal: width %d, color %v", width, color)
	}
}
