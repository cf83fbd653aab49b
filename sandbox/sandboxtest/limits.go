package sandboxtest

import (
	"slices"
	"strings"
	"time"

	"trajgen/sandbox"
)

// limitCases run into limits. The end of such a command must name the limit, and that of the next, innocent command must not.
var limitCases = []testCase{
	{name: "no limit is named for nothing", check: func(k *kit) {
		r := k.run(sh("for i in 1 2 3 4 5; do echo $i | cat; done; mkdir d && touch d/f"))
		equal(k, "limits", strings.Join(r.Exit.Limits, " "), "")
	}},
	{name: "the limit of processes is named", limit: sandbox.LimitProcesses, check: func(k *kit) {
		sb := k.open(sandbox.Spec{Limits: sandbox.Limits{Processes: 40}})
		r := k.runIn(sb, sh("i=0; while [ $i -lt 80 ]; do sleep 72.1 >/dev/null 2>&1 & i=$((i+1)); done"), 20*time.Second)
		k.named(sb, r, sandbox.LimitProcesses)
	}},
	{name: "the dust of a fork bomb settles before the next command", limit: sandbox.LimitProcesses, check: func(k *kit) {
		sb := k.open(sandbox.Spec{Limits: sandbox.Limits{Processes: 40}})
		const bomb = `import os, time
try:
    for i in range(1000):
        if os.fork() == 0:
            os.setsid(); time.sleep(0.02 * (i + 1)); os._exit(0)
except OSError as e: print(e.strerror)`
		for range 3 {
			r := k.runIn(sb, sandbox.Command{Args: []string{"python3", "-c", bomb}}, 20*time.Second)
			if !slices.Contains(r.Exit.Limits, sandbox.LimitProcesses) {
				k.Fatalf("limits: got %q; exit %+v, %q", r.Exit.Limits, r.Exit, r.Stderr.Bytes())
			}
			equal(k, "the next", k.shIn(sb, "echo a | cat | cat | cat | cat | cat | tr a b"), "b\n")
		}
	}},
	{name: "the limit of memory is named", limit: sandbox.LimitMemory, check: func(k *kit) {
		sb := k.open(sandbox.Spec{Limits: sandbox.Limits{Memory: 64 << 20}})
		// A line without an end takes memory of the program that reads it.
		r := k.runIn(sb, sh("head -c 400000000 /dev/zero | tail -n 1 | wc -c; exit 0"), 20*time.Second)
		equal(k, "killed for memory", r.Exit.OOM, true)
		k.named(sb, r, sandbox.LimitMemory)
	}},
	{name: "the limit of processors is named", limit: sandbox.LimitCPU, check: func(k *kit) {
		sb := k.open(sandbox.Spec{Limits: sandbox.Limits{CPUs: 0.05}}) // less than two commands that want all get of any machine, however busy
		began := time.Now()
		const count = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"
		r := k.runIn(sb, sh("("+count+") & "+count+"; wait"), 60*time.Second)
		if took := time.Since(began); r.Exit.CPU > 100*time.Millisecond && took < 4*r.Exit.CPU {
			k.Errorf("%v of a processor in %v", r.Exit.CPU, took)
		}
		if !slices.Contains(r.Exit.Limits, sandbox.LimitCPU) {
			k.Errorf("limits: got %q; exit %+v", r.Exit.Limits, r.Exit)
		}
		// On a busy machine, the next command may use up its quota for a moment, too.
		k.eventually("a command with enough time", func() bool {
			time.Sleep(300 * time.Millisecond)
			return len(k.runIn(sb, sh("true"), 10*time.Second).Exit.Limits) == 0
		})
	}},
	{name: "the limit of the disk is named", limit: sandbox.LimitDisk, check: func(k *kit) {
		sb := k.open(sandbox.Spec{Limits: sandbox.Limits{Disk: 16 << 20}})
		r := k.runIn(sb, sh("cat /dev/zero > flood"), 20*time.Second)
		k.shIn(sb, "rm flood")
		k.named(sb, r, sandbox.LimitDisk)
	}},
	{name: "no file outgrows the limit of the disk", limit: sandbox.LimitDisk, soft: true, check: func(k *kit) {
		const limit = 16 << 20
		sb := k.open(sandbox.Spec{Limits: sandbox.Limits{Disk: limit}})
		r := k.runIn(sb, sh("cat /dev/zero > flood"), 20*time.Second)
		if r.TimedOut || r.Exit.Code == 0 {
			k.Errorf("a flood came to no end: %+v", r.Exit)
		}
		if info, err := sb.Files().Stat(k.Context(), "flood"); err != nil || info.Size > limit {
			k.Errorf("got a file of %d bytes, %v", info.Size, err)
		}
		k.shIn(sb, "rm flood")
		k.named(sb, r, sandbox.LimitDisk)
	}},
	{name: "the limit of inodes is named", limit: sandbox.LimitInodes, check: func(k *kit) {
		sb := k.open(sandbox.Spec{Limits: sandbox.Limits{Inodes: 4000}})
		r := k.runIn(sb, sh("i=0; while : > f$i; do i=$((i+1)); [ $i -lt 6000 ] || exit 7; done"), 20*time.Second)
		equal(k, "more than the limit", r.Exit.Code == 7, false)
		k.shIn(sb, "rm -f f*")
		k.named(sb, r, sandbox.LimitInodes)
	}},
}

// idCases are about the user of a command.
var idCases = []testCase{
	{name: "root may give files away and become another", isolation: true, check: func(k *kit) {
		k.needs("setpriv")
		k.sh("[ $(id -u) = 0 ] && mkdir d && touch d/f && chown -R 7:8 d && tar --owner=9 --group=9 -cf a d && rm -r d && tar -xpf a && [ -e d/f ]")
		k.sh("setpriv --reuid=1000 --regid=1000 --clear-groups true")
	}},
}

// named checks that a command's end names a limit, and that the next command's does not.
func (k hands) named(sb sandbox.Sandbox, r sandbox.Result, limit string) {
	k.Helper()
	if !slices.Contains(r.Exit.Limits, limit) || !slices.IsSorted(r.Exit.Limits) {
		k.Errorf("limits: got %q, want %s; exit %+v, stderr %q", r.Exit.Limits, limit, r.Exit, r.Stderr.Bytes())
	}
	k.recovers(sb)
	equal(k, "limits of the next command", strings.Join(k.runIn(sb, sh("true"), 10*time.Second).Exit.Limits, " "), "")
}
