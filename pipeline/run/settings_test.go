package run

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"trajgen/tools/moa"
)

// TestSettingsDecide holds that every field of a run file says whether it is of the experiment, under a name of its own.
func TestSettingsDecide(t *testing.T) {
	file := Default()
	all := map[string]Setting{}
	for _, s := range file.Settings() {
		if other, taken := all[s.name()]; taken {
			t.Errorf("%s and %s are both called %s", s.Key, other.Key, s.name())
		}
		all[s.name()] = s
	}
	for _, s := range all {
		within, part := strings.CutPrefix(s.Decides, "in ")
		if _, known := all[within]; !slices.Contains([]string{"no", "always", "given"}, s.Decides) && !(part && known) {
			t.Errorf("%s: the tag experiment is %q", s.Key, s.Decides)
		}
	}
	for name := range file.ownTexts(experimentParts{}) {
		if decides := all[name].Decides; decides != "always" && decides != "given" {
			t.Errorf("the fingerprint has a text for %s, whose tag experiment is %q", name, decides)
		}
	}
}

// TestEverySettingCounts changes each setting of the experiment, and finds another fingerprint, and each of the others, and
// finds the same.
func TestEverySettingCounts(t *testing.T) {
	contents := []string{"dataset", "map", "distribution", "plugins", "mcp_servers", "system_prompt", "ephemeral_system_prompt", "prefill", "replay", "faults_clean", "twin", "web", "skills", "skills_include"} // read later
	mixed := func(f *File) { f.MOA.References = []moa.Model{{Model: "a"}} }
	beside := map[string]func(*File){
		"moa_aggregator": mixed, "moa_at_least": mixed, "moa_max_tokens": mixed,
		"draw":     func(f *File) { f.Tools.Distribution = "default" },
		"skill":    func(f *File) { f.Scripted.Policy = "noisy" },
		"approver": func(f *File) { f.Commands.Policy = "approve" }, "approver_model": func(f *File) { f.Commands.Policy = "approve" },
		"max_tasks": func(f *File) { f.Dataset.Stratify = "difficulty" },
	}
	values := map[string]string{
		"draw": `"task"`, "guardrails": `"tell"`, "token_ids": `"vllm"`, "send_seed": "false", "command_policy": `"enforce"`, "fallbacks": `[{"model": "b"}]`,
		"sweep": `{"temperature": [0, 1]}`, "tool_search": `{"enabled": "on"}`, "custom_toolsets": `{"a": {"tools": ["terminal"]}}`, "prices": `{"m": {"input": 1}}`,
		"plugins": `[{"name": "a"}]`, "policy": `"oracle"`, "media_providers": `{"fal": {"base_url": "http://h"}}`,
		"rl_environments": `{"a": {"dataset": "b"}}`, "rl_trainer": `{"command": ["a"]}`, "rl_fields": `{"a": {"type": "int"}}`, "rl_models": `{"a": {"model": "b"}}`,
		"moa_references": `[{"model": "b"}]`, "moa_aggregator": `{"model": "b"}`, "messages_telegram": `{"channels": ["1"]}`,
		"messages_discord": `{"channels": ["1"]}`, "messages_slack": `{"channels": ["1"]}`, "messages_email": `{"channels": ["a@b.example"]}`,
		"messages_webhook": `{"channels": {"a": "http://h"}}`, "verifier": `{"sandbox": "same"}`,
		"faults_settings": `{"timeout": {"times": 2}}`, "faults_alternatives": `[["a", "b"]]`, "faults_mitigate": `{"retry": 1}`,
	}
	kinds := map[string]string{"string": `"x"`, "int": "7", "uint": "7", "number": "0.25", "bool": "true", "duration": `"7s"`, "size": `"33M"`, "list": `["x"]`, "pairs": `{"x": 1}`}
	var blank File
	for i, s := range blank.Settings() {
		if slices.Contains(contents, s.name()) || s.Decides == "in web" || s.Decides == "in twin" {
			continue
		}
		was, now := Default(), Default()
		if prepare := beside[s.name()]; prepare != nil {
			prepare(&was)
			prepare(&now)
		}
		value, own := values[s.name()]
		if !own {
			value = kinds[kindOf(s.Value.Type())]
		}
		text := value
		for _, key := range slices.Backward(strings.Split(s.Key, ".")) {
			text = `{"` + key + `": ` + text + `}`
		}
		if err := json.Unmarshal([]byte(text), &now); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if now.Settings()[i].text() == was.Settings()[i].text() {
			t.Fatalf("%s is not another value", text)
		}
		lines := Difference(was.experiment(experimentParts{}), now.experiment(experimentParts{}))
		if differs := len(lines) > 0; differs != (s.Decides != "no") {
			t.Errorf("with %s the experiment differs: %v", text, lines)
		}
	}
}

// TestOlderRunFiles holds that a run.json from before the sections is read as it was meant.
func TestOlderRunFiles(t *testing.T) {
	const older = `{"name": "n", "dataset": "bundled", "model": "m", "base_url": "http://a/v1", "samples": 2, "seed": 18446744073709551615, "sandbox": "local",
		"sandbox_settings": {"host": "h"}, "max_turns": 3, "episode_timeout": "1m30s", "memory": "2G", "policy": "noisy", "command_policy": "off", "budget_usd": 1.5,
		"user_model": "u", "provider": {"order": ["a"]}, "sweep": {"temperature": [0, 1]}, "toolsets": ["file"]}`
	const newer = `{"name": "n", "samples": 2, "seed": 18446744073709551615, "dataset": {"path": "bundled"}, "model": {"name": "m", "base_url": "http://a/v1", "provider": {"order": ["a"]}},
		"sandbox": {"backend": "local", "settings": {"host": "h"}, "memory": "2G"}, "limits": {"turns": 3, "time": "1m30s"}, "scripted": {"policy": "noisy"},
		"commands": {"policy": "off"}, "budget": {"usd": 1.5}, "user": {"model": "u"}, "sweep": {"temperature": [0, 1]}, "tools": {"toolsets": ["file"]}}`
	var was, want File
	for text, into := range map[string]*File{older: &was, newer: &want} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, was, cmp.AllowUnexported(File{})); diff != "" || was.Seed != 1<<64-1 || was.Model.Name != "m" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := json.Marshal(was)
	var again File
	if err == nil {
		err = json.Unmarshal(text, &again)
	}
	if diff := cmp.Diff(was, again, cmp.AllowUnexported(File{}), cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
