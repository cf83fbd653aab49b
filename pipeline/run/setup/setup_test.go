package setup_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trajgen/pipeline/run"
	"trajgen/pipeline/run/setup"
)

// provider answers as each of the services does, if the request has a good key.
func provider(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost && !slices.Contains([]string{"/search", "/auth.test", "/v1/search", "/v1beta/search", "/v2/search"}, r.URL.Path) {
			t.Errorf("POST %s", r.URL.Path)
		}
		header := fmt.Sprint(r.Header)
		good := strings.Contains(header+r.URL.Path+string(body), "good-key")
		switch {
		case !good && r.URL.Path == "/auth.test":
			fmt.Fprint(w, `{"ok":false,"error":"invalid_auth"}`)
			return
		case !good && strings.Contains(r.URL.Path, "/bot"):
			http.NotFound(w, r)
			return
		case !good:
			http.Error(w, "bad-key is not a key", http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"ok":true,"success":true,"results":[],"organic":[],"web":{"results":[]},"data":{"web":[]}}`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// elsewhere is a run file in which all services are at one address.
func elsewhere(t *testing.T, url, place string) run.File {
	t.Helper()
	f := run.Default()
	part := strings.NewReplacer("URL", url, "PLACE", place).Replace(`
dataset: {path: bundled}
model: {name: m, base_url: URL, api_key_env: MODEL_KEY, header_env: {X-Team: TEAM}}
user: {model: u, base_url: URL, api_key_env: USER_KEY}
web:
  providers: {tavily: {base_url: URL}, exa: {base_url: URL}, parallel: {base_url: URL}, firecrawl: {base_url: URL}, brave: {base_url: URL}, serper: {base_url: URL, api_key_env: MY_SERPER}}
media: {providers: {openai: {base_url: URL}, elevenlabs: {base_url: URL}, fal: {base_url: URL}}}
home: {url: URL, allow_private: [127.0.0.1]}
messages:
  telegram: {base_url: URL, channels: [a]}
  discord: {base_url: URL, channels: [a]}
  slack: {base_url: URL, channels: [a]}
  webhook: {channels: {a: URL}, token_env: HOOK}
play: {durable_turns: true}
browser: {place: PLACE, url: URL}
mcp: {servers: {one: {url: URL, header_env: {Authorization: MCP_KEY}}}}
rl: {environments: {e: {dataset: bundled}}, trainer: {command: [train], env_from: [TRAINER_KEY]}}
`)
	if err := run.DecodeText([]byte(part), "run.yaml", "a run file", &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// untried are the services that no harmless request asks.
var untried = []string{"fal", "webhook", "section mcp", "section rl", "header X-Team"}

// TestTry tries every key that any service declares, at a server that takes some keys only.
func TestTry(t *testing.T) {
	url := provider(t)
	tries := map[string]int{}
	for _, place := range []string{"browserbase", "browser-use", "steel", "firecrawl"} {
		f := elsewhere(t, url, place)
		for value, want := range map[string]string{"good-key-1": setup.Works, "bad-key-22": setup.Refused} {
			s, err := setup.Examine(f)
			if err != nil {
				t.Fatal(err)
			}
			here := map[string]bool{}
			for _, key := range s.Keys {
				if key.Variable == "" {
					continue
				}
				t.Setenv(key.Variable, value)
				if key.Toolset == "browser" && key.Service != place && key.Service != "firecrawl" || strings.HasPrefix(key.Toolset, "sandbox") || strings.HasSuffix(key.Variable, "_URL") {
					os.Unsetenv(key.Variable)
				} else {
					here[key.Service] = true
				}
			}
			if s, err = setup.Examine(f); err != nil {
				t.Fatal(err)
			}
			s.Keys = slices.DeleteFunc(s.Keys, func(key *setup.Key) bool { return key.Toolset == "browser" && key.Service != place })
			s.Try(t.Context(), func(key *setup.Key) {
				tries[key.Service]++
				want := want
				if slices.Contains(untried, key.Service) {
					want = setup.Untried
				}
				if key.Result != want {
					t.Errorf("%s with %s: %s, want %s", key.Service, value, key.Outcome(), want)
				}
				if strings.Contains(key.Detail, "key-") {
					t.Errorf("%s shows its key: %s", key.Service, key.Detail)
				}
			})
			for service := range here {
				if tries[service] == 0 {
					t.Errorf("%s was not tried", service)
				}
			}
		}
	}
}

func TestTryUnreached(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	unset(t, "MODEL_KEY")
	f := run.Default()
	part := fmt.Sprintf("{dataset: {path: bundled}, model: {name: m, base_url: %q}}", closed.URL)
	if err := run.DecodeText([]byte(part), "run.yaml", "a run file", &f); err != nil {
		t.Fatal(err)
	}
	s, err := setup.Examine(f)
	if err != nil {
		t.Fatal(err)
	}
	s.Keys = s.Keys[:1]
	s.Try(t.Context(), func(*setup.Key) {})
	if key := s.Keys[0]; key.Result != setup.Silent || key.Variable != "" || !strings.Contains(key.Detail, "connection refused") {
		t.Errorf("%+v", *key)
	}
}

// TestScript writes the smallest run file, refuses to replace it, and keeps what it is told to keep.
func TestScript(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	unset(t, "MY_KEY", "TAVILY_APIKEY")
	t.Setenv("EXA_API_KEY", "of-the-environment")
	t.Setenv("BRAVE_SEARCH_API_KEY", "another-one")
	draft := func() *setup.Draft { return &setup.Draft{EnvFile: ".env", RunFile: "run.yaml"} }
	d := draft()
	d.Set("model.name", "m")
	d.Set("model.api_key_env", "MY_KEY")
	d.Set("tools.toolsets", []string{"file", "image_gen"})
	result, err := d.Run(t.Context(), setup.Script{
		Set: []string{"MY_KEY=hunter=1", "TAVILY_APIKEY=hunter-2", "BRAVE_SEARCH_API_KEY=hunter-3"}, FromEnv: true, With: []string{"media: {image: fal}", "{media: {speech: openai}, samples: 2}"},
	})
	if err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile("run.yaml")
	want := "dataset:\n    path: bundled\nmedia:\n    image: fal\n    speech: openai\nmodel:\n    api_key_env: MY_KEY\n    name: m\nsamples: 2\ntools:\n    toolsets:\n        - file\n        - image_gen\n"
	if string(data) != want {
		t.Errorf("run.yaml is\n%s", data)
	}
	if data, _ := os.ReadFile(".env"); string(data) != "BRAVE_SEARCH_API_KEY=hunter-3\nEXA_API_KEY=of-the-environment\nMY_KEY=hunter=1\nTAVILY_APIKEY=hunter-2\n" {
		t.Errorf(".env is\n%s", data)
	}
	said, _ := json.Marshal(result)
	for _, want := range []string{
		`"written":[".env","run.yaml"]`, `no toolset reads TAVILY_APIKEY (did you mean \"TAVILY_API_KEY\"?)`, `the environment has another BRAVE_SEARCH_API_KEY, which wins over .env`,
		`{"toolset":"model","service":"https://api.openai.com/v1","variable":"MY_KEY","set":true}`,
		`{"toolset":"image_gen","service":"fal","variable":"FAL_KEY","set":false,"run_file":"media: {image: fal}"}`,
		`"lacking":[{"toolset":"moa","tools":["mixture_of_agents"],"why":"it needs models`,
	} {
		if !strings.Contains(string(said), want) {
			t.Errorf("%s lacks %s", said, want)
		}
	}
	if strings.Contains(string(said), "hunter") || strings.Contains(string(said), "of-the-environment") {
		t.Errorf("keys are shown: %s", said)
	}

	for want, script := range map[string]setup.Script{
		"run.yaml is there: --force replaces it":        {With: []string{"samples: 3"}},
		"--set wants NAME=VALUE":                        {Set: []string{"hunter-4=="}},
		"is not a part of a run file":                   {With: []string{"samples"}},
		`toolset "fiel"`:                                {With: []string{"{tools: {toolsets: [fiel]}, scripted: {policy: oracle}}"}, Force: true},
		"no model: give --model NAME":                   {With: []string{"samples: 3"}, Force: true},
		`unknown image provider "fil" (have local, fal`: {With: []string{"{scripted: {policy: oracle}, media: {image: fil}}"}, Force: true},
	} {
		_, err := draft().Run(t.Context(), script)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%v: %v, want %s", script, err, want)
		}
	}
	if after, _ := os.ReadFile(filepath.Join(dir, "run.yaml")); string(after) != string(data) {
		t.Errorf("run.yaml is now\n%s", after)
	}
}
