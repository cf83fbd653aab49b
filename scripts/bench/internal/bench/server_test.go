package bench_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"trajgen/scripts/bench/internal/bench"
)

func TestServer(t *testing.T) {
	server, _ := serve(t, bench.ScriptEpisode, 0)
	third := `{"messages":[{"role":"assistant"},{"role":"assistant"}]}`
	for _, tt := range []struct{ path, body, want string }{
		{"/episode/0s/-1/v1/chat/completions", "{}", "echo hello"},
		{"/episode/0s/-1/v1/chat/completions", third, "read_file"},
		{"/episode/1ms/2/v1/chat/completions", third, "read_file"},
		{"/answer/0s/-1/v1/chat/completions", third, "The file says hello."},
		{"/v1/chat/completions", "{}", "404"},
		{"/other/0s/-1/v1/chat/completions", "{}", "404"},
		{"/answer/soon/-1/v1/chat/completions", "{}", "404"},
		{"/answer/0s/some/v1/chat/completions", "{}", "404"},
	} {
		response, err := http.Post("http://"+server.Addrs[0]+tt.path, "application/json", strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || !strings.Contains(string(text), tt.want) {
			t.Errorf("%s: %s, %v, want %s", tt.path, text, err, tt.want)
		}
	}
	counts := server.Counts()
	if counts.Requests != 4 || counts.Bytes != 2+3*len(third) || len(counts.Early) != 4 || time.Since(counts.Early[0]) > time.Minute || counts.Peak != 1 {
		t.Errorf("counts: %+v", counts)
	}
	if server.Reset(); server.Counts().Requests != 0 {
		t.Errorf("after a reset: %+v", server.Counts())
	}
}
