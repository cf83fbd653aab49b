package sandboxtest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"trajgen/sandbox"
)

// counter is a service that tells each who connects how many did, and a word.
const counter = `import os, socket
s = socket.create_server(("127.0.0.1", 7000))
open("/tmp/up", "w").close()
for n in range(1, 100):
    c, _ = s.accept()
    c.sendall(f"{os.environ.get('WORD')} {n}\n".encode())
    c.close()`

// ask connects to it.
const ask = "exec 3<>/dev/tcp/counter/7000 && cat <&3"

// counting is that service.
func counting(word string) sandbox.Service {
	return sandbox.Service{
		Name: "counter", Entrypoint: []string{"python3", "-c"}, Args: []string{counter}, Env: map[string]string{"WORD": word},
		Health: &sandbox.Health{Args: []string{"test", "-e", "/tmp/up"}, Timeout: 10 * time.Second, Retries: 400, Interval: 50 * time.Millisecond},
	}
}

// shell is a service that runs a script.
func shell(name, script string) sandbox.Service {
	return sandbox.Service{Name: name, Entrypoint: []string{"sh", "-c", script}}
}

// serviceCases are about Spec.Services.
var serviceCases = []testCase{
	{name: "a service beside the sandbox", services: true, check: func(k *kit) {
		service := counting("first")
		service.Files = []sandbox.FileWrite{{Path: "/opt/new/given", Data: []byte("given")}}
		service.User, service.Workdir = "1234", "/opt/new"
		service.Health.Args = []string{"sh", "-c", `[ "$(id -u) $(pwd) $(cat given)" = "1234 /opt/new given" ] && [ -e /tmp/up ]`}
		sb := k.open(sandbox.Spec{Services: []sandbox.Service{service}, Hosts: []string{"gate"}, Env: map[string]string{"OWN": "x"}})
		equal(k, "asked", k.asks(sb, ask), "first 1\n")
		equal(k, "by another name", k.asks(sb, strings.Replace(ask, "counter", "gate", 1)), "first 2\n")
		equal(k, "its files and processes", k.shIn(sb, "ls /tmp/up 2>/dev/null; cat /proc/[0-9]*/cmdline | grep -ac 'socket[.]create_server' || true"), "0\n")
		k.killAll(sb)
		equal(k, "after all was killed", k.asks(sb, ask), "first 3\n")
	}},
	{name: "services of sandboxes at once", services: true, check: func(k *kit) {
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				word := fmt.Sprint("word-", i)
				sb, err := k.backend.Open(k.Context(), sandbox.Spec{ID: word, Services: []sandbox.Service{counting(word)}})
				if err != nil {
					k.Errorf("open: %v", err)
					return
				}
				for n := range 2 {
					r, err := sandbox.Run(k.Context(), sb, sandbox.Command{Args: []string{"bash", "-c", ask}}, sandbox.RunOptions{})
					if got := string(r.Stdout.Bytes()); err != nil || got != fmt.Sprintf("%s %d\n", word, n+1) {
						k.Errorf("%s: got %q, %v", word, got, err)
					}
				}
				if err := sb.Close(); err != nil {
					k.Errorf("close: %v", err)
				}
			})
		}
		all.Wait()
	}},
	{name: "services have no network beyond", services: true, isolation: true, check: func(k *kit) {
		look := shell("look", "tail -n +3 /proc/net/dev; tail -n +2 /proc/net/route; exit 1")
		_, err := k.backend.Open(k.Context(), sandbox.Spec{ID: "closed", Network: sandbox.NetworkNone, Services: []sandbox.Service{look}})
		if err == nil || strings.Count(err.Error(), ":") != 3 || !strings.Contains(err.Error(), "printed: lo:") {
			k.Errorf("got %v, want one interface and no route", err)
		}
	}},
	{name: "a fork joins the services", services: true, snapshots: true, check: func(k *kit) {
		sb := k.open(sandbox.Spec{Services: []sandbox.Service{counting("origin's")}})
		equal(k, "asked", k.asks(sb, ask+"; echo here > /tmp/here; echo 127.0.0.9 counter > /etc/hosts || true"), "origin's 1\n")
		k.killAll(sb)
		s := k.snapshot(sb)
		fork := k.fork(s)
		equal(k, "in a fork", k.asks(fork, ask+"; cat /tmp/here; rm /tmp/here"), "origin's 2\nhere\n")
		equal(k, "in a fork of it", k.asks(k.fork(k.snapshot(fork)), ask), "origin's 3\n")
		equal(k, "in the origin", k.asks(sb, "cat /tmp/here; "+strings.Replace(ask, "counter", "127.0.0.1", 1)), "here\norigin's 4\n")
		for _, wrong := range []sandbox.Spec{{ID: "own", From: s, Services: []sandbox.Service{counting("own")}}, {ID: "wider", From: s, Network: sandbox.NetworkFull}} {
			if _, err := k.backend.Open(k.Context(), wrong); err == nil || !strings.Contains(err.Error(), "a fork ") {
				k.Errorf("%s: got %v", wrong.ID, err)
			}
		}
	}},
	{name: "services start in their order", services: true, check: func(k *kit) {
		once := shell("migrate", "mkdir /tmp/begun 2>/dev/null && exit 1; [ -z \"$(cat /dev/tcp/127.0.0.1/7000 2>/dev/null)\" ]")
		once.Once, once.Restart = true, sandbox.RestartFailed
		second := counting("second")
		second.After = []string{"migrate"}
		third := shell("third", "exec bash -c '"+strings.Replace(ask, "cat", "grep second", 1)+" && sleep 99'")
		third.After = []string{"counter"}
		equal(k, "asked", k.asks(k.open(sandbox.Spec{Services: []sandbox.Service{once, second, third}}), ask), "second 2\n")
	}},
	{name: "a service that starts again", services: true, check: func(k *kit) {
		short := counting("again")
		short.Args, short.Restart = []string{strings.Replace(counter, "range(1, 100)", "range(1, 3)", 1)}, sandbox.RestartAlways
		sb := k.open(sandbox.Spec{Services: []sandbox.Service{short}})
		equal(k, "asked three times", k.asks(sb, "for i in 1 2 3; do until ("+ask+") 2>/dev/null; do sleep 0.1; done; done"), "again 1\nagain 2\nagain 1\n")
	}},
	{name: "services that do not get ready", services: true, check: func(k *kit) {
		slow := counting("")
		slow.Entrypoint, slow.Args = []string{"sh", "-c"}, []string{"echo I wait; exec sleep 99"}
		slow.Health = &sandbox.Health{Args: []string{"sh", "-c", "echo not yet; exit 7"}, Timeout: 20 * time.Second, Retries: 2}
		once := shell("once", "echo halfway; exit 6")
		once.Once = true
		dies := counting("")
		dies.Args = []string{"raise SystemExit(5)"}
		for want, service := range map[string]sandbox.Service{
			"the service dies ended with status 3; it printed: bad luck":                                                       shell("dies", "echo bad luck; exit 3"),
			"the service counter ended with status 5; it printed nothing":                                                      dies,
			"the service counter is not healthy: its check failed 2 times, at last with status 7: not yet; it printed: I wait": slow,
			"the service once ended with status 6; it printed: halfway":                                                        once,
			"start the service lacks: ":                                                  {Name: "lacks", Entrypoint: []string{"no-such-program"}},
			`service "twice": another has its name`:                                      {Name: "twice"},
			`service "a b": its name is not of letters`:                                  {Name: "a b"},
			`service "early": it comes after "late", which is not before it in the list`: {Name: "early", After: []string{"late"}},
			`service "ill": its health check needs a command, a timeout and retries`:     {Name: "ill", Health: &sandbox.Health{}},
		} {
			services := []sandbox.Service{shell("twice", "exec sleep 99"), service}
			_, err := k.backend.Open(k.Context(), sandbox.Spec{ID: "not-ready", Services: services})
			if err == nil || !strings.Contains(err.Error(), want) {
				k.Errorf("got %v, want %q", err, want)
			}
		}
		k.open(sandbox.Spec{ID: "not-ready"})
	}},
	{name: "services that cannot be had are refused", check: func(k *kit) {
		if k.backend.Guarantees().Services {
			return
		}
		_, err := k.backend.Open(k.Context(), sandbox.Spec{ID: "services", Services: []sandbox.Service{{Name: "db", Image: "db"}}})
		if err == nil || !strings.Contains(err.Error(), "take docker or podman") {
			k.Errorf("got %v, want what to do", err)
		}
	}},
}

// asks runs a script of bash that must succeed.
func (k *kit) asks(sb sandbox.Sandbox, script string) string {
	k.Helper()
	r := k.runIn(sb, sandbox.Command{Args: []string{"bash", "-c", script}}, 20*time.Second)
	if r.Exit.Code != 0 {
		k.Errorf("%q: got %+v, %q", script, r.Exit, r.Stderr.Bytes())
	}
	return string(r.Stdout.Bytes())
}
