package tools_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestProcessNotifications(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		call := e.call("terminal", args{
			"command":    "echo starting; sleep 0.3; echo Listening on 80; echo x; echo Listening on 81; cat >/dev/null; exit 3",
			"background": true, "notify_on_complete": true, "watch_patterns": []string{"Listening", ""},
		})
		want := `{"output":"Background process started","session_id":"proc_1","exit_code":0,"error":null,` +
			`"notify_on_complete":true,"watch_patterns":["Listening"]}`
		if call.Result != want {
			t.Errorf("got %s, want %s", call.Result, want)
		}
		r := e.ok("process", args{"action": "wait", "session_id": "proc_1", "timeout": 60})
		if r["status"] != "running" {
			t.Errorf("wait: %v", r)
		}
		wantContains(t, r["notifications"], "line:Listening on 80 pattern:Listening session_id:proc_1 type:watch_match")
		if call.Elapsed.Seconds() > 30 {
			t.Errorf("the match did not end the wait")
		}

		e.ok("terminal", args{"command": "sleep 60", "background": true})
		told := fmt.Sprint(r["notifications"]) + fmt.Sprint(e.ok("process", args{"action": "close", "session_id": "proc_1"})["notifications"])
		for range 60 {
			told += fmt.Sprint(e.ok("process", args{"action": "wait", "session_id": "proc_2", "timeout": 1})["notifications"])
			if strings.Contains(told, "completed") {
				break
			}
		}
		wantContains(t, told, "map[exit_code:3 session_id:proc_1 type:completed]")
		wantContains(t, told, "line:Listening on 81")
		if r := e.ok("process", args{"action": "list"}); r["notifications"] != nil {
			t.Errorf("told again: %v", r)
		}
	})
}
