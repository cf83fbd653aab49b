package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// person is at the terminal of a command.
type person struct {
	t      *testing.T
	leader *os.File
	cmd    *exec.Cmd
	seen   string // all that the terminal showed
	read   int    // of that, what was answered
}

func sitDown(t *testing.T, dir string, args ...string) *person {
	t.Helper()
	leader, follower := pseudoTerminals(t)
	p := &person{t: t, leader: leader, cmd: exec.Command(build(t), args...)}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), "OPENAI_API_KEY=", "TERM=xterm")
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = follower, follower, follower
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	follower.Close() // so that the leader's end comes with the command's
	return p
}

// until reads what the terminal shows.
func (p *person) until(text string) {
	p.t.Helper()
	buffer := make([]byte, 4096)
	late := time.AfterFunc(20*time.Second, func() { _ = p.cmd.Process.Kill() }) // which ends the read
	defer late.Stop()
	for !strings.Contains(p.seen[p.read:], text) {
		n, err := p.leader.Read(buffer)
		p.seen += string(buffer[:n])
		if err != nil {
			p.t.Fatalf("the terminal does not show %q (%v) but\n%s", text, err, p.seen)
		}
	}
	p.read += strings.Index(p.seen[p.read:], text) + len(text)
}

// answers waits for a question and answers it.
func (p *person) answers(question, answer string) {
	p.t.Helper()
	p.until(question)
	if _, err := p.leader.WriteString(answer); err != nil {
		p.t.Fatal(err)
	}
}

// leaves waits for the end of the command.
func (p *person) leaves() (code int) {
	p.t.Helper()
	buffer := make([]byte, 4096)
	late := time.AfterFunc(20*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	for {
		n, err := p.leader.Read(buffer)
		p.seen += string(buffer[:n])
		if err != nil { // EIO, when nothing has the other end open
			break
		}
	}
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

const setupKey = "very-secret-key-1"

// TestSetupAsks sets up a run at a terminal, and plays it with the key that was typed.
func TestSetupAsks(t *testing.T) {
	server, url := readmeEndpoint(t, "my-model", setupKey)
	dir := t.TempDir()
	row := `{"id":"a","prompt":"Show it.","files":{"held.txt":"it is ` + setupKey + `."},"toolsets":["file","terminal"],"gold":[{"tool_calls":[{"name":"terminal","arguments":` +
		`{"command":"env; cat held.txt"}}]},{"content":"done"}],"verify":{"exact":"done"}}`
	dataset := filepath.Join(dir, "tasks.jsonl")
	if err := os.WriteFile(dataset, []byte(row), 0o644); err != nil {
		t.Fatal(err)
	}
	learn(t, server, dataset)

	p := sitDown(t, dir, "setup")
	p.answers("Model [none", "my-model\r")
	p.answers("base URL [https://api.openai.com/v1]", url+"\r")
	p.answers("its key [it wants none]", "MY_KEY\r")
	p.answers("MY_KEY [not set]", setupKey+"\r")
	p.answers("Dataset", "tasks.jsonl\r")
	p.answers("Toolsets", "fiel\r")
	p.until(`toolset "fiel"`)
	p.answers("Model [none", "my-model\r")
	p.answers("base URL", url+"\r")
	p.answers("its key", "MY_KEY\r")
	p.answers("MY_KEY [as it is]", "\r")
	p.answers("Dataset", "tasks.jsonl\r")
	p.answers("Toolsets", "file,terminal,messaging\r")
	p.until("mixture_of_agents: it needs models")
	number := ""
	for line := range strings.Lines(p.seen) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[3] == "TELEGRAM_BOT_TOKEN" {
			number = fields[0]
		}
	}
	p.answers("Numbers", "999\r")
	p.until("999 is not the number of one")
	p.answers("Numbers", number+"\r")
	p.answers("TELEGRAM_BOT_TOKEN [not set]", "another-secret-2\r")
	p.answers("Ids of the channels", "-100 7\r")
	p.answers("Try the keys", "n\r")
	p.answers("Write? [Y/n]", "\r")
	if code := p.leaves(); code != 0 || !strings.Contains(p.seen, "next: trajgen run -f run.yaml") {
		t.Fatalf("exit code %d\n%s", code, p.seen)
	}
	if strings.Contains(p.seen, "secret-") {
		t.Errorf("a key is shown:\n%s", p.seen)
	}
	about, err := os.Stat(filepath.Join(dir, ".env"))
	if err != nil || about.Mode() != 0o600 {
		t.Errorf("%v %v", about, err)
	}
	held, err := os.ReadFile(filepath.Join(dir, "run.yaml"))
	if want := "play:\n    durable_turns: true\n"; err != nil || !strings.Contains(string(held), want) || !strings.Contains(string(held), "- \"-100\"\n            - \"7\"\n") {
		t.Errorf("%v: %s", err, held)
	}

	// Again: the run file stays, the model's key works, and the other one is refused, as that is not a key.
	p = sitDown(t, dir, "setup")
	p.answers("run.yaml is there. Replace it? [y/N]", "\r")
	p.answers("Numbers", "\r")
	p.answers("Try the keys", "\x03") // Ctrl-C
	if code := p.leaves(); code != exitInterrupted || !strings.Contains(p.seen, "no file was changed") {
		t.Errorf("exit code %d\n%s", code, p.seen)
	}

	in := func(args ...string) result {
		t.Helper()
		cmd := exec.Command(build(t), args...)
		cmd.Dir = dir
		got := finish(t, cmd)
		if all := got.out + got.errOut; got.code != 0 || strings.Contains(all, "secret-key") {
			t.Fatalf("%v: exit code %d\n%s", args, got.code, all)
		}
		return got
	}
	in("run", "-f", "run.yaml", "--out", "out", "--quiet", "--sandbox", "local")
	call := episodes(t, filepath.Join(dir, "out"))[0].Calls[0]
	if got := string(call.Result); !strings.Contains(got, "it is [MY_KEY].") && !strings.Contains(got, "MY_KEY") || strings.Contains(got, setupKey) {
		t.Errorf("the call shows %s", got)
	}
	_ = filepath.WalkDir(filepath.Join(dir, "out"), func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			data, _ := os.ReadFile(path)
			if strings.Contains(string(data), setupKey) && !strings.Contains(string(data), "held.txt") {
				t.Errorf("%s has the key", path)
			}
		}
		return err
	})
	tried := in("setup", "--non-interactive", "--try", "--json").out
	for _, want := range []string{`"variable": "MY_KEY",
      "set": true,
      "result": "works"`, `"written": []`} {
		if !strings.Contains(tried, want) {
			t.Errorf("%s lacks %s", tried, want)
		}
	}
	if got := in("doctor", "--json", "-f", "run.yaml").out; !strings.Contains(got, "MY_KEY ("+url+") set") || !strings.Contains(got, "TELEGRAM_BOT_TOKEN (telegram) set") {
		t.Errorf("doctor says %s", got)
	}

	if err := os.Chmod(filepath.Join(dir, ".env"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := in("tools", "list").errOut; !strings.Contains(got, ".env has keys, and others can read it (mode 0644): chmod 600 .env") {
		t.Errorf("tools list warns %q", got)
	}
	cmd := exec.Command(build(t), "run", "-f", "run.yaml", "--out", "other", "--env-file", "none")
	cmd.Dir = dir
	if got := finish(t, cmd); got.code != exitUsage || !strings.Contains(got.errOut, "read keys: ") {
		t.Errorf("exit code %d, %s", got.code, got.errOut)
	}
}

// TestSetupGivenUp holds that whoever leaves early finds all as it was, and an echoing terminal.
func TestSetupGivenUp(t *testing.T) {
	for _, key := range []string{"\x03", "\x04"} {
		dir := t.TempDir()
		p := sitDown(t, dir, "setup")
		p.answers("Model", "my-model\r")
		p.answers("base URL", "\r")
		p.answers("its key", "\r")
		p.answers("OPENAI_API_KEY", setupKey+"\r")
		p.answers("Dataset", key)
		if code := p.leaves(); code != exitInterrupted || strings.Contains(p.seen, setupKey) {
			t.Errorf("exit code %d\n%s", code, p.seen)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 0 {
			t.Errorf("it wrote %v", entries)
		}
	}
	got := trajgen(t, "setup")
	if got.code != exitUsage || !strings.Contains(got.errOut, "setup cannot ask without a terminal: say --non-interactive") {
		t.Errorf("exit code %d, %s", got.code, got.errOut)
	}
}

// TestNothingListed says what to type where there is nothing.
func TestNothingListed(t *testing.T) {
	for want, args := range map[string][]string{
		"no jobs yet: trajgen cron add":                   {"cron", "list", "--store", filepath.Join(t.TempDir(), "cron")},
		"no skill is installed: trajgen skills install S": {"skills", "list", "--hub", filepath.Join(t.TempDir(), "hub")},
	} {
		if got := here(t, args...); got.code != 0 || got.out != "" || !strings.Contains(got.errOut, want) {
			t.Errorf("%v: %+v, want %s", args, got, want)
		}
		if got := here(t, append(args, "--json")...); got.code != 0 || got.out != "[]\n" || got.errOut != "" {
			t.Errorf("%v --json: %+v", args, got)
		}
	}
}
