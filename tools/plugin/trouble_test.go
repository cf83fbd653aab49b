package plugin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/plugin"
)

// TestTrouble holds that whatever a plugin does costs the call and no more, and that the next call has a new process.
func TestTrouble(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		p := play(t, backend, trouble())
		p.want("count", `{}`, `1`)
		p.want("count", `{}`, `2`) // one process for all calls
		p.want("echo", `{"n":"5","text":"é\u2028<b>"}`, "{\"n\":5,\"text\":\"é\u2028<b>\"}")
		for _, tt := range []struct{ tool, class, text string }{
			{"crash", "plugin_crashed", "ended with status 3"},
			{"garbage", "plugin_protocol", `Loading the model...`},
			{"flood", "plugin_protocol", "line of more than"},
			{"chatter", "plugin_protocol", "standard error"},
			{"unknown", "plugin_protocol", "999"},
			{"nothing", "plugin_protocol", "neither result nor error"},
			{"fork", "plugin_crashed", "status 1"},
		} {
			p.fails(tt.tool, `{}`, tt.class, tt.text)
			if tt.tool != "nothing" {
				p.want("count", `{}`, `1`)
			}
		}
		p.fails("fail", `{}`, "no_such_thing", "there is no such thing")
		p.want("bytes", `{}`, `"a`+"\uFFFD"+`b"`)
		p.want("mutter", `{}`, `"done"`)
		p.waitFor("no process that goes on", func() bool { return p.running("trouble.py") == 0 })
		p.want("exit_later", `{}`, `"bye"`)
		p.waitFor("no process", func() bool { return !plugin.Runs(p.session, "trouble") })
		p.want("count", `{}`, `1`)
		if p.session.Fault() != nil {
			t.Errorf("fault %+v", p.session.Fault())
		}
		data, _, err := p.box.Files().Read(t.Context(), "ran.txt", 0, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range []string{"crash", "garbage", "flood", "unknown", "fork", "chatter"} {
			if n := strings.Count(string(data), tool+"\n"); n != 1 {
				t.Errorf("%s ran %d times", tool, n)
			}
		}
	})
}

// TestShortLives holds that a plugin whose processes end at once is not started again and again for one call.
func TestShortLives(t *testing.T) {
	p := play(t, "local", plugin.Config{Name: "short", Command: []string{"./short.sh"}, Files: []string{"testdata/short.sh"}})
	p.want("short", `{}`, `1`)
	p.waitFor("its end", func() bool { return p.running("short.sh") == 0 })
	const calls = 5
	for range calls {
		p.fails("short", `{}`, "plugin_crashed", "ended")
	}
	data, _, err := p.box.Files().Read(t.Context(), "starts", 0, 1<<20)
	if n := strings.Count(string(data), "x"); err != nil || n > 3*calls {
		t.Errorf("%d starts for %d calls, %v", n, calls, err)
	}
}

// TestTwoAnswers holds that the second answer to a request is not taken for the answer to another.
func TestTwoAnswers(t *testing.T) {
	p := play(t, "local", trouble())
	p.want("twice", `{}`, `1`)
	for range 3 { // depending on when the second is read it costs the next call, or nothing
		if got := p.call("echo", `{"n":7}`); got.Status == episode.CallOK && got.Result != `{"n":7}` {
			t.Errorf("echo: %s", got.Result)
		}
	}
	p.want("echo", `{"n":8}`, `{"n":8}`)
}

// TestLargeResult holds that a result of 8 MiB passes, to be cut by the dispatch, and a larger one does not.
func TestLargeResult(t *testing.T) {
	p := play(t, "local", trouble())
	if got := p.call("large", fmt.Sprintf(`{"n":%d}`, 8<<20-2)); got.Status != episode.CallOK || got.ResultBytes != 8<<20 || !got.Truncated {
		t.Errorf("%s, %d bytes, truncated %v", got.Status, got.ResultBytes, got.Truncated)
	}
	p.fails("large", fmt.Sprintf(`{"n":%d}`, 8<<20+8<<10), "plugin_protocol", "line of more than")
	p.want("large", `{"n":1}`, `"x"`)
}

// running counts the sandbox's processes with a word in their command line.
func (p *playing) running(word string) int {
	p.t.Helper()
	result, err := sandbox.Run(p.t.Context(), p.box, sandbox.Command{
		Args: []string{"sh", "-c", `cd /proc; n=0; for d in [0-9]*; do case "$(tr '\0' ' ' <$d/cmdline 2>/dev/null)" in sh\ -c*) ;; *"$1"*) case "$(readlink $d/cwd)" in "$2"*) n=$((n+1));; esac;; esac; done; echo $n`, "sh", word, p.box.Layout().Tmp},
	}, sandbox.RunOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	n := -1
	fmt.Sscan(string(result.Stdout.Bytes()), &n)
	return n
}

func (p *playing) waitFor(what string, done func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// TestTimeout holds that a call whose time is up takes its process with it, descendants too.
func TestTimeout(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		p := play(t, backend, trouble())
		p.want("count", `{}`, `1`)
		began := time.Now()
		if got := p.call("hang", `{}`); got.Status != episode.CallTimeout || !strings.Contains(got.Result, "within 1s") {
			t.Errorf("%s: %s", got.Status, got.Result)
		} else if got.SandboxTime < time.Second/2 {
			t.Errorf("%s in the sandbox", got.SandboxTime)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("took %s", took)
		}
		if n := p.running("trouble.py") + p.running("sleep 300"); n != 0 {
			t.Errorf("%d processes are left", n)
		}
		p.want("count", `{}`, `1`)
	})
}

// TestConcurrent holds that calls of one turn run side by side in one process, and that one whose time is up leaves the
// others alone.
func TestConcurrent(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		p := play(t, backend, trouble("CONCURRENT=1"))
		p.want("count", `{}`, `1`)
		began := time.Now()
		var requests []registry.Request
		for i := range 6 {
			requests = append(requests, p.request("sleepy", fmt.Sprintf(`{"n":%d,"text":"%d"}`, 2000-100*i, i)))
		}
		for i, got := range p.session.CallAll(t.Context(), requests) {
			if want := fmt.Sprintf(`"%d"`, i); got.Result != want {
				t.Errorf("call %d: %s, want %s", i, got.Result, want)
			}
		}
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("six calls of at most 2 s took %s", took)
		}
		p.want("count", `{}`, `2`)
		results := p.session.CallAll(t.Context(), []registry.Request{p.request("hang", `{}`), p.request("sleepy", `{"n":2000,"text":"late"}`)})
		if results[0].Status != episode.CallTimeout || results[1].Result != `"late"` {
			t.Errorf("%s and %s: %s", results[0].Status, results[1].Status, results[1].Result)
		}
		p.want("count", `{}`, `1`)
		p.waitFor("one process", func() bool { return p.running("trouble.py") == 1 && p.running("sleep 300") == 0 })
	})
}

// TestCancelled holds that a cancelled call ends at once.
func TestCancelled(t *testing.T) {
	p := play(t, "local", trouble())
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if got := p.session.Call(ctx, p.request("sleepy", `{"n":60000}`)); got.Status == episode.CallOK || time.Since(began) > 20*time.Second {
		t.Errorf("%s after %s", got.Status, time.Since(began))
	}
	p.want("count", `{}`, `1`)
}

// TestEnvironment holds what a plugin can see of the runner: nothing in a sandbox, and on the runner what it was given.
func TestEnvironment(t *testing.T) {
	t.Setenv("RUNNER_ONLY", "visible")
	type seen struct {
		Env   map[string]string
		Cwd   string
		Files []string
	}
	look := func(p *playing) seen {
		t.Helper()
		var s seen
		call := p.call("environment", `{}`)
		if err := json.Unmarshal([]byte(call.Result), &s); err != nil {
			t.Fatalf("%v: %s", err, call.Result)
		}
		if s.Env["RUNNER_ONLY"] != "" || s.Env["COLOUR"] != "blue" || s.Env["TRAJGEN_PLUGIN_DIR"] != s.Cwd || len(s.Files) != 1 {
			t.Errorf("seen %+v", s)
		}
		return s
	}
	each(t, func(t *testing.T, backend string) {
		p := play(t, backend, trouble("COLOUR=blue"))
		if s := look(p); s.Env["TRAJGEN_WORKDIR"] != p.box.Layout().Workdir || s.Env["SECRET"] != "" {
			t.Errorf("environment %v", s.Env)
		}
		// What an agent has put in the plugin's place is gone at the next start.
		dir := filepath.Join(p.box.Layout().Tmp, "trajgen-plugins/trouble")
		planted := sandbox.FileWrite{Path: dir + "/trouble.py", Data: []byte("print('mine')\n"), Replace: true}
		if err := p.box.Files().Write(t.Context(), planted); err != nil {
			t.Fatal(err)
		}
		p.fails("crash", `{}`, "plugin_crashed", "")
		p.want("count", `{}`, `1`)
	})
	t.Run("runner", func(t *testing.T) {
		config := trouble("COLOUR=blue")
		config.Where, config.EnvFrom = plugin.WhereRunner, []string{"SECRET"}
		p := play(t, "local", config)
		if s := look(p); s.Env["TRAJGEN_WORKDIR"] != "" || s.Env["SECRET"] != "hunter2-SECRET" {
			t.Errorf("environment %v", s.Env)
		}
		if got := p.call("count", `{}`); got.SandboxTime != 0 {
			t.Errorf("%s in the sandbox", got.SandboxTime)
		}
		p.session.Close()
		if got := p.call("count", `{}`); got.Status == episode.CallOK {
			t.Errorf("called after the end: %s", got.Result)
		}
	})
}
