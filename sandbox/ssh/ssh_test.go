package ssh_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"trajgen/sandbox"
	_ "trajgen/sandbox/local"
	_ "trajgen/sandbox/native"
	"trajgen/sandbox/sandboxtest"
	_ "trajgen/sandbox/ssh"
)

// runnerName is the name under which this test starts itself as a runner that is going to be killed.
const runnerName = "ssh-test-runner"

func TestMain(m *testing.M) {
	sandboxtest.Init()
	dir, err := os.MkdirTemp("", "ssh-agents-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// shared is where the agent lies unless a test is about that, so that it is uploaded once.
var shared string

func serve(t testing.TB, account Account) *Server {
	t.Helper()
	s, err := Start(t, account)
	sandboxtest.Require(t, "ssh", err)
	return s
}

// open opens a backend with the settings of a server and others.
func open(t testing.TB, s *Server, others ...string) sandbox.Backend {
	t.Helper()
	b, err := tryOpen(t, s, others...)
	if err != nil {
		t.Fatalf("open: %v; sshd said %s", err, s.Log())
	}
	sandboxtest.CloseLater(t, b)
	return b
}

func tryOpen(t testing.TB, s *Server, others ...string) (sandbox.Backend, error) {
	t.Helper()
	settings := maps.Clone(s.Settings)
	if !s.Other {
		settings["directory"] = shared
	}
	for i := 0; i < len(others); i += 2 {
		settings[others[i]] = others[i+1]
	}
	return sandbox.Open("ssh", sandbox.Options{Settings: settings, StateDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("takes root to let in another account")
	}
}

// TestContract asks the contract of a host where we are who we are here.
func TestContract(t *testing.T) {
	s := serve(t, Account{})
	sandboxtest.Run(t, func(t testing.TB) sandbox.Backend { return open(t, s) }, sandboxtest.Caps{})
}

// TestOrdinaryUser asks the contract of a host where we are an ordinary user.
func TestOrdinaryUser(t *testing.T) {
	needRoot(t)
	s := serve(t, Account{UID: 54321})
	b := open(t, s)
	if g := b.Guarantees(); g.Backend != "ssh" || g.Level != sandbox.LevelUser {
		t.Errorf("got %+v, want the level user", g)
	}
	sandboxtest.Run(t, func(t testing.TB) sandbox.Backend {
		b, err := tryOpen(t, s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}, sandboxtest.Caps{})
	if text := s.Log(); strings.Contains(text, "root from") {
		t.Errorf("somebody else was let in: %s", text)
	}
}

// TestNoise logs in to an account whose shell says much.
func TestNoise(t *testing.T) {
	needRoot(t)
	for _, noise := range []string{
		"echo welcome; printf 'no newline'; echo to stderr >&2\n",
		"head -c 300000 /dev/zero; echo; echo trajgen-agent-starts-not\n",
		"alias exec=false printf=false; set -u\ntrap 'echo leaving' EXIT\n",
	} {
		s := serve(t, Account{Files: map[string]string{".bashrc": noise}})
		if got := sandboxtest.Sh(t, sandboxtest.Box(t, open(t, s), sandbox.Spec{ID: "noise"}), "echo hi"); got != "hi\n" {
			t.Errorf("after %q: got %q", noise, got)
		}
	}
	for noise, want := range map[string]string{
		"echo go away >&2; exit 3\n":       "go away",
		"cat /dev/zero | tr '\\0' '\\n'\n": "more than",
	} {
		s := serve(t, Account{Files: map[string]string{".bashrc": noise}})
		if b, err := tryOpen(t, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("after %q: got %v, %v, want %q", noise, b, err, want)
		}
	}
}

// agents are the programs that lie on the host.
func agents(t testing.TB, s *Server) []string {
	t.Helper()
	dir := filepath.Join(s.Home, ".cache", "trajgen")
	if given := s.Settings["directory"]; given != "" {
		dir = given
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, filepath.Join(dir, e.Name()))
	}
	return all
}

func TestUpload(t *testing.T) {
	s := serve(t, Account{})
	own := s.Settings["directory"]
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			b, err := tryOpen(t, s, "directory", own)
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			defer b.Close()
			if got := sandboxtest.Sh(t, sandboxtest.Box(t, b, sandbox.Spec{ID: fmt.Sprintf("upload-%d", i)}), "echo hi"); got != "hi\n" {
				t.Errorf("got %q", got)
			}
		})
	}
	wait.Wait()
	found := agents(t, s)
	if len(found) != 1 || !strings.HasPrefix(filepath.Base(found[0]), "agent-") {
		t.Fatalf("got %q, want one agent", found)
	}
	before, err := os.Stat(found[0])
	if err != nil || before.Mode() != 0o755 {
		t.Fatalf("got %v, %v", before.Mode(), err)
	}
	// What nobody used for long goes with the next upload, and what was half uploaded.
	dir := filepath.Dir(found[0])
	for _, name := range []string{"agent-old", ".upload-old", "agent-new"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if long := time.Now().Add(-1000 * time.Hour); name != "agent-new" {
			if err := os.Chtimes(filepath.Join(dir, name), long, long); err != nil {
				t.Fatal(err)
			}
		}
	}
	open(t, s, "directory", own)
	if after, err := os.Stat(found[0]); err != nil || !os.SameFile(before, after) {
		t.Errorf("it was uploaded again, %v", err)
	}
	if err := os.Remove(found[0]); err != nil {
		t.Fatal(err)
	}
	open(t, s, "directory", own)
	if got := agents(t, s); len(got) != 2 {
		t.Errorf("got %q, want the agent and the one of somebody else", got)
	}
}

func TestDirectory(t *testing.T) {
	s := serve(t, Account{})
	if os.Getuid() == 0 {
		blocked := filepath.Join(s.Home, ".cache")
		if err := os.WriteFile(blocked, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := tryOpen(t, s, "directory", ""); err == nil || !strings.Contains(err.Error(), "upload the agent") {
			t.Errorf("got %v, %v, want an upload that failed", b, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "with a space")
	sandboxtest.Sh(t, sandboxtest.Box(t, open(t, s, "directory", dir), sandbox.Spec{ID: "directory"}), "true")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v", entries, err)
	}
}

func TestLostConnection(t *testing.T) {
	s := serve(t, Account{})
	b := open(t, s)
	sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "lost"})
	sandboxtest.Sh(t, sb, sandboxtest.Daemons("271.5"))
	p, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"sleep", "271.5"}})
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, 30*time.Second, "four sleepers", func() bool { return sandboxtest.Sleepers("271.5") == 4 })
	s.Drop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := p.Wait(ctx); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("wait: got %v, want ErrGone", err)
	}
	if _, err := sb.Start(ctx, sandbox.Command{Args: []string{"true"}}); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("start: got %v, want ErrGone", err)
	}
	sandboxtest.Eventually(t, 30*time.Second, "all processes gone", func() bool { return sandboxtest.Sleepers("271.5") == 0 })
	// All who come now share one new connection.
	var wait sync.WaitGroup
	for i := range 10 {
		wait.Go(func() {
			if got := sandboxtest.Sh(t, sandboxtest.Box(t, b, sandbox.Spec{ID: fmt.Sprintf("again-%d", i)}), "echo hi"); got != "hi\n" {
				t.Errorf("got %q", got)
			}
		})
	}
	wait.Wait()
	sandboxtest.Eventually(t, 30*time.Second, "one connection", func() bool { return s.Connections() == 1 })
	if err := sb.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	s.Stop(true)
	s.Drop()
	sandboxtest.Eventually(t, 30*time.Second, "no connection", func() bool { return s.Connections() == 0 })
	if _, err := b.Open(ctx, sandbox.Spec{ID: "down"}); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("open: got %v", err)
	}
	s.Stop(false)
	sandboxtest.Sh(t, sandboxtest.Box(t, b, sandbox.Spec{ID: "up"}), "true")
	// A connection whose loss shows only when it is used costs nothing.
	for i := range 10 {
		s.Drop()
		sandboxtest.Sh(t, sandboxtest.Box(t, b, sandbox.Spec{ID: fmt.Sprintf("dropped-%d", i)}), "true")
	}
}

func init() { sandboxtest.Role(runnerName, runner) }

func runner(args []string) error {
	opts := sandbox.Options{StateDir: args[0]}
	if err := json.Unmarshal([]byte(args[1]), &opts.Settings); err != nil {
		return err
	}
	b, err := sandbox.Open("ssh", opts)
	if err != nil {
		return err
	}
	return sandboxtest.Hold(b, 10, args[2])
}

func TestKilledRunner(t *testing.T) {
	s := serve(t, Account{})
	stateDir, seconds := t.TempDir(), "272.5"
	settings, err := json.Marshal(s.Settings)
	if err != nil {
		t.Fatal(err)
	}
	c := sandboxtest.Runner(t, runnerName, stateDir, string(settings), seconds)
	if live, err := sandbox.List(stateDir); err != nil || len(live) != 10 || live[0].Backend != "ssh" {
		t.Errorf("list: got %v, %v", live, err)
	}
	sandboxtest.Eventually(t, 30*time.Second, "all sleepers", func() bool { return sandboxtest.Sleepers(seconds) == 30 })
	sandboxtest.Kill(t, c)
	took := sandboxtest.Eventually(t, 30*time.Second, "all processes gone", func() bool { return sandboxtest.Sleepers(seconds) == 0 })
	t.Logf("gone after %v", took)
	if swept, err := sandbox.Sweep(stateDir); err != nil || len(swept) != 1 {
		t.Errorf("sweep: got %v, %v", swept, err)
	}
}

func TestJump(t *testing.T) {
	first, second := serve(t, Account{}), serve(t, Account{})
	known := filepath.Join(t.TempDir(), "known_hosts")
	var lines []byte
	for _, s := range []*Server{first, second} {
		content, err := os.ReadFile(s.Settings["known_hosts"])
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, content...)
	}
	if err := os.WriteFile(known, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	keys := first.Settings["identity_file"] + "," + second.Settings["identity_file"]
	b := open(t, second, "jump", first.Settings["host"]+", "+second.Settings["host"], "known_hosts", known, "identity_file", keys)
	if got := sandboxtest.Sh(t, sandboxtest.Box(t, b, sandbox.Spec{ID: "jumped"}), "echo hi"); got != "hi\n" {
		t.Errorf("got %q", got)
	}
	if n, m := first.Connections(), second.Connections(); n != 1 || m != 2 {
		t.Errorf("got %d and %d connections, want 1 and 2", n, m)
	}
	first.Drop()
	sandboxtest.Eventually(t, 30*time.Second, "a new way", func() bool {
		sb, err := b.Open(t.Context(), sandbox.Spec{ID: "again"})
		if err == nil {
			sb.Close()
		}
		return err == nil
	})
	// Each on the way is verified.
	if b, err := tryOpen(t, second, "jump", first.Settings["host"], "identity_file", keys); err == nil || !strings.Contains(err.Error(), "is not in") {
		t.Errorf("got %v, %v, want an unknown host", b, err)
	}
}

func TestHosts(t *testing.T) {
	first, second := serve(t, Account{}), serve(t, Account{})
	b := open(t, first, "host", first.Settings["host"]+","+second.Settings["host"], "insecure_host_key", "true",
		"identity_file", first.Settings["identity_file"]+","+second.Settings["identity_file"])
	if first.Connections() != 1 || second.Connections() != 1 {
		t.Errorf("got %d and %d connections, want one each", first.Connections(), second.Connections())
	}
	// They lie on this machine both, and differ in what they lose.
	var all []sandbox.Sandbox
	for i := range 6 {
		all = append(all, sandboxtest.Box(t, b, sandbox.Spec{ID: fmt.Sprintf("spread-%d", i)}))
	}
	if _, err := b.Open(t.Context(), sandbox.Spec{ID: "spread-3"}); err == nil {
		t.Error("two sandboxes of one id")
	}
	second.Stop(true)
	second.Drop()
	gone := func() (n int) {
		for _, sb := range all {
			if _, err := sb.Files().Stat(t.Context(), "."); errors.Is(err, sandbox.ErrGone) {
				n++
			}
		}
		return n
	}
	sandboxtest.Eventually(t, 30*time.Second, "half of them gone", func() bool { return gone() == 3 })
	for i := range 6 {
		sandboxtest.Sh(t, sandboxtest.Box(t, b, sandbox.Spec{ID: fmt.Sprintf("one-%d", i)}), "true")
	}
	first.Stop(true)
	first.Drop()
	sandboxtest.Eventually(t, 30*time.Second, "all of them gone", func() bool { return gone() == 6 })
	if _, err := b.Open(t.Context(), sandbox.Spec{ID: "none"}); err == nil {
		t.Error("a sandbox on no host")
	}
	second.Stop(false)
	sandboxtest.Sh(t, sandboxtest.Box(t, b, sandbox.Spec{ID: "back"}), "true")
}

func TestSnapshot(t *testing.T) {
	first, second := serve(t, Account{}), serve(t, Account{})
	b := open(t, first, "host", first.Settings["host"]+","+second.Settings["host"], "insecure_host_key", "true",
		"identity_file", first.Settings["identity_file"]+","+second.Settings["identity_file"])
	if !b.Guarantees().Snapshots {
		t.Skip("the host has none")
	}
	sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "original"})
	sandboxtest.Sh(t, sb, "echo sealed > file")
	snapshot, err := sb.(sandbox.Snapshotter).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	for i := range 4 {
		fork, err := b.Open(t.Context(), sandbox.Spec{ID: fmt.Sprintf("fork-%d", i), From: snapshot})
		if err != nil {
			t.Fatal(err)
		}
		if got := sandboxtest.Sh(t, fork, "cat file"); got != "sealed\n" {
			t.Errorf("got %q", got)
		}
		fork.Close()
	}
	if _, err := open(t, first).Open(t.Context(), sandbox.Spec{ID: "foreign", From: snapshot}); err == nil || !strings.Contains(err.Error(), "another backend") {
		t.Errorf("got %v", err)
	}
}

func TestNativeOnly(t *testing.T) {
	s := serve(t, Account{})
	if g := open(t, s, "isolation", "native").Guarantees(); g.Level == sandbox.LevelNone {
		t.Errorf("got %+v", g)
	}
}
