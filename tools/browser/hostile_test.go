package browser_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"hash/crc32"
	"image/png"
	"net/http"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/tools/browser"
)

// stream answers without end.
type stream struct{ req *http.Request }

func (s stream) RoundTrip(req *http.Request) (*http.Response, error) {
	header := http.Header{"Content-Type": {"text/html"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: stream{req}, Request: req}, nil
}

func (s stream) Read(p []byte) (int, error) {
	select {
	case <-s.req.Context().Done():
		return 0, s.req.Context().Err()
	case <-time.After(10 * time.Millisecond):
		return copy(p, "more "), nil
	}
}

func (stream) Close() error { return nil }

// bomb is a black PNG of a few kilobytes, so many pixels wide and high.
func bomb(side uint32) []byte {
	var data bytes.Buffer
	packed := zlib.NewWriter(&data)
	row := make([]byte, 1+side/8)
	for range side {
		_, _ = packed.Write(row)
	}
	_ = packed.Close()
	picture := []byte("\x89PNG\r\n\x1a\n")
	size := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, side), side)
	for _, chunk := range []struct {
		kind string
		data []byte
	}{{"IHDR", append(size, 1, 0, 0, 0, 0)}, {"IDAT", data.Bytes()}, {"IEND", nil}} {
		picture = binary.BigEndian.AppendUint32(picture, uint32(len(chunk.data)))
		body := append([]byte(chunk.kind), chunk.data...)
		picture = binary.BigEndian.AppendUint32(append(picture, body...), crc32.ChecksumIEEE(body))
	}
	return picture
}

// shoot takes a picture of the page.
func shoot(t testing.TB, b *client) error {
	t.Helper()
	_, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
		data, err := tab.Page().Screenshot(ctx, false)
		if err == nil {
			_, err = png.DecodeConfig(bytes.NewReader(data))
		}
		return err
	})
	return err
}

// Hostile pages cost an agent a call, and the next one works.
func TestHostile(t *testing.T) {
	b := open(t, sites{
		"busy.test":    html(`<script>while (true);</script>`),
		"later.test":   html(`<h1>x</h1>`),
		"heap.test":    html(`<script>const all = []; while (true) all.push(new Uint8Array(5e7).fill(1))</script>`),
		"objects.test": html(`<script>const all = []; while (true) all.push({list: new Array(1e6).fill(0.5)})</script>`),
		"bomb.test": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/bomb.png" {
				w.Header().Set("Content-Type", "image/png")
				_, _ = w.Write(bomb(20_000))
				return
			}
			html(`<img src=/bomb.png width=400 height=400><h1>x</h1>`)(w, r)
		},
		"trickle.test": html(`<h1>x</h1><script src=http://endless.stream/></script>`),
		"endless.test": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) },
		"header.test": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		},
		"bytes.test": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Bytes", "\x00\xff") },
		"shout.test": html(`<script>for (let i = 0; i < 200; i++) console.log('x'.repeat(1e4)); console.log('x'.repeat(5e6))</script><h1>x</h1>`),
		"files.test": html(`<iframe src="file:///etc/passwd"></iframe><a href="file:///etc/passwd">x</a><script>
document.links[0].click(); open('file:///etc/passwd'); location = 'chrome://crash'</script><h1>x</h1>`),
		"fine.test": html(`<h1>fine</h1>`),
	}, func(c *browser.Config) {
		others := c.Site
		c.Site = func(host string) http.RoundTripper {
			if strings.HasSuffix(host, ".stream") {
				return stream{}
			}
			return others(host)
		}
	})
	for _, tt := range []struct {
		name, url, then string
		want            string
		limit           time.Duration
	}{
		{"a loop", "http://busy.test/", "", "timeout", time.Second},
		{"a loop later", "http://later.test/", "setTimeout(() => { while (true); }, 10); new Promise(r => setTimeout(r, 100))", "timeout", time.Minute},
		{"all memory", "http://heap.test/", "", "crashed", time.Minute},
		{"all memory of objects", "http://objects.test/", "", "crashed", time.Minute},
		{"an image that unpacks to 400 million pixels", "http://bomb.test/", "", "crashed", time.Minute},
		{"an endless response", "http://slow.stream/", "", "timeout", time.Second},
		{"a page that waits for an endless response", "http://trickle.test/", "", "timeout", time.Second},
		{"endless redirects", "http://endless.test/", "", "navigation_failed", time.Minute},
		{"a long header", "http://header.test/", "", "too_large", time.Minute},
		{"a header that is none", "http://bytes.test/", "", "malformed", time.Minute},
		{"a loud console", "http://shout.test/", "", "", time.Minute},
		{"files", "http://files.test/", "", "", time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := b.Do(t.Context(), b.box, tt.limit, func(ctx context.Context, tab *browser.Tab) error {
				_, err := tab.Navigate(ctx, tt.url)
				return err
			})
			if err == nil {
				err = shoot(t, b)
			}
			if err == nil && tt.then != "" {
				_, err = run(t, b, tt.then)
			}
			if got := classOf(err); got != tt.want && !(err == nil && tt.want == "") {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if report, _ := visit(t, b, "http://fine.test/"); report.Note != "" {
				t.Errorf("the browser ended: %+v", report)
			}
			if got := eval(t, b, "document.body.textContent"); got != `"fine"` {
				t.Errorf("afterwards: %s", got)
			}
		})
	}
}

// kill kills the browser.
func kill(t testing.TB, b *client) {
	t.Helper()
	sb, err := b.box(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"pkill", "-9", "-f", "remote-debugging-pipe"}}, sandbox.RunOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A browser that dies says why, and starts again.
func TestDeath(t *testing.T) {
	b := open(t, sites{"fine.test": html(`<h1>fine</h1>`)})
	visit(t, b, "http://fine.test/")
	kill(t, b)
	var note string
	for range 2 {
		report, _ := run(t, b, "1")
		note += report.Note
	}
	if note == "" {
		t.Error("the next call does not say that the pages are gone")
	}
	visit(t, b, "http://fine.test/")
	b.Close()
	if _, err := run(t, b, "1"); classOf(err) != "closed" {
		t.Errorf("after the end: %v", err)
	}
}
