package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"trajgen/scripts/bench/internal/bench"
)

// serve runs a server for the time of a test and returns the base URLs of a script.
func serve(t testing.TB, script string, delay time.Duration) (*bench.Server, []string) {
	t.Helper()
	server, err := bench.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	var urls []string
	for _, at := range server.Addrs {
		urls = append(urls, bench.BaseURL(at, script, delay, bench.AllTurns))
	}
	return server, urls
}

// schema is a tool as requests have it, large enough that a request takes more than one reading.
func schema(t testing.TB) json.RawMessage {
	t.Helper()
	long := make([]byte, 40_000)
	for i := range long {
		long[i] = 'a'
	}
	raw, err := json.Marshal(map[string]any{"type": "function", "function": map[string]any{
		"name": "terminal", "description": string(long), "parameters": map[string]any{"type": "object"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestLoop(t *testing.T) {
	tests := []struct {
		name   string
		loop   bench.Loop
		script string
		want   int // requests
	}{
		{"answers", bench.Loop{Episodes: 50, InFlight: 8}, bench.ScriptAnswer, 50},
		{"episodes", bench.Loop{Episodes: 20, InFlight: 8}, bench.ScriptEpisode, 100},
		{"long prompts", bench.Loop{Episodes: 3, InFlight: 2, PromptBytes: 100_000}, bench.ScriptEpisode, 15},
		{"shells", bench.Loop{Episodes: 2, InFlight: 2, Fork: true}, bench.ScriptEpisode, 10},
		{"more in flight than there are", bench.Loop{Episodes: 2, InFlight: 8}, bench.ScriptEpisode, 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server, urls := serve(t, tt.script, time.Millisecond)
			tt.loop.URLs, tt.loop.Script, tt.loop.Schemas = urls, tt.script, []json.RawMessage{schema(t)}
			played, err := tt.loop.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			counts := server.Counts()
			if played.Episodes != tt.loop.Episodes || counts.Requests != tt.want {
				t.Errorf("%d episodes with %d requests, want %d with %d", played.Episodes, counts.Requests, tt.loop.Episodes, tt.want)
			}
			if counts.Bytes < 40_000*tt.want || len(counts.Early) == 0 || counts.Peak == 0 || counts.Peak > tt.loop.InFlight {
				t.Errorf("counts: %+v", counts)
			}
		})
	}
}

// TestLoopStops says what went wrong rather than how many requests failed after it.
func TestLoopStops(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	want := errors.New("enough")
	cancel(want)
	_, urls := serve(t, bench.ScriptAnswer, 0)
	if _, err := (bench.Loop{URLs: urls, Script: bench.ScriptAnswer, Episodes: 10, InFlight: 2}).Run(ctx); !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
	_, urls = serve(t, "nothing", 0)
	if _, err := (bench.Loop{URLs: urls, Script: bench.ScriptAnswer, Episodes: 10, InFlight: 2}).Run(t.Context()); err == nil {
		t.Error("a path that the server does not know gave no error")
	}
}
