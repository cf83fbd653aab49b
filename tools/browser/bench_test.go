package browser_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"trajgen/sandbox"
	"trajgen/tools/browser"
)

// heavy is a page of 30 kB, all of which its script touches.
var heavy = html("<title>Heavy</title><h1>Heavy</h1>" + strings.Repeat("<p>The keeper of the lighthouse wrote down the weather of each day, and the ships that passed.</p>", 300) +
	"<script>for (const p of document.querySelectorAll('p')) p.textContent += p.offsetTop</script>")

func heavySite() sites { return sites{"heavy.test": heavy} }

// BenchmarkStart opens a browser in a sandbox of its own and reads a page.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		visit(b, open(b, heavySite()), "http://heavy.test/")
	}
}

// BenchmarkPages reads pages one after the other: in an episode's browser, and in one that is driven directly, without a sandbox, a
// gate or waiting until a page is quiet.
func BenchmarkPages(b *testing.B) {
	const words = "document.querySelectorAll('p').length"
	b.Run("trajgen", func(b *testing.B) {
		c := open(b, heavySite())
		pages(b, func() {
			visit(b, c, "http://heavy.test/")
			if got := eval(b, c, words); got != "300" {
				b.Fatalf("%s paragraphs", got)
			}
		})
	})
	b.Run("direct", func(b *testing.B) {
		program, err := browser.Find(b.Context(), box(b, sandbox.Spec{}))
		if err != nil {
			b.Fatal(err)
		}
		server := httptest.NewServer(heavy)
		b.Cleanup(server.Close)
		ctx, cancel := chromedp.NewExecAllocator(b.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox)...)
		b.Cleanup(cancel)
		ctx, cancel = chromedp.NewContext(ctx)
		b.Cleanup(cancel)
		pages(b, func() {
			if err := chromedp.Do(ctx, chromedp.Navigate(server.URL)); err != nil {
				b.Fatal(err)
			}
			if got, err := chromedp.Run(ctx, chromedp.Evaluate[int](words)); err != nil || got != 300 {
				b.Fatalf("%d paragraphs: %v", got, err)
			}
		})
	})
}

// pages measures how many pages are read in a second, and the processor time of each: the browser's, and this process's.
func pages(b *testing.B, read func()) {
	b.Helper()
	read()
	browser, own := processorTime(b), ownTime()
	for b.Loop() {
		read()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
	b.ReportMetric((processorTime(b)-browser)/float64(b.N), "browser-cpu-s/page")
	b.ReportMetric((ownTime()-own)/float64(b.N), "own-cpu-s/page")
}

// ownTime is the processor time of this process, in seconds.
func ownTime() float64 {
	var used unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &used) // fails for no process of this name
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

// BenchmarkLive has browsers side by side, each of which reads five pages: what they make together in a second, and the memory of
// each, with what they share divided.
func BenchmarkLive(b *testing.B) {
	const pages = 5
	for _, n := range []int{1, 5, 10, 20} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			all := make([]*client, n)
			for i := range all {
				all[i] = open(b, heavySite())
			}
			var group errgroup.Group
			read := func(times int) {
				for _, c := range all {
					group.Go(func() error {
						for range times {
							visit(b, c, "http://heavy.test/")
						}
						return nil
					})
				}
				_ = group.Wait() // visit fails the benchmark itself
			}
			read(1)
			for b.Loop() {
				read(pages)
			}
			b.ReportMetric(float64(b.N*n*pages)/b.Elapsed().Seconds(), "pages/s")
			b.ReportMetric(memory(b)/float64(n)/1e6, "MB/browser")
		})
	}
}

// memory is the proportional set size of the browsers below this process, in bytes.
func memory(b *testing.B) (bytesOf float64) {
	b.Helper()
	for _, dir := range browsers(b) {
		bytesOf += 1024 * field(filepath.Join(dir, "smaps_rollup"), "Pss:")
	}
	return bytesOf
}

// processorTime is that of the browsers below this process, and of their processes that have ended, in seconds.
func processorTime(b *testing.B) (seconds float64) {
	b.Helper()
	for _, dir := range browsers(b) {
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for i := 11; i < min(15, len(fields)); i++ { // utime, stime, cutime and cstime
			ticks, _ := strconv.ParseFloat(fields[i], 64)
			seconds += ticks / 100
		}
	}
	return seconds
}

// browsers are the directories in /proc of the browsers' processes below this one.
func browsers(b *testing.B) (dirs []string) {
	b.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range commands {
		dir := filepath.Dir(path)
		command, err := os.ReadFile(path)
		chromium := bytes.Contains(command, []byte("--remote-debugging-")) || bytes.Contains(command, []byte("--type="))
		if err == nil && chromium && below(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// below says whether a process descends from this one.
func below(dir string) bool {
	for parent := field(filepath.Join(dir, "status"), "PPid:"); parent > 1; parent = field(fmt.Sprintf("/proc/%.0f/status", parent), "PPid:") {
		if int(parent) == os.Getpid() {
			return true
		}
	}
	return false
}

// field is a number of a file in /proc; 0 of a process that has ended.
func field(path, name string) (value float64) {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			_, _ = fmt.Sscanf(rest, "%f", &value)
			return value
		}
	}
	return 0
}
