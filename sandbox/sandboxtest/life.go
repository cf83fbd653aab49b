package sandboxtest

import (
	"context"
	"errors"
	"os"
	"time"

	"trajgen/sandbox"
)

func nothingIn(k *kit, dir string) {
	k.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		k.Errorf("%s: got %v, %v, want nothing", dir, entries, err)
	}
}

// lifeCases are about opening and closing.
var lifeCases = []testCase{
	{name: "close ends everything, twice", check: func(k *kit) {
		sb := k.sb()
		p := k.start(sandbox.Command{Args: []string{"sleep", "67.1"}})
		k.sh(daemon("67.1"))
		if err := errors.Join(sb.Close(), sb.Close()); err != nil {
			k.Fatalf("close: %v", err)
		}
		ctx, cancel := context.WithTimeout(k.Context(), 10*time.Second)
		defer cancel()
		if _, err := p.Wait(ctx); !errors.Is(err, sandbox.ErrGone) {
			k.Errorf("wait: got %v, want ErrGone", err)
		}
		if err := p.Kill(ctx, time.Second); err != nil && !errors.Is(err, sandbox.ErrGone) {
			k.Errorf("kill: %v", err)
		}
		_, err := sb.Start(ctx, sh("true"))
		k.gone("start", err)
		_, err = sb.Files().Stat(ctx, ".")
		k.gone("stat", err)
		_, _, err = sb.Files().Read(ctx, "f", 0, 1)
		k.gone("read", err)
		_, err = sb.Files().List(ctx, ".")
		k.gone("list", err)
		k.gone("write", sb.Files().Write(ctx, sandbox.FileWrite{Path: "f"}))
		k.gone("remove", sb.Files().Remove(ctx, "f"))
		k.gone("kill all", sb.KillAll(ctx))
		k.eventually("no process left on this machine", func() bool { return Sleepers(own("67.1")) == 0 })
	}},
	{name: "an id can be used again", check: func(k *kit) {
		for range 3 {
			sb, err := k.backend.Open(k.Context(), sandbox.Spec{ID: "again"})
			if err != nil {
				k.Fatal(err)
			}
			equal(k, "empty", k.shIn(sb, "ls -A; touch x"), "")
			if other, err := k.backend.Open(k.Context(), sandbox.Spec{ID: "again"}); err == nil {
				k.Error("two at a time with one id")
				other.Close()
			}
			if err := sb.Close(); err != nil {
				k.Fatal(err)
			}
		}
	}},
	{name: "two sandboxes share no files", check: func(k *kit) {
		a, b := k.open(sandbox.Spec{}), k.open(sandbox.Spec{})
		k.shIn(a, "touch here $HOME/here $TMPDIR/here")
		equal(k, "files", k.shIn(b, "ls -A . $HOME $TMPDIR | grep here || true"), "")
	}},
	{name: "many sandboxes", check: func(k *kit) {
		var open []sandbox.Sandbox
		for range 12 {
			open = append(open, k.open(sandbox.Spec{}))
		}
		for _, sb := range open {
			equal(k, "output", k.shIn(sb, "echo hi"), "hi\n")
		}
	}},
	{name: "the same commands say the same", isolation: true, check: func(k *kit) {
		// The number of links of /proc depends on the machine's processes, and widens its column.
		script := `id; pwd; env | sort; ls -la / | grep -v proc | tr -s ' ' | sed 's/ [A-Z][a-z][a-z] .* / /'; cat /etc/passwd; hostname; umask; ulimit -n -c`
		first := k.shIn(k.open(sandbox.Spec{}), script)
		second := k.shIn(k.open(sandbox.Spec{}), script)
		equal(k, "output", second, first)
	}},
	{name: "git takes the working directory for its own", check: func(k *kit) {
		if r := k.run(sh("command -v git")); r.Exit.Code != 0 {
			k.Skip("no git")
		}
		out := k.sh("git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git status --short && git log --format=%s")
		equal(k, "log", out, "x\n")
	}},
}

func (k hands) gone(what string, err error) {
	k.Helper()
	if !errors.Is(err, sandbox.ErrGone) {
		k.Errorf("%s: got %v, want ErrGone", what, err)
	}
}
