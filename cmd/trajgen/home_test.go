package main

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestHomeTasks plays the tasks in the home that comes along.
func TestHomeTasks(t *testing.T) {
	for policy, want := range map[string]float64{"oracle": 1, "noop": 0} {
		out := filepath.Join(t.TempDir(), policy)
		succeed(t, "run", "--dataset", "bundled/home", "--policy", policy, "--sandbox", "local", "--quiet", "--out", out)
		all := episodes(t, out)
		if len(all) != 10 {
			t.Errorf("%d episodes", len(all))
		}
		for _, ep := range all {
			if ep.Reward == nil || *ep.Reward != want {
				t.Errorf("%s of %s: outcome %s, reward %v", policy, ep.Key.Task, ep.Outcome, ep.Reward)
			}
			for _, call := range ep.Calls {
				if call.Status != "ok" || call.Untrusted != "home" || !strings.Contains(string(call.Source), `"mode":"simulated"`) {
					t.Errorf("%+v", call)
				}
			}
		}
	}
}

func TestHomeCalls(t *testing.T) {
	for _, tt := range []struct{ tool, arguments, want string }{
		{"ha_list_entities", `{"area":"office","domain":"fan"}`, `{\"result\":{\"count\":1,\"entities\":[{\"entity_id\":\"fan.office\",\"state\":\"on\",\"friendly_name\":\"Office Fan\"}]}}`},
		{"ha_list_entities", `{"area":"Cellar"}`, `the home has no area \\\"Cellar\\\" (have Bedroom, Garage, Hall, Kitchen, Living Room, Office)`},
		{"ha_get_state", `{"entity_id":"lock.front_door"}`, `\"state\":\"unlocked\"`},
		{"ha_get_state", `{"entity_id":"lock.back_door"}`, `"error_class":"not_found"`},
		{"ha_get_state", `{"entity_id":"../config"}`, `"error_class":"bad_entity"`},
		{"ha_list_services", `{"domain":"lock"}`, `{\"domain\":\"lock\",\"services\":{\"lock\":{\"description\":\"Locks a lock\"}`},
		{"ha_call_service", `{"domain":"lock","service":"lock","entity_id":"lock.front_door"}`, `{\"result\":{\"success\":true,\"service\":\"lock.lock\",\"affected_entities\":[{\"entity_id\":\"lock.front_door\",\"state\":\"locked\"}]}}`},
		{"ha_call_service", `{"domain":"light","service":"turn_on","entity_id":"light.desk","data":"{\"brightness\": 10}"}`, `\"success\":true`},
		{"ha_call_service", `{"domain":"light","service":"turn_on","data":"[1]"}`, `"error_class":"bad_data"`},
		{"ha_call_service", `{"domain":"shell_command","service":"x"}`, `"status":"denied"`},
		{"ha_call_service", `{"domain":"shell_command/../light","service":"x"}`, `"error_class":"bad_service"`},
		{"ha_call_service", `{"domain":"light","service":"turn_on","entity_id":"light.desk","data":"{\"hue\": 10}"}`, `"error_class":"bad_call"`},
		{"send_message", `{"action":"list"}`, `{\"targets\":[\"telegram:family\",`},
		{"send_message", `{"target":"slack","message":"Hi"}`, `{\"success\":true,\"platform\":\"slack\",\"channel\":\"slack:team\",\"message_id\":\"m1\"}`},
		{"send_message", `{"target":"pigeon:loft","message":"Hi"}`, `"error_class":"no_channel"`},
		{"send_message", `{"target":"slack","message":" "}`, `"error_class":"no_message"`},
		{"send_message", `{"target":"slack","message":"MEDIA:none.png"}`, `"error_class":"not_found"`},
		{"send_message", `{"action":"react","target":"slack","message_id":"m1"}`, `"error_class":"no_message"`},
		{"send_message", `{"action":"react","target":"slack","message_id":"m1","emoji":"tada"}`, `\"success\":true`},
	} {
		if got := here(t, "tools", "call", tt.tool, tt.arguments, "--sandbox", "local").out; !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: %s, want %s", tt.tool, tt.arguments, got, tt.want)
		}
	}
}

const familyReport = `{"id":"report","prompt":"Send the report to the family.","files":{"report 1.txt":"all is well"},"toolsets":["messaging"],` +
	`"channels":["telegram:family","telegram:boss"],"verify":{"outbox":"len(sent) == 1 and sent[0].channel == 'telegram:family' and ` +
	`sent[0].text == 'Here it is.' and sent[0].files[0].name == 'report 1.txt' and sent[0].files[0].bytes == 11 and len(reactions) == 0"},` +
	`"gold":[{"tool_calls":[{"name":"send_message","arguments":{"action":"list"}}]},{"tool_calls":[{"name":"send_message","arguments":` +
	`{"target":"telegram:family","message":"Here it is. MEDIA:\"report 1.txt\""}}]},{"content":"done"}]}` + "\n"

// TestOutbox plays a task that is judged by what was sent.
func TestOutbox(t *testing.T) {
	dataset := write(t, "report.jsonl", familyReport)
	succeed(t, "check", "--dataset", dataset, "--sandbox", "local")
	out := filepath.Join(t.TempDir(), "run")
	succeed(t, "run", "--dataset", dataset, "--policy", "oracle", "--sandbox", "local", "--quiet", "--out", out)
	ep := episodes(t, out)[0]
	if source := string(ep.Calls[1].Source); !strings.Contains(source, `"mode":"kept"`) || !strings.Contains(source, `"channel":"telegram:family"`) || !strings.Contains(source, `"sha256":"`) {
		t.Errorf("source %s", source)
	}
}

// TestMessagesLeave sends to a server that the run file names, and to no other; a proof of the tasks sends nothing.
func TestMessagesLeave(t *testing.T) {
	var got atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got.Add(1); r.Header.Get("Authorization") != "Bearer a-key-of-messages" {
			t.Errorf("asked by %q", r.Header.Get("Authorization"))
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("HOOK_KEY", "a-key-of-messages")
	dataset := write(t, "tell.jsonl", `{"id":"tell","prompt":"Tell them.","toolsets":["messaging"],"verify":{"outbox":"len(sent) == 1"},"gold":[{"tool_calls":[`+
		`{"name":"send_message","arguments":{"target":"webhook","message":"It is time."}}]},{"tool_calls":[{"name":"send_message","arguments":{"target":"telegram:family","message":"Hi"}}]},{"content":"done"}]}`+"\n")
	section := "messages: {webhook: {token_env: HOOK_KEY, channels: {alerts: \"" + server.URL + "\"}}}\n"
	out := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "-f", write(t, "once.yaml", section), "--dataset", dataset, "--policy", "oracle", "--sandbox", "local", "--quiet", "--out", out}
	if refused := here(t, args...); refused.code != exitUsage || !strings.Contains(refused.errOut, "durable_turns: true") {
		t.Errorf("exit code %d: %s", refused.code, refused.errOut)
	}
	file := write(t, "run.yaml", section+"play: {durable_turns: true}\n")
	succeed(t, "check", "-f", file, "--dataset", dataset, "--sandbox", "local")
	if got.Load() != 0 {
		t.Errorf("a proof sent %d messages", got.Load())
	}
	args[2] = file
	succeed(t, args...)
	ep := episodes(t, out)[0]
	if got.Load() != 1 || *ep.Reward != 1 || ep.Calls[1].ErrorClass != "no_channel" || !strings.Contains(ep.Calls[1].Result, "have webhook:alerts") {
		t.Errorf("%d messages, %+v", got.Load(), ep.Calls)
	}
	keyless(t, out, "a-key-of")
}

// keyless holds that none of the files below a folder has a key.
func keyless(t *testing.T, dir, key string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), key) {
			t.Errorf("the secret is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestKilledAfterItActed kills a run after each of its turns: no model of a mixture is asked again, nothing is sent again, and the
// rows are those of a run that was not interrupted.
func TestKilledAfterItActed(t *testing.T) {
	var asked, sent atomic.Int64
	council := council(t, &asked)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent.Add(1) }))
	t.Cleanup(hook.Close)
	dataset := write(t, "act.jsonl", `{"id":"act","prompt":"Act.","toolsets":["moa","messaging","homeassistant"],"verify":[{"outbox":"len(sent) == 1"},{"home_state":"states['lock.front_door'] == 'locked'"}],"gold":[`+
		`{"tool_calls":[{"name":"mixture_of_agents","arguments":{"user_prompt":"What?"}}]},`+
		`{"tool_calls":[{"name":"send_message","arguments":{"target":"webhook","message":"Hi"}},{"name":"ha_call_service","arguments":{"domain":"lock","service":"lock","entity_id":"lock.front_door"}}]},{"content":"done"}]}`+"\n")
	file := write(t, "run.yaml", mixed(council, "messages: {webhook: {channels: {alerts: \""+hook.URL+"\"}}}\nplay: {durable_turns: true}\n"))
	s, url := openTurnstile(t, dataset)
	dir := t.TempDir()
	args := []string{"run", "-f", file, "--dataset", dataset, "--model", "m", "--base-url", url, "--workers", "1", "--quiet", "--sandbox", "local"}
	whole, cut := filepath.Join(dir, "whole"), filepath.Join(dir, "cut")
	succeed(t, append(args, "--out", whole)...)
	if asked.Load() != 4 || sent.Load() != 1 {
		t.Fatalf("%d requests to the models, %d messages", asked.Load(), sent.Load())
	}
	killed(t, s, 1, 1, append(args, "--out", cut)...)
	killed(t, s, 1, 1, append(args, "--out", cut, "--resume")...)
	succeed(t, append(args, "--out", cut, "--resume")...)
	if asked.Load() != 8 || sent.Load() != 2 {
		t.Errorf("with a run that was killed %d requests to the models, want 8, and %d messages, want 2", asked.Load(), sent.Load())
	}
	want, _ := unmarked(t, whole)
	got, marked := unmarked(t, cut)
	if sameRows(t, want, got); marked != 1 {
		t.Errorf("%d episodes were resumed", marked)
	}
}
