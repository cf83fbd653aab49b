package tools_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/budget"
	"trajgen/registry"
	"trajgen/tools"
	"trajgen/tools/rl"
)

// lab is a run's trainings with a trainer that is a shell script.
type lab struct {
	config rl.Config
	now    time.Time
}

func newLab(t *testing.T, script string, change func(s *rl.Settings)) *lab {
	t.Helper()
	l := &lab{now: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}
	least, most := 0.0, 1.0
	s := rl.Settings{
		Environments: map[string]rl.Environment{"sums": {Dataset: "sums.jsonl", Description: "adding"}, "words": {Dataset: "words.jsonl"}},
		Trainer:      rl.Trainer{Command: []string{"sh", "-c", script, "{config}"}, EnvFrom: []string{"TRAINER_KEY"}, Env: map[string]string{"MODE": "fast"}},
		Fields: map[string]rl.Field{
			"rate": {Type: "number", Default: 0.5, Min: &least, Max: &most}, "steps": {Type: "int", Default: 3},
			"kind": {Type: "text", Default: "a", Values: []string{"a", "b"}}, "fast": {Type: "bool", Default: false},
		},
		Locked: map[string]any{"tokenizer": "small"},
	}
	if change != nil {
		change(&s)
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	l.config = rl.Config{
		Settings: s, Dir: filepath.Join(t.TempDir(), "trainings"), Program: "/no/trajgen", Now: func() time.Time { return l.now },
		Lookup: func(name string) (string, bool) {
			if name == "TRAINER_KEY" {
				return "a-secret", true
			}
			return os.LookupEnv(name)
		},
	}
	return l
}

// open is a runner that is started, with an episode.
func (l *lab) open(t *testing.T, attempt int, ask model.Ask) (*episodeOf, *rl.Lab) {
	t.Helper()
	opened, err := rl.Open(l.config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return l.episode(t, opened.View("e1", attempt, ask)), opened
}

func (l *lab) episode(t *testing.T, services ...any) *episodeOf {
	t.Helper()
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	set, err := reg.Select([]string{"rl"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	session := set.Session(registry.SessionConfig{Services: services})
	t.Cleanup(session.Close)
	return &episodeOf{t: t, session: session}
}

// start starts a training of sums, and returns its id.
func start(e *episodeOf) string {
	e.t.Helper()
	e.ok("rl_select_environment", args{"name": "sums"})
	return e.ok("rl_start_training", args{})["run_id"].(string)
}

// status is a training's status.
func (l *lab) status(e *episodeOf, id string) map[string]any {
	l.now = l.now.Add(time.Hour)
	return e.ok("rl_check_status", args{"run_id": id})
}

// until waits for a status.
func (l *lab) until(e *episodeOf, id, want string) map[string]any {
	e.t.Helper()
	for range 1000 {
		if got := l.status(e, id); got["status"] == want {
			return got
		}
		time.Sleep(5 * time.Millisecond)
	}
	e.t.Fatalf("training %s never is %s", id, want)
	return nil
}

func TestRLSchemas(t *testing.T) {
	goldenSchemas(t, newLab(t, "true", nil).episode(t).session.Toolset())
}

func TestRLConfig(t *testing.T) {
	l := newLab(t, `cat "$0" > seen.json; env > env.txt`, nil)
	e, _ := l.open(t, 1, nil)
	if got := e.call("rl_get_current_config", args{}); got.ErrorClass != "no_environment" {
		t.Errorf("%s", got.Result)
	}
	if got := e.ok("rl_list_environments", args{}); got["count"] != 2.0 {
		t.Errorf("%v", got)
	}
	if got := e.call("rl_select_environment", args{"name": "sum"}); got.ErrorClass != "unknown_environment" || !strings.Contains(got.Result, `"available":["sums","words"]`) {
		t.Errorf("%s", got.Result)
	}
	e.ok("rl_select_environment", args{"name": "sums"})
	for _, tt := range []struct {
		field string
		value any
		want  string // in the result, or the class of the failure
	}{
		{"rate", "0.25", `"value":0.25`}, {"steps", 7, `"value":7`}, {"steps", "8", `"value":8`}, {"kind", "b", `"value":"b"`}, {"fast", "True", `"value":true`},
		{"rate", 2, "invalid_value"}, {"rate", "NaN", "invalid_value"}, {"steps", 1.5, "invalid_value"}, {"kind", "c", "invalid_value"}, {"fast", 7, "invalid_value"},
		{"tokenizer", "large", "locked"}, {"stepz", 1, "unknown_field"}, {"kind", []int{1}, "invalid_value"},
	} {
		if got := e.call("rl_edit_config", args{"field": tt.field, "value": tt.value}); got.ErrorClass != tt.want && !strings.Contains(got.Result, tt.want) {
			t.Errorf("%s = %v: %s %s", tt.field, tt.value, got.ErrorClass, got.Result)
		}
	}
	id := e.ok("rl_start_training", args{})["run_id"].(string)
	if len(id) != 8 {
		t.Errorf("id %q", id)
	}
	l.until(e, id, "finished")
	seen, err := os.ReadFile(filepath.Join(l.config.Dir, id, "seen.json"))
	if want := "{\n  \"fast\": true,\n  \"kind\": \"b\",\n  \"rate\": 0.25,\n  \"steps\": 8,\n  \"tokenizer\": \"small\"\n}"; err != nil || string(seen) != want {
		t.Errorf("%s, %v", seen, err)
	}
	env, err := os.ReadFile(filepath.Join(l.config.Dir, id, "env.txt"))
	var names []string
	for line := range strings.Lines(string(env)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		names = append(names, key)
		if key == "TRAINER_KEY" && value != "a-secret" || key == "MODE" && value != "fast" {
			t.Errorf("%s", line)
		}
	}
	for _, name := range []string{"TRAINER_KEY", "MODE", "TRAJGEN_RL_CONFIG", "TRAJGEN_RL_METRICS", "TRAJGEN_RL_DATASET", "TRAJGEN_RL_RUN_FILE", "TRAJGEN_RL_PROGRAM", "TRAJGEN_RL_TRAINING"} {
		if !slices.Contains(names, name) {
			t.Errorf("the trainer has no %s: %v, %v", name, names, err)
		}
	}
	if slices.Contains(names, "REQUIRE_SANDBOXES") || slices.Contains(names, "GOMAXPROCS") {
		t.Errorf("the trainer has the runner's environment: %v", names)
	}
	// The secret is in the trainer's environment and nowhere else.
	_ = filepath.WalkDir(l.config.Dir, func(path string, d os.DirEntry, err error) error {
		if data, _ := os.ReadFile(path); filepath.Base(path) != "env.txt" && strings.Contains(string(data), "a-secret") {
			t.Errorf("%s has the secret", path)
		}
		return err
	})
	if e.ok("rl_select_environment", args{"name": "words"}); e.ok("rl_get_current_config", args{})["configurable_fields"].(map[string]any)["steps"].(map[string]any)["value"] != 3.0 {
		t.Error("another environment does not begin with the defaults")
	}
}

// TestRLReady waits for each sign that a trainer works.
func TestRLReady(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	for name, tt := range map[string]struct {
		script string
		ready  rl.Ready
		class  string
	}{
		"log":       {"echo loading; sleep 0.1; echo 'serving on 7'; sleep 60", rl.Ready{Log: `^serving on \d`}, ""},
		"file":      {"sleep 0.1; touch is-ready; sleep 60", rl.Ready{File: "is-ready"}, ""},
		"url":       {"sleep 60", rl.Ready{URL: server.URL}, ""},
		"too late":  {"echo loading; sleep 60", rl.Ready{Log: "serving", Timeout: 100 * time.Millisecond}, "not_ready"},
		"it failed": {"echo no memory; exit 3", rl.Ready{Log: "serving"}, "training_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, tt.script, func(s *rl.Settings) { s.Trainer.Ready = tt.ready })
			e, _ := l.open(t, 1, nil)
			e.ok("rl_select_environment", args{"name": "sums"})
			got := e.call("rl_start_training", args{})
			if got.ErrorClass != tt.class || tt.class == "" && !strings.Contains(got.Result, `"status":"running"`) {
				t.Errorf("%s %s", got.ErrorClass, got.Result)
			}
			if tt.class != "" && !strings.Contains(got.Result, `"log":"`) {
				t.Errorf("without its log: %s", got.Result)
			}
		})
	}
}

// TestRLChecks holds that a status is told once in a while, and that a call which told nothing does not count.
func TestRLChecks(t *testing.T) {
	l := newLab(t, `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do echo "{\"step\": $i, \"reward_mean\": 0.$i}" >> "$TRAJGEN_RL_METRICS"; done
		echo 'no metrics' >> "$TRAJGEN_RL_METRICS"; printf '{"step": 99' >> "$TRAJGEN_RL_METRICS"; touch written; sleep 60`,
		func(s *rl.Settings) { s.Trainer.Ready.File = "written" })
	e, _ := l.open(t, 1, nil)
	id := start(e)
	e.fails("unknown_run", "rl_check_status", args{"run_id": "00000000"})
	l.now = l.now.Add(90 * time.Second)
	got := e.ok("rl_check_status", args{"run_id": id})
	if got["status"] != "running" || got["running_time_minutes"] != 1.5 || got["metrics"].(map[string]any)["step"] != 21.0 {
		t.Errorf("%v", got)
	}
	l.now = l.now.Add(10 * time.Minute)
	if got := e.ok("rl_check_status", args{"run_id": id}); got["rate_limited"] != true || got["next_check_in_seconds"] != 1200.0 {
		t.Errorf("%v", got)
	}
	again, _ := l.open(t, 1, nil) // the limit outlives the runner
	if got := again.ok("rl_check_status", args{"run_id": id}); got["rate_limited"] != true {
		t.Errorf("%v", got)
	}
	l.now = l.now.Add(20 * time.Minute)
	if got := e.ok("rl_check_status", args{"run_id": id}); got["status"] != "running" {
		t.Errorf("%v", got)
	}
	results := e.ok("rl_get_results", args{"run_id": id})
	var steps []float64
	for _, point := range results["history"].([]any) {
		steps = append(steps, point.(map[string]any)["step"].(float64))
	}
	if results["points"] != 21.0 || !slices.Equal(steps, []float64{1, 3, 5, 8, 10, 12, 14, 17, 19, 21}) {
		t.Errorf("%v of %v", steps, results["points"])
	}
}

// TestRLStop ends a trainer that does not want to, with what it has started in a session of its own.
func TestRLStop(t *testing.T) {
	l := newLab(t, `trap 'echo stopping >> stopped; exit 0' TERM; setsid sleep 300 & echo $! > child; while :; do sleep 0.02; done`,
		func(s *rl.Settings) { s.Trainer.Ready.File = "child" })
	e, _ := l.open(t, 1, nil)
	id := start(e)
	e.ok("rl_select_environment", args{"name": "sums"})
	e.fails("busy", "rl_start_training", args{}) // one at a time
	if got := e.ok("rl_stop_training", args{"run_id": id}); got["status"] != "stopped" {
		t.Errorf("%v", got)
	}
	if said, err := os.ReadFile(filepath.Join(l.config.Dir, id, "stopped")); err != nil || string(said) != "stopping\n" {
		t.Errorf("it was not asked to end: %q, %v", said, err)
	}
	if pid := childOf(t, filepath.Join(l.config.Dir, id, "child")); lives(pid) {
		t.Error("its child lives")
	}
	e.fails("not_running", "rl_stop_training", args{"run_id": id})
	if got := e.ok("rl_list_runs", args{}); got["count"] != 1.0 || got["runs"].([]any)[0].(map[string]any)["status"] != "stopped" {
		t.Errorf("%v", got)
	}
}

func childOf(t *testing.T, file string) (pid int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		_, err = fmt.Sscan(string(text), &pid)
	}
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// lives says that a process is there and not a zombie.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// TestRLRestart opens the trainings of a runner that died: what lives is known again, and what is dead is found dead.
func TestRLRestart(t *testing.T) {
	l := newLab(t, `echo $$ > child; while [ ! -e go ]; do sleep 0.02; done`, func(s *rl.Settings) {
		s.Trainer.Ready.File, s.AtOnce = "child", 2
	})
	before, _ := l.open(t, 1, nil)
	lasting, dying := start(before), start(before)

	after, opened := l.open(t, 1, nil)
	for _, id := range []string{lasting, dying} {
		if got := l.status(after, id); got["status"] != "running" {
			t.Errorf("%v", got)
		}
	}
	pid := childOf(t, filepath.Join(l.config.Dir, dying, "child"))
	if group, err := syscall.Getpgid(pid); err != nil || syscall.Kill(-group, syscall.SIGKILL) != nil {
		t.Fatal(err)
	}
	l.until(after, dying, "died")
	// The attempt goes on in the new runner: the same calls find the trainings that they had started.
	if again := start(after); again != lasting {
		t.Errorf("the first training is %s, and it was %s", again, lasting)
	}
	if err := os.WriteFile(filepath.Join(l.config.Dir, lasting, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := l.until(after, lasting, "finished"); got["exit_code"] != 0.0 {
		t.Errorf("%v", got)
	}
	other := l.episode(t, opened.View("e2", 1, nil))
	other.fails("unknown_run", "rl_stop_training", args{"run_id": lasting}) // it is another's
	if got := other.ok("rl_list_runs", args{}); got["count"] != 0.0 {
		t.Errorf("%v", got)
	}
	if id := start(other); id == lasting {
		t.Error("two episodes have one training")
	} else if again := start(l.episode(t, opened.View("e2", 2, nil))); again == id {
		t.Error("two attempts have one training")
	}
}

// TestRLEnd holds that trainings end with the run, unless they are to be kept.
func TestRLEnd(t *testing.T) {
	for _, keep := range []bool{false, true} {
		l := newLab(t, `echo $$ > child; sleep 300`, func(s *rl.Settings) { s.Trainer.Ready.File, s.Keep = "child", keep })
		e, opened := l.open(t, 1, nil)
		id := start(e)
		pid := childOf(t, filepath.Join(l.config.Dir, id, "child"))
		if err := opened.Close(); err != nil {
			t.Fatal(err)
		}
		if lives(pid) != keep {
			t.Errorf("keep is %v, and the trainer lives: %v", keep, !keep)
		}
		l.config.Settings.Keep = false // for the end of the test
		l.open(t, 1, nil)
	}
}

// TestRLRecord holds that what was done stands in the record of an episode, failures too, and is not done again.
func TestRLRecord(t *testing.T) {
	l := newLab(t, "true", nil)
	recorded := map[string]any{}
	done := 0
	ask := func(role, question string, answer any, work func() error) error {
		if was, ok := recorded[question]; ok {
			return copyJSON(was, answer)
		}
		done++
		err := work()
		if err == nil {
			recorded[question] = mustJSON(t, answer)
		}
		return err
	}
	var results []string
	for range 2 {
		e, _ := l.open(t, 1, ask)
		start(e)
		e.call("rl_check_status", args{"run_id": "00000000"})
		e.call("rl_list_runs", args{})
		trace := ""
		for _, call := range e.session.Trace() {
			trace += call.Result + "\n"
		}
		results = append(results, trace)
		if err := os.RemoveAll(l.config.Dir); err != nil {
			t.Fatal(err)
		}
	}
	if results[0] != results[1] || done != 3 || len(recorded) != 3 {
		t.Errorf("%d questions, %v\n%s\n%s", done, slices.Sorted(maps.Keys(recorded)), results[0], results[1])
	}
}

func TestRLSettings(t *testing.T) {
	good := newLab(t, "true", nil).config.Settings
	for want, change := range map[string]func(s *rl.Settings){
		"has no dataset":           func(s *rl.Settings) { s.Environments = map[string]rl.Environment{"a": {}} },
		"trainer has no command":   func(s *rl.Settings) { s.Trainer.Command = nil },
		"looks like a secret":      func(s *rl.Settings) { s.Trainer.Env = map[string]string{"WANDB_API_KEY": "x"} },
		"default: x: want a num":   func(s *rl.Settings) { s.Fields = map[string]rl.Field{"a": {Type: "int", Default: "x"}} },
		"has the type":             func(s *rl.Settings) { s.Fields = map[string]rl.Field{"a": {Type: "float", Default: 1}} },
		"under fields and under":   func(s *rl.Settings) { s.Locked = map[string]any{"rate": 1} },
		"needs model and base_url": func(s *rl.Settings) { s.Models = map[string]rl.Model{"a": {}} },
		"a name is a letter":       func(s *rl.Settings) { s.Locked = map[string]any{"../x": 1} },
		"trainer.ready.log":        func(s *rl.Settings) { s.Trainer.Ready.Log = "(" },
	} {
		s := good
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	l := newLab(t, "true", nil)
	l.config.Lookup = func(string) (string, bool) { return "", false }
	if _, err := rl.Open(l.config); err == nil || !strings.Contains(err.Error(), "TRAINER_KEY") {
		t.Errorf("without its key: %v", err)
	}
	e := l.episode(t)
	if got := e.call("rl_list_environments", args{}); got.ErrorClass != "no_environments" || got.Status != episode.CallError {
		t.Errorf("a run without environments: %s", got.Result)
	}
}

func mustJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func copyJSON(text, into any) error { return json.Unmarshal(text.([]byte), into) }

// TestRLBudget holds that money is set aside for what a test may use, and that what it did not use is there again.
func TestRLBudget(t *testing.T) {
	const report = `echo '{"episodes":{"tasks":1,"judged":2},"outcomes":[{"outcome":"success","count":1}],"tokens":{"prompt":60,"completion":40}}'; `
	unknown := strings.Replace(report, `"completion":40`, `"completion":40,"unreported_turns":1`, 1)
	tests := []struct {
		name, program string
		spent         int64 // tokens
		result        string
	}{
		{"reported", report, 100, `"accuracy":0.5`},
		{"some episodes failed", report + "exit 3", 100, `"accuracy":0.5`},
		{"too few tokens", report + "exit 5", 100, `the 400 tokens of a test were not enough for all`},
		{"not all reported", unknown, 400, `"accuracy":0.5`},
		{"a mistake", "echo wrong >&2; exit 2", 0, `it could not be tried: wrong`},
		{"broke off", "exit 1", 400, "it could not be tried"},
		{"no such program", "", 0, "it could not be tried"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, "true", func(s *rl.Settings) {
				s.Models = map[string]rl.Model{"mine": {Name: "m", BaseURL: "http://localhost:1", Tokens: 400}}
			})
			if tt.program != "" {
				l.config.Program = filepath.Join(t.TempDir(), "trajgen")
				script := "#!/bin/sh\ncase \"$*\" in *'--budget-tokens 400'*) ;; *) exit 7;; esac\n" + tt.program
				if err := os.WriteFile(l.config.Program, []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			ledger, err := budget.Open(budget.Config{Tokens: 700})
			if err != nil {
				t.Fatal(err)
			}
			l.config.Meter = ledger
			var halted error
			e, _ := l.open(t, 1, func(_, _ string, _ any, ask func() error) error {
				err := ask()
				if _, failed := errors.AsType[*registry.Failure](err); !failed {
					halted = err
				}
				return err
			})
			e.ok("rl_select_environment", args{"name": "sums"})
			if got := e.call("rl_test_inference", args{"num_steps": 1, "group_size": 2}); !strings.Contains(got.Result, tt.result) {
				t.Errorf("%s, want %s in it", got.Result, tt.result)
			}
			if got := ledger.Spent().Tokens; got != tt.spent || ledger.Reached() != nil || halted != nil {
				t.Errorf("spent %d tokens, want %d; %v", got, tt.spent, halted)
			}
			if tt.spent == 400 { // what is left is not enough for a second one
				e.call("rl_test_inference", args{"num_steps": 1, "group_size": 2})
				if _, broke := errors.AsType[*budget.Reached](halted); !broke || ledger.Spent().Tokens != 400 {
					t.Errorf("a second test: %v, spent %v", halted, ledger.Spent())
				}
			}
		})
	}
}
