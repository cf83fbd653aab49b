package mcp_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
	"trajgen/tools/mcp"
	"trajgen/tools/twin"
)

// openTwin opens a twin of tools.
func openTwin(t *testing.T, settings twin.Settings) *twin.Twin {
	t.Helper()
	on, err := twin.Open(settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { on.Close() })
	return on
}

// TestTwin holds that a recording answers for a server that is not there, as it was: with its tools and schemas, what it said, and
// what it asked the user. A lock file tells of one that the recording does not know.
func TestTwin(t *testing.T) {
	b, run := backend(t, "local"), t.TempDir()
	server := faulty("plain")
	server.Elicitation = &mcp.Elicitation{By: mcp.ByUser}
	settings := one(server)
	set := open(t, b, settings)
	for _, tool := range set.Tools() {
		utility := strings.Contains(tool.Name, "resource") || strings.Contains(tool.Name, "prompt")
		if tool.Outside != "mcp fake" || tool.Version == "" || tool.ReadOnly != utility {
			t.Errorf("%s: outside %q, version %q, read only %v", tool.Name, tool.Outside, tool.Version, tool.ReadOnly)
		}
	}
	calls := []string{"echo", "elicit", "error", "count", "count", "list_resources"}
	play := func(set *mcp.Set, on *twin.Twin) (all []episode.ToolCall, said *person) {
		said = &person{answers: map[string]string{"How many?": "12", "\nsize": "large"}}
		p := begin(t, b, set, mcp.User(said), on.Play("a", 1))
		for _, name := range calls {
			all = append(all, p.call("mcp_fake_"+name, `{}`))
		}
		if p.attempt.Servers[0].Calls != len(calls) {
			t.Errorf("the row has %d calls", p.attempt.Servers[0].Calls)
		}
		return all, said
	}
	recorder := openTwin(t, twin.Settings{Mode: twin.Record})
	if err := recorder.Record(run, false, set.Descriptions()); err != nil {
		t.Fatal(err)
	}
	want, asked := play(set, recorder)
	if err := recorder.Close(); err != nil || len(asked.asked) != 2 {
		t.Fatalf("the user was asked %q (%v)", asked.asked, err)
	}

	recorded := openTwin(t, twin.Settings{Mode: twin.Replay, Recording: run})
	away := options(b)
	away.Sandbox = func(context.Context, string) (sandbox.Sandbox, error) { panic("a server is started") }
	away.Recorded = recorded
	server.Files = []string{"not-there"}
	known, err := mcp.Open(t.Context(), one(server), away)
	if err != nil {
		t.Fatal(err)
	}
	if known.Digest() != set.Digest() || known.Runs("fake") || len(known.Tools()) != len(set.Tools()) {
		t.Errorf("digest %s of %d tools, want %s of %d", known.Digest(), len(known.Tools()), set.Digest(), len(set.Tools()))
	}
	got, asked := play(known, recorded)
	for i := range want {
		source := strings.Replace(string(got[i].Source), `"via":"replay"`, `"via":"record"`, 1)
		if got[i].Result != want[i].Result || got[i].Status != want[i].Status || source != string(want[i].Source) {
			t.Errorf("%s %s, want %s %s", got[i].Result, got[i].Source, want[i].Result, want[i].Source)
		}
	}
	if len(asked.asked) != 2 || !strings.Contains(asked.asked[0], "How many?") {
		t.Errorf("the user was asked %q", asked.asked)
	}

	// Another server, of which only the lock file tells.
	other := mcp.Settings{Servers: map[string]mcp.Server{"other": faulty("schemas")}, Lock: filepath.Join(t.TempDir(), "mcp.lock")}
	locked := open(t, b, mcp.Settings{Servers: other.Servers})
	if err := locked.WriteLock(other.Lock); err != nil {
		t.Fatal(err)
	}
	known, err = mcp.Open(t.Context(), other, away)
	if err != nil {
		t.Fatal(err)
	}
	for i, tool := range known.Tools() {
		if is := locked.Tools()[i]; tool.Name != is.Name || string(tool.Parameters) != string(is.Parameters) || tool.Version != is.Version {
			t.Errorf("%s %s %s, want %s %s %s", tool.Name, tool.Version, tool.Parameters, is.Name, is.Version, is.Parameters)
		}
	}
	if err := os.WriteFile(other.Lock, []byte(`{"version":1,"servers":{}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	away.Sandbox = options(b).Sandbox
	if _, err := mcp.Open(t.Context(), other, away); err == nil || !strings.Contains(err.Error(), "other is not in the lock file") {
		t.Errorf("an unknown server: %v", err)
	}
}
