package sandboxtest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"trajgen/sandbox"
)

// snapshotCases are about snapshots and forks, for backends that support them.
var snapshotCases = []testCase{
	{name: "a fork has the files and its own from then on", snapshots: true, check: func(k *kit) {
		k.sh("mkdir -p d/e && echo one > d/e/f && ln -s e/f d/link && chmod 751 d && echo gone > gone && echo h > $HOME/h && echo t > $TMPDIR/t && touch -d @1000000000 old")
		s := k.snapshot(k.sb())
		k.sh("echo two >> d/e/f; rm gone")
		look := "cat d/e/f d/link $HOME/h $TMPDIR/t; stat -c '%a %Y %u' old | sed 's/^[0-9]* //'; stat -c %a d; ls"
		a, b := k.fork(s), k.fork(s)
		want := "one\none\nh\nt\n1000000000 0\n751\nd\ngone\nold\n"
		equal(k, "first fork", k.shIn(a, look), want)
		k.shIn(a, "echo mine > d/e/f; rm -r old gone; mkdir gone; mv d moved || (cp -a d moved && rm -r d); echo new > $HOME/new")
		equal(k, "second fork", k.shIn(b, look+"; ls $HOME"), want+"h\n")
		equal(k, "origin", k.sh("cat d/e/f; ls; ls $HOME"), "one\ntwo\nd\nold\nh\n")
		equal(k, "first fork later", k.shIn(a, "cat moved/e/f moved/link; ls; ls -A gone"), "mine\nmine\ngone\nmoved\n")
	}},
	{name: "a sandbox goes on after its snapshot", snapshots: true, check: func(k *kit) {
		k.sh("echo 1 > f")
		before := k.sb().Layout()
		s := k.snapshot(k.sb())
		equal(k, "layout", k.sb().Layout(), before)
		equal(k, "file", k.read("f"), "1\n")
		k.write(sandbox.FileWrite{Path: "f", Data: []byte("2\n")})
		equal(k, "overwritten", k.sh("cat f && echo x >> f && sleep 0.01 & wait; cat f"), "2\n2\nx\n")
		equal(k, "in a fork", k.shIn(k.fork(s), "cat f"), "1\n")
	}},
	{name: "many calls at once after a snapshot, and snapshots without a call between them", snapshots: true, check: func(k *kit) {
		k.sh("echo 1 > f")
		k.snapshot(k.sb())
		k.killAll(k.sb())
		s := k.snapshot(k.sb())
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { equal(k, "origin", k.sh("cat f"), "1\n") })
		}
		all.Wait()
		k.sh("echo 2 > f")
		equal(k, "fork", k.shIn(k.fork(s), "cat f"), "1\n")
	}},
	{name: "snapshots of forks of snapshots", snapshots: true, check: func(k *kit) {
		sb := k.sb()
		var snapshots []sandbox.Snapshot
		for i := range 12 {
			k.shIn(sb, fmt.Sprintf("echo %d > f%d; rm -f f%d; echo %d > last", i, i, i-3, i))
			snapshots = append(snapshots, k.snapshot(sb))
			if i%3 == 2 {
				sb = k.fork(snapshots[i])
			}
		}
		for _, s := range snapshots[:11] {
			if err := s.Close(); err != nil {
				k.Errorf("close: %v", err)
			}
		}
		equal(k, "files of the last", k.shIn(k.fork(snapshots[11]), "cat last; echo f*"), "11\nf10 f11 f9\n")
		equal(k, "files of its origin", k.shIn(sb, "cat last; echo f*"), "11\nf10 f11 f9\n")
	}},
	{name: "a fork outlives its snapshot and its origin", snapshots: true, check: func(k *kit) {
		k.sh("head -c 100000 /dev/urandom > big; sha256sum big > sum")
		s := k.snapshot(k.sb())
		fork := k.fork(s)
		if err := errors.Join(s.Close(), s.Close(), k.sb().Close()); err != nil {
			k.Fatal(err)
		}
		equal(k, "content", k.shIn(fork, "sha256sum -c sum"), "big: OK\n")
		if _, err := k.backend.Open(k.Context(), sandbox.Spec{ID: "late", From: s}); err == nil {
			k.Error("a closed snapshot was forked")
		}
	}},
	{name: "no snapshot while processes run", snapshots: true, check: func(k *kit) {
		p := k.start(sandbox.Command{Args: []string{"sleep", "66.1"}})
		k.busy()
		if err := p.Kill(k.Context(), 0); err != nil {
			k.Fatal(err)
		}
		k.sh(daemon("66.2"))
		k.busy()
		k.killAll(k.sb())
		k.fork(k.snapshot(k.sb()))
	}},
	{name: "many forks at once", snapshots: true, check: func(k *kit) {
		k.sh("echo seed > f; mkdir -p a/b; for i in $(seq 200); do echo $i > a/b/$i; done")
		s := k.snapshot(k.sb())
		var all sync.WaitGroup
		for i := range 8 {
			sb := k.fork(s)
			all.Go(func() {
				equal(k, "its own", k.shIn(sb, fmt.Sprintf("echo %d >> f; rm a/b/%d; cat f; ls a/b | wc -l", i, i+1)), fmt.Sprintf("seed\n%d\n199\n", i))
			})
		}
		all.Wait()
	}},
	{name: "a fork is as closed as its origin", snapshots: true, isolation: true, check: func(k *kit) {
		k.sh("echo x > f")
		sb := k.fork(k.snapshot(k.sb()))
		system := "true"
		if k.backend.Guarantees().FixedSystem {
			system = "! touch /planted && ! touch /usr/planted && ! touch /etc/planted && ! rm /etc/hosts && ! mv /workspace /w"
		}
		k.shIn(sb, "("+system+" && ! mount -t tmpfs x /mnt && ! unshare -U true && ! ls /proc/1/root/) >out 2>&1; [ $? = 0 ] || (cat out >&2; exit 1)")
		equal(k, "verifier's place", k.shIn(sb, "ls -A "+sb.Layout().Tests), "")
		k.recovers(sb)
	}},
	{name: "the disk limit counts anew in a fork", snapshots: true, limit: sandbox.LimitDisk, check: func(k *kit) {
		sb := k.open(sandbox.Spec{Limits: sandbox.Limits{Disk: 8 << 20}})
		k.shIn(sb, "head -c 6000000 /dev/zero > a")
		fork, err := k.backend.Open(k.Context(), sandbox.Spec{ID: "small-fork", From: k.snapshot(sb), Limits: sandbox.Limits{Disk: 8 << 20}})
		if err != nil {
			k.Fatal(err)
		}
		defer fork.Close()
		k.shIn(fork, "head -c 6000000 /dev/zero > b")
		if r := k.runIn(fork, sh("head -c 6000000 /dev/zero > c"), 20*time.Second); r.Exit.Code == 0 {
			k.Error("more was written than fits")
		}
	}},
}

func (k hands) snapshot(sb sandbox.Sandbox) sandbox.Snapshot {
	k.Helper()
	s, err := sb.(sandbox.Snapshotter).Snapshot(k.Context())
	if err != nil {
		k.Fatalf("snapshot: %v", err)
	}
	CloseLater(k, s)
	return s
}

func (k *kit) fork(s sandbox.Snapshot) sandbox.Sandbox {
	k.Helper()
	return k.open(sandbox.Spec{From: s})
}

func (k *kit) busy() {
	k.Helper()
	if _, err := k.sb().(sandbox.Snapshotter).Snapshot(k.Context()); !errors.Is(err, sandbox.ErrBusy) {
		k.Errorf("got %v, want ErrBusy", err)
	}
}
