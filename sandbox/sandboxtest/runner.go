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

// roles are what a test program does under other names than its own.
var roles = map[string]func(args []string) error{}

// Role has this test program do something else than test when Again starts it. It is called by init functions.
func Role(name string, play func(args []string) error) { roles[name] = play }

// Init calls sandbox.Init, and plays the role that this program was started in. TestMain begins with it.
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

// Again is this test program once more, in a role.
func Again(role string, args ...string) *exec.Cmd {
	c := exec.Command("/proc/self/exe", args...)
	c.Args[0] = role
	return c
}

// ready is what a runner says.
const ready = "ready"

// Runner starts this test program in a role that opens sandboxes and ends in Ready, and returns when it does. It is killed
// with the test, if not before.
func Runner(t testing.TB, role string, args ...string) *exec.Cmd {
	t.Helper()
	c := Again(role, args...)
	c.Stderr = os.Stderr // the file itself: the wait for the runner then does not wait for others who have it
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
		time.Sleep(time.Hour) // select {} would be a deadlock where nothing else goes on
	}
}

// Hold is most of a runner: it opens sandboxes with three daemons in each, which sleep for a number of seconds, and is Ready.
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
	const quietly = " >/dev/null 2>&1"
	sleep := "sleep " + seconds
	return "setsid " + sleep + quietly + " & " + sleep + quietly + " & (" + sleep + " &)" + quietly
}

// Kill kills a runner at once. What it has started goes on.
func Kill(t testing.TB, runner *exec.Cmd) {
	t.Helper()
	if err := runner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = runner.Wait()
}

// Sleepers counts the processes of this machine that sleep for a number of seconds, by which a test knows its own.
func Sleepers(seconds string) int {
	return Processes(func(line string) bool { return strings.HasPrefix(line, "sleep\x00"+seconds+"\x00") })
}

// Processes counts those of this machine whose command line, in which a zero ends each word, is one that is meant.
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
