package mcp_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/tools/mcp"
)

func one(s mcp.Server) mcp.Settings { return mcp.Settings{Servers: map[string]mcp.Server{"fake": s}} }

// TestOpenRefuses holds what is said of servers that cannot be used, before an episode begins.
func TestOpenRefuses(t *testing.T) {
	b := backend(t, "local")
	for mode, want := range map[string]string{
		"mute": "it did not answer within 300ms", "future": "unsupported protocol version", "exits": "it ended with status 3; its log ends with:\nno licence found",
		"endless": "more than 50 pages", "many": "it has more than 500",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			server := faulty(mode)
			if mode == "mute" {
				server.ConnectTimeout = 300 * time.Millisecond
			}
			set, err := mcp.Open(context.Background(), one(server), options(b))
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "mcp server fake: ") {
				t.Errorf("%v, want %q", err, want)
			}
			if err == nil {
				set.Close()
			}
		})
	}
	if _, err := mcp.Open(t.Context(), one(mcp.Server{Command: []string{"no-such-program"}}), options(b)); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("no program: %v", err)
	}
}

// TestNames holds how names become those of functions, whatever a server calls its tools.
func TestNames(t *testing.T) {
	b := backend(t, "local")
	set := open(t, b, one(faulty("names")))
	want := []string{
		" -> - (it has no name)",
		"a b/c -> mcp_fake_a_b_c ()",
		"a_b_c -> mcp_fake_a_b_c_",
		"dup -> mcp_fake_dup ()",
		"dup -> - (the server has another of that name)",
		"read_file -> mcp_fake_read_file ()",
		strings.Repeat("x", 200) + " -> mcp_fake_" + strings.Repeat("x", 46) + "_",
		"ünï -> mcp_fake__n_ ()",
	}
	tools := set.Described("fake").Tools
	if len(tools) != len(want) {
		t.Fatalf("%d tools: %+v", len(tools), tools)
	}
	for i, tool := range tools {
		shown := tool.Shown
		if shown == "" {
			shown = "-"
		}
		if len(shown) > 64 {
			t.Errorf("%s is too long", shown)
		}
		if got := tool.Name + " -> " + shown + " (" + tool.Refused + ")"; !strings.HasPrefix(got, want[i]) {
			t.Errorf("%s, want %s", got, want[i])
		}
	}
}

// TestSchemas holds what is made of a schema, and which tool is left out for its own.
func TestSchemas(t *testing.T) {
	b := backend(t, "local")
	set := open(t, b, one(faulty("schemas")))
	const object = `{"type":"object"}`
	want := map[string]string{
		"true": object, "empty": object, "none": object, "array": "not one of an object", "scalar": "not one of an object",
		"file": "leads out of it", "self": `{"type":"object","properties":{"child":{"$ref":"#"}}}`, "deep": "nested more than 32 deep", "big": "at most 65536",
		"extras": `{"type":"object","properties":{"z":{"type":"integer","default":{"$id":1}},"$id":{"type":"string"},"a":{"maximum":9007199254740993}}}`,
	}
	for _, tool := range set.Described("fake").Tools {
		if got := string(tool.Parameters) + tool.Refused; !strings.Contains(got, want[tool.Name]) || (tool.Refused == "") != (want[tool.Name][0] == '{') {
			t.Errorf("%s: %.300s, want %s", tool.Name, got, want[tool.Name])
		}
		delete(want, tool.Name)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
	if len(set.Tools()) != 5+4 || len(set.Warnings()) != 5 {
		t.Errorf("%d tools, warnings %q", len(set.Tools()), set.Warnings())
	}
}

// TestSettles holds that a list is taken when the server has stopped changing it.
func TestSettles(t *testing.T) {
	b := backend(t, "local")
	tools := open(t, b, one(faulty("settles"))).Described("fake").Tools
	found := false
	for _, tool := range tools {
		found = found || tool.Name == "late"
	}
	if !found {
		t.Errorf("the tool that came after connecting is missing among %d", len(tools))
	}
}

// TestLock holds that a server which has become another is refused, and told apart.
func TestLock(t *testing.T) {
	b := backend(t, "local")
	settings := one(faulty("plain"))
	set := open(t, b, settings)
	settings.Lock = filepath.Join(t.TempDir(), "mcp.lock")
	if _, err := mcp.Open(t.Context(), settings, options(b)); err == nil || !strings.Contains(err.Error(), "trajgen mcp lock writes it") {
		t.Errorf("no lock file: %v", err)
	}
	if err := set.WriteLock(settings.Lock); err != nil {
		t.Fatal(err)
	}
	if again := open(t, b, settings); again.Digest() != set.Digest() || again.Digest() == "" {
		t.Errorf("digests %s and %s", set.Digest(), again.Digest())
	}
	changed := one(faulty("changes"))
	changed.Lock = settings.Lock
	_, err := mcp.Open(t.Context(), changed, options(b))
	if err == nil || !strings.Contains(err.Error(), "tool new_today is new") || !strings.Contains(err.Error(), "its declaration") {
		t.Errorf("changed: %v", err)
	}
	if set := open(t, b, one(faulty("changes"))); set.Digest() == open(t, b, one(faulty("plain"))).Digest() {
		t.Error("the digest does not depend on the tools")
	}
	text, err := os.ReadFile(settings.Lock)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings.Lock, []byte(strings.Replace(string(text), `"Does echo."`, `"Was another."`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := mcp.Open(t.Context(), settings, options(b)); err == nil || !strings.Contains(err.Error(), "tool echo is another") || strings.Contains(err.Error(), "sleep") {
		t.Errorf("another description: %v", err)
	}
}

// TestSuspicious holds that a description which reads like an attack is told, and refused if that is wanted.
func TestSuspicious(t *testing.T) {
	b := backend(t, "local")
	settings := one(faulty("attack"))
	if set := open(t, b, settings); len(set.Warnings()) != 1 || !strings.Contains(set.Warnings()[0], "reads like an attack") {
		t.Errorf("warnings %q", set.Warnings())
	}
	settings.RefuseSuspicious = true
	if _, err := mcp.Open(t.Context(), settings, options(b)); err == nil || !strings.Contains(err.Error(), "reads like an attack") {
		t.Errorf("error %v", err)
	}
}

// TestChoice holds that a run can leave out tools, resources and prompts.
func TestChoice(t *testing.T) {
	b := backend(t, "local")
	server := faulty("plain")
	server.Tools, server.Prompts = mcp.Choice{Include: []string{"e*"}, Exclude: []string{"err*"}}, new(bool)
	var names []string
	for _, tool := range open(t, b, one(server)).Tools() {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "mcp_fake_echo mcp_fake_elicit mcp_fake_env mcp_fake_list_resources mcp_fake_read_resource" {
		t.Errorf("tools %s", got)
	}
}

// TestValidate holds that each mistake of a declaration is told, all at once.
func TestValidate(t *testing.T) {
	for want, give := range map[string]mcp.Server{
		"want a command, which runs in the sandbox, or a url":    {},
		"install the package once":                               {Command: []string{"npx", "-y", "notes"}},
		"[uv tool run notes] would fetch a package":              {Command: []string{"uv", "tool", "run", "notes"}},
		"env: API_KEY looks like a secret":                       {Command: []string{"a"}, Env: map[string]string{"API_KEY": "x"}},
		"env_allow: MY_TOKEN looks like a secret":                {Command: []string{"a"}, EnvAllow: []string{"MY_TOKEN"}},
		"header_env, oauth and transport belong to a url":        {Command: []string{"a"}, HeaderEnv: map[string]string{"A": "B"}},
		"files, env, env_allow and packages belong to a command": {URL: "http://x.org", Files: []string{"a"}},
		"url must be a whole URL":                                {URL: "ftp://x.org"},
		"transport is \"ws\"; http or sse":                       {URL: "http://x.org", Transport: "ws"},
		"the value itself does not belong here":                  {URL: "http://x.org", HeaderEnv: map[string]string{"A": "Bearer x"}},
		"oauth wants client_id_env and client_secret_env":        {URL: "http://x.org", OAuth: &mcp.OAuth{}},
		`tools: "[" is not a pattern`:                            {Command: []string{"a"}, Tools: mcp.Choice{Include: []string{"["}}},
		"elicitation: by is \"me\"; user or decline":             {Command: []string{"a"}, Elicitation: &mcp.Elicitation{By: "me"}},
		"elicitation: answers[0].match":                          {Command: []string{"a"}, Elicitation: &mcp.Elicitation{Answers: []mcp.Answer{{Match: "("}}}},
		"parallel calls leave unknown":                           {Command: []string{"a"}, Parallel: true, Sampling: &mcp.Sampling{}},
		"timeout and connect_timeout are not below 0":            {Command: []string{"a"}, Timeout: -1},
		"sampling: max_tokens and max_calls are not below 0":     {Command: []string{"a"}, Sampling: &mcp.Sampling{MaxCalls: -1}},
		"a name is a small letter and up to 39 small letters":    {Command: []string{"a"}},
	} {
		name := "fake"
		if strings.HasPrefix(want, "a name") {
			name = "No Name"
		}
		err := mcp.Settings{Servers: map[string]mcp.Server{name: give}}.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", give, err, want)
		}
	}
	if err := (mcp.Settings{Servers: map[string]mcp.Server{"a-1": {Command: []string{"node", "a.js"}}, "b": {URL: "https://x.org/mcp"}}}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestEnvironment holds that a server in a sandbox gets what is declared and nothing else of the runner's environment.
func TestEnvironment(t *testing.T) {
	t.Setenv("RUNNERS_OWN", "runner-1234567890")
	for _, name := range []string{"native", "local"} {
		b := backend(t, name)
		server := faulty("plain")
		server.EnvAllow = []string{"GIVEN_LANG", "NOT_THERE"}
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		server.Files, server.Command = []string{program}, []string{"./" + filepath.Base(program)}
		p := begin(t, b, open(t, b, one(server)))
		got := p.call("mcp_fake_env", `{}`)
		if got.Status != episode.CallOK || !strings.Contains(got.Result, "GIVEN_LANG=hunter2-GIVEN_LANG") || strings.Contains(got.Result, "runner-1234567890") || strings.Contains(got.Result, "NOT_THERE") {
			t.Errorf("%s: %s %s", name, got.Status, got.Result)
		}
	}
}
