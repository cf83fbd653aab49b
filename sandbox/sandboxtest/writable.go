package sandboxtest

import (
	"strings"
	"time"

	"trajgen/sandbox"
)

// writableCases are about Spec.Writable.
var writableCases = []testCase{
	{name: "commands write everywhere in a writable system", writable: true, check: func(k *kit) {
		sb := k.writable(sandbox.Spec{})
		k.shIn(sb, "echo '127.0.0.1 database' >> /etc/hosts && touch /top /etc/new /opt/new && mkdir -p /usr/local/lib/new && cp /bin/true /usr/local/bin/new && new")
		k.shIn(sb, "rm -f /usr/bin/sort && printf '#!/bin/sh\\necho mine\\n' > /usr/bin/sort && chmod +x /usr/bin/sort")
		equal(k, "replaced", k.shIn(sb, "sort"), "mine\n")
		for _, other := range []sandbox.Sandbox{k.writable(sandbox.Spec{}), k.sb()} {
			equal(k, "in another", k.shIn(other, "grep -c database /etc/hosts; ls -d /top /etc/new /opt/new /usr/local/lib/new /usr/local/bin/new 2>/dev/null; echo b | sort"), "0\nb\n")
		}
		k.killAll(sb)
		k.recovers(sb)
	}},
	{name: "a writable system is as closed", writable: true, isolation: true, check: func(k *kit) {
		sb := k.writable(sandbox.Spec{})
		for what, script := range attempts {
			if r := k.runIn(sb, sh("{ "+script+"; } >out 2>&1"), 20*time.Second); r.Exit.Code == 0 {
				k.Errorf("%s worked: %q", what, script)
			}
		}
		if k.backend.Guarantees().FixedSystem { // else the files are an image's
			equal(k, "seen", k.shIn(sb, hostFiles), "/home:\n\n/root:\n")
		}
	}},
	{name: "a fork of a writable system", writable: true, snapshots: true, check: func(k *kit) {
		sb := k.writable(sandbox.Spec{})
		k.shIn(sb, "echo database > /etc/new; rm -f /usr/bin/sort; rm -r /opt; mkdir -p /usr/local/d && touch /usr/local/d/a /usr/local/d/b")
		k.shIn(sb, "chmod 700 /usr/local/d")
		first := k.fork(k.snapshot(sb))
		k.shIn(first, "rm /usr/local/d/a; touch /usr/local/d/c /top; mkdir /opt")
		look := "grep -c database /etc/new; ls -d /usr/bin/sort /opt /top 2>/dev/null; ls /usr/local/d; stat -c %a /usr/local/d"
		equal(k, "second fork", k.shIn(k.fork(k.snapshot(first)), look), "1\n/opt\n/top\nb\nc\n700\n")
		equal(k, "origin", k.shIn(sb, look), "1\na\nb\n700\n")
	}},
	{name: "a writable system counts to the disk", writable: true, limit: sandbox.LimitDisk, check: func(k *kit) {
		sb := k.writable(sandbox.Spec{Limits: sandbox.Limits{Disk: 8 << 20}})
		k.shIn(sb, "head -c 5000000 /dev/zero > /usr/local/a")
		if r := k.runIn(sb, sh("head -c 5000000 /dev/zero > /etc/b"), 20*time.Second); r.Exit.Code == 0 {
			k.Error("more was written than fits")
		}
	}},
	{name: "a writable system that cannot be had is refused", check: func(k *kit) {
		if k.backend.Guarantees().WritableSystem {
			return
		}
		_, err := k.backend.Open(k.Context(), sandbox.Spec{ID: "writable", Writable: true})
		if err == nil || !strings.Contains(err.Error(), "name an image") {
			k.Errorf("got %v, want what to do", err)
		}
	}},
}

func (k *kit) writable(spec sandbox.Spec) sandbox.Sandbox {
	k.Helper()
	spec.Writable = true
	return k.open(spec)
}
