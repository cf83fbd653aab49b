package carry_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/carry"
	_ "trajgen/sandbox/native"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// TestCopy copies files from one sandbox to another, under another name, over what is there, and into one that is too small.
func TestCopy(t *testing.T) {
	t.Parallel()
	backend, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backend.Close() })
	open := func(id string, disk int64) sandbox.Sandbox {
		sb, err := backend.Open(t.Context(), sandbox.Spec{ID: id, Limits: sandbox.Limits{Disk: disk}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sb.Close() })
		return sb
	}
	bash := func(sb sandbox.Sandbox, line string) string {
		t.Helper()
		result, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"bash", "-c", line}}, sandbox.RunOptions{Merge: true})
		if err != nil || result.Exit.Code != 0 {
			t.Fatalf("%s: %+v, %v: %s", line, result.Exit, err, result.Stdout.Bytes())
		}
		return strings.TrimSpace(string(result.Stdout.Bytes()))
	}
	from, to, small := open("from", 64<<20), open("to", 64<<20), open("small", 2<<20)
	bash(from, `mkdir -p out/deep; echo 42 > out/deep/x; chmod 750 out/deep/x; ln -s /etc/passwd out/link; mkfifo out/pipe; head -c 9M /dev/zero > out/large`)
	bash(to, `mkdir -p to; echo old > to/link; echo kept > to/mine`)
	work := from.Layout().Workdir
	if err := carry.Copy(t.Context(), from, work+"/out", to, work+"/to"); err != nil {
		t.Fatal(err)
	}
	got := bash(to, `cat to/deep/x; stat -c %a to/deep/x; readlink to/link; cat to/mine; ls to; wc -c < to/large`)
	if want := "42\n750\n/etc/passwd\nkept\ndeep\nlarge\nlink\nmine\n9437184"; got != want {
		t.Errorf("copied %q, want %q", got, want)
	}
	if err := carry.Copy(t.Context(), from, work+"/out/deep/x", to, work+"/new/y"); err != nil || bash(to, "cat new/y") != "42" {
		t.Errorf("a file: %v", err)
	}
	if err := carry.Copy(t.Context(), from, work+"/none", to, work+"/none"); err != nil || bash(to, "test ! -e none") != "" {
		t.Errorf("what is not there: %v", err)
	}
	if err := carry.Copy(t.Context(), from, work+"/out", small, work+"/out"); !errors.Is(err, carry.ErrFull) {
		t.Errorf("too much: %v, want ErrFull", err)
	}
}
