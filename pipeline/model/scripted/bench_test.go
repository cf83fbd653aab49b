package scripted_test

import (
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"trajgen/pipeline/model/scripted"
)

// BenchmarkServe is a request of twenty turns with eight tools, 37 KB, without the socket.
func BenchmarkServe(b *testing.B) {
	var body strings.Builder
	body.WriteString(`{"model":"scripted","messages":[{"role":"user","content":"Fix t"}`)
	for i := range 20 {
		fmt.Fprintf(&body, `,{"role":"assistant","content":null,"tool_calls":[{"id":"%d","type":"function","function":{"name":"terminal","arguments":"{\"command\":\"ls\"}"}}]}`, i)
		fmt.Fprintf(&body, `,{"role":"tool","tool_call_id":"%d","content":"%s"}`, i, strings.Repeat(`<a href=\"x\">some text</a>\n`, 50))
	}
	body.WriteString(`],"tools":[`)
	for i := range 8 {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"type":"function","function":{"name":"terminal%d","description":"%s"}}`, i, strings.Repeat("x", 1000))
	}
	for _, tt := range []struct{ name, more string }{{"plain", ""}, {"token ids", `,"return_token_ids":true`}} {
		b.Run(tt.name, func(b *testing.B) {
			server := newServer(b, scripted.Config{Policy: scripted.Oracle}, task("t"))
			text := body.String() + "]" + tt.more + "}"
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				req := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(text))
				w := httptest.NewRecorder()
				server.Handler().ServeHTTP(w, req)
				if w.Code != 200 {
					text, _ := io.ReadAll(w.Body)
					b.Fatalf("%d %s", w.Code, text)
				}
			}
		})
	}
}

// BenchmarkWaiting is what a request of 20 KB keeps of the server's memory while it waits for its reply, when many do.
func BenchmarkWaiting(b *testing.B) {
	const many = 1000
	server := newServer(b, scripted.Config{Policy: scripted.Noop, Delay: "1h"})
	url, err := server.Start("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	body := `{"model":"scripted","messages":[{"role":"user","content":"` + strings.Repeat("word ", 4000) + `"}]}`
	request := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	memory := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := memory()
	for b.Loop() {
		var connections []net.Conn
		for range many {
			c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/v1"))
			if err != nil {
				b.Fatal(err)
			}
			io.WriteString(c, request)
			connections = append(connections, c)
		}
		for server.Stats().InFlight < many {
			time.Sleep(time.Millisecond)
		}
		b.ReportMetric(float64(memory()-before)/many, "B/waiting")
		for _, c := range connections {
			c.Close()
		}
		for server.Stats().InFlight > 0 {
			time.Sleep(time.Millisecond)
		}
	}
}
