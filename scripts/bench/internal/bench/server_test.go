package bench_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"trajgen/scripts/bench/internal/bench"
)

// dial connects to a server that answers at once.
func dial(t *testing.T) net.Conn {
	t.Helper()
	server, _ := serve(t, bench.ScriptEpisode, 1, 0)
	conn, err := net.Dial("tcp", server.Addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestServerPutsPiecesTogether(t *testing.T) {
	conn := dial(t)
	body := `{"messages":[{"role":"assistant"},{"role":"assistant"}]}`
	request := fmt.Sprintf("POST /episode/0s/all/v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%s", len(body), body)
	in := bufio.NewReader(conn)
	for _, size := range []int{len(request), 7} { // the same connection twice
		for rest := request; rest != ""; rest = rest[min(size, len(rest)):] {
			if _, err := io.WriteString(conn, rest[:min(size, len(rest))]); err != nil {
				t.Fatal(err)
			}
		}
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if err != nil || !strings.Contains(string(text), "read_file") {
			t.Errorf("third reply: %s, %v, want a call of read_file", text, err)
		}
	}
}

func TestServerHangsUp(t *testing.T) {
	for name, request := range map[string]string{
		"no such path":         "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
		"no such script":       "POST /other/0s/all/v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
		"no delay":             "POST /answer/soon/all/v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
		"no turn":              "POST /answer/0s/some/v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
		"no number":            "POST /answer/0s/all/v1/chat/completions HTTP/1.1\r\nContent-Length: two\r\n\r\n{}",
		"a length below zero":  "POST /answer/0s/all/v1/chat/completions HTTP/1.1\r\nContent-Length: -2\r\n\r\n{}",
		"a length beyond all":  "POST /answer/0s/all/v1/chat/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n{}",
		"a head without end":   "POST /answer/0s/all/v1 HTTP/1.1\r\nX: " + strings.Repeat("x", 40_000),
		"an empty first line":  "\r\n\r\n",
		"not a line of a head": "\r\r\n\r\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t)
			_, _ = io.WriteString(conn, request) // the server may have seen enough before the end
			_ = conn.(*net.TCPConn).CloseWrite()
			if reply, _ := io.ReadAll(conn); len(reply) > 0 {
				t.Errorf("a reply: %s", reply)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	first := time.Unix(1000, 0).UnixNano()
	sum := bench.Counts{Ticks: map[int64]int{}}
	sum.Add(bench.Counts{Requests: 3, Bytes: 30, EarlyNS: []int64{first + 5, first + 7}, Ticks: map[int64]int{10_000: 2, 10_009: 1}})
	sum.Add(bench.Counts{Requests: 2, Bytes: 20, EarlyNS: []int64{first, first + 6}, Ticks: map[int64]int{10_000: 1, 10_010: 1}})
	sum.Add(bench.Counts{})
	if sum.Requests != 5 || sum.Bytes != 50 || !slices.Equal(sum.EarlyNS, []int64{first, first + 5, first + 6, first + 7}) {
		t.Errorf("sum %+v", sum)
	}
	var many []int64
	for i := range int64(999) {
		many = append(many, first+8+i)
	}
	sum.Add(bench.Counts{EarlyNS: many})
	if n := len(sum.EarlyNS); n != 1000 || sum.EarlyNS[n-1] != first+8+995 {
		t.Errorf("%d times, the last %d after the first; want those of 1000 requests", n, sum.EarlyNS[n-1]-first)
	}
	if got := sum.Before(time.Second); got != 4 {
		t.Errorf("%d requests within the first second, want 4", got)
	}
}
