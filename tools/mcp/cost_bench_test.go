package mcp_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/mcp"
)

var pss = regexp.MustCompile(`(?m)^Pss: +(\d+) kB`)

// BenchmarkEpisodes plays episodes with a server each, eight at a time: how long a server takes to start, beside a call, and what memory
// its process and the runner need for it.
func BenchmarkEpisodes(b *testing.B) {
	dir, err := servers()
	if err != nil {
		b.Fatal(err)
	}
	backend := backend(b, "native")
	server := mcp.Server{Command: []string{"node", "memory/dist/index.js"}, Files: []string{dir + "/memory"}}
	set := open(b, backend, one(server))
	reg, err := registry.New(set.Tools()...)
	if err != nil {
		b.Fatal(err)
	}
	toolset, err := reg.Select(nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex // guards what follows
	var starts, calls []time.Duration
	var memory []int
	play := func(i int) error {
		box, err := backend.Open(context.Background(), sandbox.Spec{ID: fmt.Sprintf("bench-%d", i)})
		if err != nil {
			return err
		}
		defer box.Close()
		attempt := &mcp.Attempt{Servers: set.Rows(toolset.Tools())}
		session := toolset.Session(registry.SessionConfig{
			Sandbox: func(context.Context) (sandbox.Sandbox, error) { return box, nil }, Services: []any{attempt},
		})
		defer session.Close()
		var last episode.ToolCall
		for n := range 2 {
			last = session.Call(context.Background(), registry.Request{ID: fmt.Sprint(n), Turn: n, Name: "mcp_fake_read_graph", Arguments: `{}`})
			if last.Status != episode.CallOK {
				return fmt.Errorf("%s: %s", last.Status, last.Result)
			}
		}
		ran, err := sandbox.Run(context.Background(), box, sandbox.Command{Args: []string{"sh", "-c", "cat /proc/[0-9]*/smaps_rollup"}}, sandbox.RunOptions{})
		if err != nil {
			return err
		}
		most := 0
		for _, found := range pss.FindAllStringSubmatch(string(ran.Stdout.Bytes()), -1) {
			kb, _ := strconv.Atoi(found[1])
			most = max(most, kb)
		}
		session.Close()
		mu.Lock()
		defer mu.Unlock()
		starts, calls, memory = append(starts, attempt.Servers[0].Connect), append(calls, last.Elapsed), append(memory, most)
		return nil
	}
	b.ResetTimer()
	var group sync.WaitGroup
	next := make(chan int)
	for range 8 {
		group.Go(func() {
			for i := range next {
				if err := play(i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range b.N {
		next <- i
	}
	close(next)
	group.Wait()
	if b.Failed() {
		return
	}
	slices.Sort(starts)
	slices.Sort(calls)
	slices.Sort(memory)
	half, most := len(starts)/2, len(starts)*95/100
	b.ReportMetric(float64(starts[half].Milliseconds()), "start-ms-p50")
	b.ReportMetric(float64(starts[most].Milliseconds()), "start-ms-p95")
	b.ReportMetric(float64(calls[half].Microseconds()), "call-us-p50")
	b.ReportMetric(float64(memory[half])/1024, "MB/server")
}
