package rollout_test

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
)

// standard are the calls of the episode by which systems are compared, one in each turn; then the agent answers.
var standard = []episode.Call{
	{ID: "call_0", Name: "terminal", Arguments: `{"command":"echo hello > f.txt"}`},
	{ID: "call_1", Name: "write_file", Arguments: `{"path":"notes.txt","content":"a note\n"}`},
	{ID: "call_2", Name: "read_file", Arguments: `{"path":"notes.txt"}`},
	{ID: "call_3", Name: "terminal", Arguments: `{"command":"cat f.txt"}`},
}

// inProcess is a model that makes the standard calls without a server. Any number of episodes may ask it at once.
type inProcess struct{}

func (inProcess) Complete(_ context.Context, req model.Request) (model.Reply, error) {
	reply := model.Reply{
		Message: episode.Message{Role: "assistant", Content: "hello"}, FinishReason: "stop", Model: "m",
		Usage: episode.Usage{Prompt: 1000, Completion: 20, Reported: true},
	}
	if req.Turn < len(standard) {
		reply.Message.Content, reply.Message.Calls, reply.FinishReason = "", standard[req.Turn:req.Turn+1], "tool_calls"
	}
	return reply, nil
}

// noop is a registry whose tools have the names and arguments of the built-in ones that the episode calls, and do nothing.
func noop(b *testing.B) *registry.Registry {
	b.Helper()
	type command struct {
		Command string `json:"command"`
	}
	type file struct {
		Path    string `json:"path"`
		Content string `json:"content,omitempty"`
	}
	reg, err := registry.New(nothing[command]("terminal"), nothing[file]("write_file"), nothing[file]("read_file"))
	if err != nil {
		b.Fatal(err)
	}
	return reg
}

func nothing[A any](name string) registry.Tool {
	return registry.Define(registry.Definition{Name: name, Toolset: "file", Description: "Does nothing.", NoSandbox: true},
		func(context.Context, *registry.Env, A) (any, error) { return map[string]string{"output": "hello"}, nil })
}

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

// BenchmarkEpisode is a standard episode from prompt to reward with a model in this process: all that the runner does for
// it but requests, journal and export. The built-in tools run in a local sandbox, and so does what judges.
func BenchmarkEpisode(b *testing.B) {
	builtin, err := registry.New(tools.Builtin()...)
	if err != nil {
		b.Fatal(err)
	}
	local, err := sandbox.Open("local", sandbox.Options{StateDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer local.Close()
	hello := "hello"
	for _, bench := range []struct {
		name     string
		registry *registry.Registry
		toolsets []string
		verify   []episode.Check
	}{
		{"tools=noop", noop(b), []string{"file"}, []episode.Check{{Exact: episode.Texts{hello}}}},
		{"tools=builtin", builtin, []string{"terminal", "file"}, []episode.Check{{Command: "grep -qx hello f.txt"}}},
	} {
		player := &rollout.Player{Model: inProcess{}, Registry: bench.registry, Sandboxes: rollout.Sandboxes{Backend: local}, Prompts: rollout.Prompts{System: "Be brief."}, Now: time.Now}
		var samples atomic.Int64
		play := func(b *testing.B) {
			task := &episode.Task{ID: "t", Prompt: []episode.Message{{Role: "user", Content: "Say hello."}}, Verify: bench.verify}
			ep := &episode.Episode{Key: episode.Key{Task: task.ID, Sample: int(samples.Add(1))}, Toolsets: bench.toolsets, Attempt: 1}
			ep.ID = ep.Key.ID()
			if err := player.Play(b.Context(), task, ep); err != nil {
				b.Error(err)
			} else if ep.Outcome != episode.Success || len(ep.Calls) != len(standard) {
				b.Errorf("outcome %s after %d calls, fault %+v", ep.Outcome, len(ep.Calls), ep.Fault)
			}
		}
		measure := func(name string, loop func(b *testing.B)) {
			b.Run(bench.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				began, before := spent(), samples.Load()
				loop(b)
				b.ReportMetric(float64((spent()-began).Microseconds())/float64(samples.Load()-before), "cpu-µs/op")
			})
		}
		measure("one", func(b *testing.B) {
			for b.Loop() {
				play(b)
			}
		})
		measure("many", func(b *testing.B) {
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					play(b)
				}
			})
		})
	}
}
