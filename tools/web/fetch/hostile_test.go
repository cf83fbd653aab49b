package fetch_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"trajgen/tools/web/fetch"
	"trajgen/tools/web/source"
)

// pack encodes a body in a content encoding.
func pack(t testing.TB, encoding string, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		var err error
		if w, err = zstd.NewWriter(&b); err != nil {
			t.Fatal(err)
		}
	default:
		return body
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestEncodings(t *testing.T) {
	words := []byte(strings.Repeat("some words, ", 1000))
	bomb := bytes.Repeat([]byte("x"), 3<<20)
	var encoding string
	var body []byte
	site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip, br, zstd" {
			t.Errorf("Accept-Encoding = %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Encoding", encoding)
		_, _ = w.Write(body)
	}))
	f := open(t, fetch.Config{})
	for _, encoding = range []string{"", "identity", "gzip", "GZIP", "x-gzip", "br", "zstd"} {
		for _, want := range [][]byte{words, nil} {
			body = pack(t, strings.ToLower(encoding), want)
			if page := read(t, f, site); page.Text != string(want) || page.Bytes != len(want) || page.Error != nil {
				t.Errorf("%q of %d bytes: %d bytes, %v", encoding, len(want), page.Bytes, page.Error)
			}
		}
	}
	for _, encoding = range []string{"gzip", "br", "zstd"} {
		body = nil
		if page := read(t, f, site); page.Text != "" || page.Error != nil && page.Error.Class != source.Malformed {
			t.Errorf("%s of nothing: %+v", encoding, page)
		}
		body = pack(t, encoding, words)
		body = body[:len(body)/2]
		fails(t, read(t, f, site), source.Agent, source.Malformed)
		body = words
		fails(t, read(t, f, site), source.Agent, source.Malformed)
		body = pack(t, encoding, bomb)
		fails(t, read(t, f, site), source.Agent, source.TooLarge)
	}
	for _, encoding = range []string{"deflate", "gzip, br", "aes"} {
		fails(t, read(t, f, site), source.Agent, source.Malformed)
	}
}

// An answer without end is left at the limit.
func TestEndless(t *testing.T) {
	junk := bytes.Repeat([]byte("junk "), 1<<12)
	empty := pack(t, "gzip", nil)
	site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		chunk := junk
		switch r.URL.Path {
		case "/long":
			w.Header().Set("Content-Length", "10000000000")
		case "/members": // which have no content
			w.Header().Set("Content-Encoding", "gzip")
			chunk = bytes.Repeat(empty, 1000)
		}
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	f := open(t, fetch.Config{})
	for path, class := range map[string]string{
		"/?type=text/html": source.TooLarge, "/?type=application/pdf": source.TooLarge, "/?type=": source.TooLarge,
		"/long?type=text/html": source.TooLarge, "/members?type=text/html": source.Malformed, "/?type=application/zip": source.NoText,
	} {
		fails(t, read(t, f, site+path), source.Agent, class)
	}
}

// Sizes up to the limits are read whole.
func TestLarge(t *testing.T) {
	site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscan(r.URL.Query().Get("n"), &n)
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		body := bytes.Repeat([]byte("x"), n)
		copy(body, r.URL.Query().Get("begin"))
		_, _ = w.Write(body)
	}))
	f := open(t, fetch.Config{})
	for _, tt := range []struct {
		kind string
		n    int
		ok   bool
	}{
		{"text/html", 1<<20 - 1, true}, {"text/html", 1 << 20, true}, {"text/html", 1<<20 + 1, true}, {"text/html", 10 << 20, true},
		{"text/html", 10<<20 + 1, false},
		{"application/pdf&begin=%25PDF-", 10<<20 + 1, true},
	} {
		page := read(t, f, fmt.Sprintf("%s/?type=%s&n=%d", site, tt.kind, tt.n))
		if !tt.ok {
			fails(t, page, source.Agent, source.TooLarge)
		} else if page.Bytes != tt.n || page.Error != nil {
			t.Errorf("%d bytes of %s: %d, %v", tt.n, tt.kind, page.Bytes, page.Error)
		}
	}
}

// raw serves connections, each with an answer that is written as it is.
func raw(t *testing.T, answer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = listener.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	}()
	return "http://site.test:" + fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
}

func TestBrokenAnswers(t *testing.T) {
	headers := strings.Repeat("X-Header: "+strings.Repeat("x", 1000)+"\r\n", 10_000)
	packed := string(pack(t, "gzip", []byte("words")))
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
	for name, tt := range map[string]struct {
		answer string
		blame  source.Blame
		class  string
	}{
		"nothing":              {"", source.Outage, source.Unavailable},
		"another protocol":     {"SSH-2.0-OpenSSH_9.2\r\n", source.Outage, source.Unavailable},
		"half a header":        {"HTTP/1.1 200 OK\r\nContent-", source.Outage, source.Unavailable},
		"half a body":          {ok + "Content-Length: 100\r\n\r\nhalf", source.Outage, source.Unavailable},
		"a chunk cut off":      {ok + "Transfer-Encoding: chunked\r\n\r\n10\r\nhalf", source.Outage, source.Unavailable},
		"two lengths":          {ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", source.Outage, source.Unavailable},
		"a length below zero":  {ok + "Content-Length: -5\r\n\r\nab", source.Outage, source.Unavailable},
		"megabytes of headers": {ok + headers + "\r\n", source.Agent, source.TooLarge},
		"endless informations": {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1000), source.Outage, source.Unavailable},
		"half of a gzip": {
			ok + "Content-Encoding: gzip\r\nContent-Length: 100\r\n\r\n" + packed[:15], source.Outage, source.Unavailable,
		},
	} {
		t.Run(name, func(t *testing.T) { fails(t, read(t, open(t, fetch.Config{}), raw(t, tt.answer)), tt.blame, tt.class) })
	}
	// More than was announced is cut, and cookies without end are not kept.
	cookies := strings.Repeat("Set-Cookie: a=b\r\n", 500)
	page := read(t, open(t, fetch.Config{}), raw(t, ok+cookies+"Content-Length: 4\r\n\r\nwords and more"))
	if page.Text != "word" || page.Error != nil {
		t.Errorf("a short length: %+v", page)
	}
}

func TestNoServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	page := read(t, open(t, fetch.Config{}), "http://"+listener.Addr().String())
	fails(t, page, source.Outage, source.Unavailable)
	if !strings.Contains(page.Error.Message, "connection refused") {
		t.Errorf("error = %v", page.Error)
	}
}

func TestCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	fails(t, read(t, open(t, fetch.Config{}), server.URL), source.Agent, source.Malformed)
}

func FuzzRead(f *testing.F) {
	f.Add("text/html", "gzip", pack(f, "gzip", []byte("<html>")))
	f.Add("text/plain", "br", pack(f, "br", []byte("words")))
	f.Add("", "zstd", pack(f, "zstd", []byte("{}")))
	f.Add("application/octet-stream", "", []byte("<?xml version='1.0'?><rss>"))
	f.Add(";;=", "identity", []byte("\x00"))
	f.Fuzz(func(t *testing.T, kind, encoding string, body []byte) {
		reader := recorded(t, func(req *http.Request) (*http.Response, error) {
			return answer(req, 200, http.Header{"Content-Type": {kind}, "Content-Encoding": {encoding}}, string(body)), nil
		})
		page := read(t, reader, "http://site.test/")
		if (page.Error == nil) != (len(page.Digest) == 64) || page.Bytes != len(page.Text) {
			t.Errorf("%+v", page)
		}
		if page.Error != nil && page.Error.Blame != source.Agent {
			t.Errorf("%+v", page)
		}
	})
}
