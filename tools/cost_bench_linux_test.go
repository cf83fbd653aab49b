package tools_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// spent is the processor time of this process and of those that it has waited for.
func spent() time.Duration {
	var total time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if syscall.Getrusage(who, &used) == nil {
			total += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		}
	}
	return total
}

// BenchmarkCost is what calls cost in a local sandbox, in processor time of the runner and of what it starts, beside a
// `sh -c` that is started by hand.
func BenchmarkCost(b *testing.B) {
	measure := func(name string, call func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			began, n := spent(), 0
			for b.Loop() {
				call(b)
				n++
			}
			b.ReportMetric(float64((spent()-began).Microseconds())/float64(n), "cpu-µs/op")
		})
	}
	dir := b.TempDir()
	e := open(b, "local", "all")
	for _, command := range []struct{ name, text string }{{"builtin", "echo hello > f.txt"}, {"program", "cat f.txt"}, {"cd", "cd . && cat f.txt"}} {
		for _, shell := range []string{"sh", "bash"} {
			measure("command="+command.name+"/by="+shell, func(b *testing.B) {
				cmd := exec.Command(shell, "-c", command.text)
				cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
				if _, err := cmd.CombinedOutput(); err != nil {
					b.Fatal(err)
				}
			})
		}
		measure("command="+command.name+"/by=terminal", func(*testing.B) { e.call("terminal", args{"command": command.text}) })
	}
	n := 0
	measure("tool=write_file", func(*testing.B) { e.ok("write_file", args{"path": "notes.txt", "content": "hello\n"}) })
	measure("tool=read_file", func(*testing.B) {
		n++ // a page that is asked for again would be refused
		e.ok("read_file", args{"path": "notes.txt", "limit": 1 + n%2000})
	})
}
