package sandboxtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
)

// roles are the other main functions of a test program.
var roles = map[string]func(args []string) error{}

// Role registers what this test program does when Again starts it in a role. It is called by init functions.
func Role(name string, play func(args []string) error) { roles[name] = play }

// Init calls sandbox.Init, and runs the role that this program was started in. TestMain begins with it.
func Init() {
	sandbox.Init()
	play, ok := roles[os.Args[0]]
	if !ok {
		return
	}
	if err := play(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Again returns a command that starts this test program in a role.
func Again(role string, args ...string) *exec.Cmd {
	c := exec.Command("/proc/self/exe", args...)
	c.Args[0] = role
	return c
}

// ready is what a runner prints when it is ready.
const ready = "ready"

// Runner starts this test program in a role that opens sandboxes and calls Ready at its end, and returns when it does. The
// runner is killed with the test at the latest.
func Runner(t testing.TB, role string, args ...string) *exec.Cmd {
	t.Helper()
	c := Again(role, args...)
	c.Stderr = os.Stderr // the file itself, so that waiting for the runner does not wait for its children
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != ready+"\n" {
		t.Fatalf("the runner said %q, %v", line, err)
	}
	return c
}

// Ready lets Runner return, and waits for the end.
func Ready() error {
	fmt.Println(ready)
	for {
		time.Sleep(time.Hour) // select {} would be a deadlock without other goroutines
	}
}

// Hold is most of a runner: it opens sandboxes with three daemons each, which sleep for a number of seconds, and calls Ready.
func Hold(b sandbox.Backend, boxes int, seconds string) error {
	ctx := context.Background()
	for i := range boxes {
		sb, err := b.Open(ctx, sandbox.Spec{ID: fmt.Sprintf("held-%d", i)})
		if err != nil {
			return err
		}
		if _, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"sh", "-c", Daemons(seconds)}}, sandbox.RunOptions{}); err != nil {
			return err
		}
	}
	return Ready()
}

// Daemons is a script that leaves three processes behind, which sleep for a number of seconds.
func Daemons(seconds string) string {
	const silent = " >/dev/null 2>&1"
	sleep := "sleep " + seconds
	return "setsid " + sleep + silent + " & " + sleep + silent + " & (" + sleep + " &)" + silent
}

// Kill kills a runner at once. Processes that it has started go on.
func Kill(t testing.TB, runner *exec.Cmd) {
	t.Helper()
	if err := runner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = runner.Wait()
}

// Sleepers counts the processes of this machine that sleep for a number of seconds, by which a test recognises its own.
func Sleepers(seconds string) int {
	return Processes(func(line string) bool { return strings.HasPrefix(line, "sleep\x00"+seconds+"\x00") })
}

// Processes counts the processes of this machine whose command line, with a zero after each word, satisfies meant.
func Processes(meant func(line string) bool) int {
	n := 0
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		if line, err := os.ReadFile(name); err == nil && meant(string(line)) {
			n++
		}
	}
	return n
}
