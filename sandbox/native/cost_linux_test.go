package native_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/sandbox"
	_ "trajgen/sandbox/local"
	"trajgen/sandbox/sandboxtest"
)

// BenchmarkEpisode plays what a standard episode asks of a sandbox (a command, a file written and read, a command, the end of
// all processes, a verifier's command), and says what that costs in processor time: all processes together, and apart from
// them what the kernel does on its own threads, which other work of the machine adds to. plain is the commands alone.
func BenchmarkEpisode(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		dir := b.TempDir()
		benchEpisodes(b, 8, func(int64) error { return plainEpisode(dir) })
	})
	for _, name := range []string{"native", "local"} {
		backend := sandboxtest.Open(b, name, sandbox.Options{})
		for _, callers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%s/callers=%d", name, callers), func(b *testing.B) {
				benchEpisodes(b, callers, func(n int64) error { return sandboxEpisode(b, backend, n) })
			})
		}
	}
}

// episodes numbers those of all benchmarks: what had an id may still be on its way out.
var episodes atomic.Int64

func benchEpisodes(b *testing.B, callers int, play func(n int64) error) {
	b.Helper()
	own, kernel, began := treeTime(b), kernelTime(b), time.Now()
	var played atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for played.Add(1) <= int64(b.N) {
				if err := play(episodes.Add(1)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(b.N) }
	b.ReportMetric(each(treeTime(b)-own), "cpu-ms/op")
	b.ReportMetric(each(kernelTime(b)-kernel), "kernel-ms/op")
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "lives/s")
}

// commands are those of an episode, the last that of its verifier.
var commands = [3]string{"echo hello > f.txt", "cat f.txt", "grep -q hello f.txt"}

// plainEpisode runs the commands and nothing else.
func plainEpisode(dir string) error {
	dir, err := os.MkdirTemp(dir, "")
	if err != nil {
		return err
	}
	for _, script := range commands {
		command := exec.Command("/bin/sh", "-c", script)
		command.Dir = dir
		if _, err := command.Output(); err != nil {
			return fmt.Errorf("%q: %w", script, err)
		}
	}
	return os.RemoveAll(dir)
}

func sandboxEpisode(b *testing.B, backend sandbox.Backend, n int64) error {
	ctx := b.Context()
	sb, err := backend.Open(ctx, sandbox.Spec{ID: fmt.Sprintf("episode-%d", n)})
	if err != nil {
		return err
	}
	defer sb.Close()
	run := func(script string) error {
		r, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"/bin/sh", "-c", script}}, sandbox.RunOptions{})
		if err == nil && r.Exit.Code != 0 {
			err = fmt.Errorf("%q: exit %d, %s", script, r.Exit.Code, r.Stderr.Bytes())
		}
		return err
	}
	steps := []func() error{
		func() error { return run(commands[0]) },
		func() error {
			return sb.Files().Write(ctx, sandbox.FileWrite{Path: "g.txt", Data: []byte("hello\n")})
		},
		func() error { _, _, err := sb.Files().Read(ctx, "g.txt", 0, 1<<20); return err },
		func() error { return run(commands[1]) },
		func() error { return sb.KillAll(ctx) },
		func() error { return run(commands[2]) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return sb.Close()
}

// treeTime is the processor time of this process and all that descend from it, of the ended those that were waited for.
func treeTime(b *testing.B) time.Duration {
	b.Helper()
	var all time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if err := unix.Getrusage(who, &usage); err != nil {
			b.Fatal(err)
		}
		all += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	mine := map[int]bool{os.Getpid(): true}
	stats := statistics(b)
	for grown := true; grown; {
		grown = false
		for pid, s := range stats {
			if !mine[pid] && mine[s.parent] {
				mine[pid], grown = true, true
				all += s.own + s.children
			}
		}
	}
	return all
}

// kernelTime is that of the kernel's own threads, which are children of process 2.
func kernelTime(b *testing.B) (all time.Duration) {
	b.Helper()
	for _, s := range statistics(b) {
		if s.parent == 2 {
			all += s.own
		}
	}
	return all
}

type statistic struct {
	parent        int
	own, children time.Duration
}

func statistics(b *testing.B) map[int]statistic {
	b.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	all := make(map[int]statistic, len(files))
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			continue // gone
		}
		text := string(content)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		number := func(i int) int {
			n, err := strconv.Atoi(fields[i])
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
		ticks := func(i int) time.Duration { return time.Duration(number(i)+number(i+1)) * 10 * time.Millisecond }
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		all[pid] = statistic{parent: number(1), own: ticks(11), children: ticks(13)}
	}
	return all
}
