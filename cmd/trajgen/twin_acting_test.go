package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestTwinActing records calls of a real home and messages that leave, and replays them, from a tape too, without both and their keys.
// Nothing happens twice, and the outbox that judges has what the episode said that it sends.
func TestTwinActing(t *testing.T) {
	t.Setenv("HASS_TOKEN", "home-1234567890")
	t.Setenv("HOOK_KEY", "hook-1234567890")
	var asked atomic.Int64
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		state := fmt.Sprintf(`{"entity_id":"light.a","state":"on","attributes":{"asked":%d}}`, asked.Add(1))
		switch {
		case r.Header.Get("Authorization") == "Bearer hook-1234567890":
		case r.Header.Get("Authorization") != "Bearer home-1234567890":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method == http.MethodPost:
			fmt.Fprintf(w, "[%s]", state)
		default:
			fmt.Fprint(w, state)
		}
	}))
	t.Cleanup(outside.Close)
	var tasks strings.Builder
	const look = `{"tool_calls":[{"name":"ha_get_state","arguments":{"entity_id":"light.a"}}]},`
	for i := range 10 {
		fmt.Fprintf(&tasks, `{"id":"act-%d","prompt":"Act %d.","files":{"note %d.txt":"all is well"},"verify":{"outbox":"len(sent) == 2 and sent[0].text == 'It is on.' and `+
			`sent[0].files[0].name == 'note %[1]d.txt' and sent[0].files[0].bytes == 11 and sent[1].id == 'm2'"},"gold":[`+look+
			`{"tool_calls":[{"name":"ha_call_service","arguments":{"domain":"light","service":"turn_on","entity_id":"light.a"}}]},`+look+
			`{"tool_calls":[{"name":"send_message","arguments":{"target":"webhook","message":"It is on. MEDIA:\"note %[1]d.txt\""}},`+
			`{"name":"send_message","arguments":{"target":"pigeon","message":"Hi"}},{"name":"send_message","arguments":{"target":"webhook","message":"Bye"}}]},`+
			`{"content":"done"}]}`+"\n", i, i, i, i)
	}
	dataset := write(t, "act.jsonl", tasks.String())
	settings := fmt.Sprintf("home: {url: %q, allow_private: [127.0.0.1]}\nmessages: {webhook: {token_env: HOOK_KEY, channels: {alerts: %q}}}\n"+
		"tools: {toolsets: [homeassistant, messaging]}\n", outside.URL, outside.URL)
	file := write(t, "run.yaml", settings)
	dir := t.TempDir()
	from, tape := filepath.Join(dir, "recorded"), filepath.Join(dir, "tape")
	play := plays(t, dir, "--dataset", dataset, "--policy", "oracle", "--sandbox", "local")
	recorded := play("recorded", "-f", write(t, "durable.yaml", settings+"play: {durable_turns: true}\n"), "--twin", "record", "--record", tape)
	if len(recorded) != 10 || asked.Load() != 50 || !strings.Contains(recorded[0], `"reward":1,`) {
		t.Fatalf("%d rows, asked %d times: %s", len(recorded), asked.Load(), cut(recorded[0]))
	}
	outside.Close()
	os.Unsetenv("HASS_TOKEN")
	os.Unsetenv("HOOK_KEY")
	replay := []string{"-f", file, "--twin", "replay", "--twin-recording", from}
	one := play("one", append(replay, "--workers", "1")...)
	sameRows(t, one, play("many", append(replay, "--workers", "64")...))
	sameRows(t, twins(t, recorded), twins(t, one))
	sameRows(t, twins(t, recorded), twins(t, play("taped", append(replay, "--replay", tape)...)))
	if text := succeed(t, "twin", "report", "--recording", from, "--against", filepath.Join(dir, "one")).out; strings.Count(text, "100.0%") < 3 {
		t.Errorf("report: %s", text)
	}
	for _, args := range [][]string{{"-f", file}, append([]string{"-f", write(t, "part.yaml", settings+"twin: {tools: [ha_*]}\n")}, replay[2:]...)} {
		got := here(t, append([]string{"run", "--dataset", dataset, "--policy", "oracle", "--quiet", "--out", filepath.Join(dir, "live")}, args...)...)
		if got.code != exitUsage || !strings.Contains(got.errOut, "messages: what leaves this machine must not happen twice") {
			t.Errorf("%v: exit code %d: %s", args, got.code, got.errOut)
		}
	}
}

// TestSubagentsHome holds that a subagent acts on the home of its parent, whose check judges it.
func TestSubagentsHome(t *testing.T) {
	dataset := write(t, "attic.jsonl", `{"id":"attic","prompt":"Have the attic's light switched off, and tell the office's fan to stop.","home":{"light.attic":{"state":"on","area":"Attic"}},`+
		`"verify":{"home_state":"states['light.attic'] == 'off' and changed == ['fan.office', 'light.attic'] and called == 2"},`+
		`"gold_subagents":{"Switch the light in the attic off.":[{"tool_calls":[{"name":"ha_get_state","arguments":{"entity_id":"light.attic"}},`+
		`{"name":"ha_call_service","arguments":{"domain":"light","service":"turn_off","entity_id":"light.attic"}}]},{"content":"It is off."}]},`+
		`"gold":[{"tool_calls":[{"name":"delegate_task","arguments":{"goal":"Switch the light in the attic off."}}]},`+
		`{"tool_calls":[{"name":"ha_get_state","arguments":{"entity_id":"light.attic"}},{"name":"ha_call_service","arguments":{"domain":"fan","service":"turn_off","entity_id":"fan.office"}}]},{"content":"done"}]}`+"\n")
	out := filepath.Join(t.TempDir(), "run")
	succeed(t, "run", "--dataset", dataset, "--policy", "oracle", "--toolsets", "homeassistant,delegation", "--sandbox", "local", "--quiet", "--out", out)
	ep := episodes(t, out)[0]
	if ep.Reward == nil || *ep.Reward != 1 || len(ep.Children) != 1 || !strings.Contains(ep.Children[0].Calls[0].Result, `"state":"on"`) ||
		!strings.Contains(ep.Calls[1].Result, `"state":"off"`) {
		t.Errorf("%s, reward %v, calls %+v, children %+v", ep.Outcome, ep.Reward, ep.Calls, ep.Children)
	}
}
