package tape_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/tools/web/corpus"
	"trajgen/tools/web/tape"
)

// kept is a recording of pages in many forms, and the URL of their server.
func kept(t *testing.T) (*tape.Tape, string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header()["Date"] = nil
		switch r.URL.Path {
		case "/packed":
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			defer packed.Close()
			fmt.Fprint(packed, "what was packed")
		case "/moved":
			http.Redirect(w, r, "/plain", http.StatusFound)
		case "/picture":
			w.Header().Set("Content-Type", "image/png")
			w.Write([]byte("\x89PNG\r\n\x1a\n\x00\xff"))
		case "/broken":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "the beginning")
		case "/search":
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "found %s", body)
		default:
			fmt.Fprintf(w, "the page %s\r\nof two lines", r.URL.Path)
		}
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	recorder := create(t, dir, tape.Options{Secrets: []string{"sk-secret"}})
	to := recorder.Play("ep", 1).Transport("call", "fetch 1", &http.Transport{DisableCompression: true})
	for _, path := range []string{"/plain", "/plain?b=1&a=%C3%A4", "/packed", "/moved", "/picture", "/broken"} {
		ask(t, to, "GET", server.URL+path, "")
	}
	ask(t, to, "POST", server.URL+"/search", `{"q":"lamp","key":"sk-secret"}`, "Content-Type", "application/json")
	server.Close()
	ask(t, to, "GET", server.URL+"/gone", "")
	closed(t, recorder)
	return open(t, dir, tape.ReplayOptions{}), server.URL
}

// TestWARC reads an exported recording back as the documents of a corpus.
func TestWARC(t *testing.T) {
	recording, url := kept(t)
	var first, second bytes.Buffer
	for _, to := range []*bytes.Buffer{&first, &second} {
		if err := recording.WARC(to, "trajgen test"); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two exports differ")
	}
	path := filepath.Join(t.TempDir(), "tape.warc.gz")
	if err := os.WriteFile(path, first.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	var bad []error
	documents := corpus.Source{Bad: func(err error) { bad = append(bad, err) }}
	for d, err := range documents.Read(t.Context(), path) {
		if err != nil {
			t.Fatal(err)
		}
		got[strings.TrimPrefix(d.URL, url)] = d.Text
	}
	want := map[string]string{
		"/plain": "the page /plain\r\nof two lines", "/plain?b=1&a=%C3%A4": "the page /plain\r\nof two lines",
		"/packed": "what was packed", "/search": `found {"q":"lamp","key":""}`, "/broken": "the beginning",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(bad) > 0 {
		t.Errorf("read back (-want +got):\n%s\nbad: %v", diff, bad)
	}

	// Each record is packed on its own, and has the fields of its kind.
	kinds, records := map[string]int{}, 0
	for rest := bytes.NewReader(first.Bytes()); rest.Len() > 0; records++ {
		member, err := gzip.NewReader(rest)
		if err != nil {
			t.Fatal(err)
		}
		member.Multistream(false)
		text, err := io.ReadAll(member)
		if err != nil {
			t.Fatal(err)
		}
		head, block, _ := strings.Cut(string(text), "\r\n\r\n")
		fields := map[string]string{}
		for line := range strings.Lines(head) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			fields[name] = value
		}
		kinds[fields["WARC-Type"]]++
		if !strings.HasPrefix(head, "WARC/1.1\r\n") || fields["Content-Length"] != fmt.Sprint(len(block)-4) || !strings.HasPrefix(fields["WARC-Record-ID"], "<urn:uuid:") || fields["WARC-Date"] == "" {
			t.Errorf("record %d: %s, block of %d", records, head, len(block))
		}
		if kind := fields["WARC-Type"]; kind != "warcinfo" && !strings.HasPrefix(fields["WARC-Payload-Digest"], "sha1:") {
			t.Errorf("record %d: %s", records, head)
		}
		if strings.Contains(string(text), "sk-secret") {
			t.Errorf("record %d has a secret: %s", records, text)
		}
		if fields["WARC-Target-URI"] == url+"/broken" && fields["WARC-Type"] == "response" && fields["WARC-Truncated"] != "disconnect" {
			t.Errorf("the broken body: %s", head)
		}
		if fields["WARC-Type"] == "response" && fields["WARC-Target-URI"] == url+"/plain" &&
			fields["WARC-Payload-Digest"] != "sha1:2IOPCFP5JQJYGJLUH5JFYSRL5XFMUQO7" {
			t.Errorf("the digest of a payload: %s", head)
		}
	}
	if want := map[string]int{"warcinfo": 1, "request": 8, "response": 7}; !cmp.Equal(kinds, want) {
		t.Errorf("records %v, want %v", kinds, want)
	}
}

// TestHAR reads an exported recording as JSON.
func TestHAR(t *testing.T) {
	recording, url := kept(t)
	var out bytes.Buffer
	if err := recording.HAR(&out, "1.0"); err != nil {
		t.Fatal(err)
	}
	type pair struct{ Name, Value string }
	var har struct {
		Log struct {
			Version string
			Creator struct{ Name, Version string }
			Entries []struct {
				StartedDateTime string
				Time            *float64
				Request         struct {
					Method, URL string
					QueryString []pair
					PostData    *struct{ MimeType, Text string }
				}
				Response struct {
					Status      int
					Headers     []pair
					RedirectURL string
					Content     struct {
						Size                     int
						MimeType, Text, Encoding string
					}
					Comment string
				}
				Cache, Timings map[string]any
			}
		}
	}
	decoder := json.NewDecoder(&out)
	if err := decoder.Decode(&har); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range har.Log.Entries {
		content := e.Response.Content
		got = append(got, fmt.Sprintf("%s %s %v: %d %s %q %s", e.Request.Method, strings.TrimPrefix(e.Request.URL, url), e.Request.QueryString,
			e.Response.Status, content.MimeType, content.Text, content.Encoding))
		if e.StartedDateTime == "" || e.Time == nil || e.Cache == nil || e.Timings["wait"] == nil {
			t.Errorf("entry %+v", e)
		}
	}
	want := []string{
		`GET /plain []: 200 text/plain; charset=utf-8 "the page /plain\r\nof two lines" `,
		`GET /plain?b=1&a=%C3%A4 [{a ä} {b 1}]: 200 text/plain; charset=utf-8 "the page /plain\r\nof two lines" `,
		`GET /packed []: 200 text/plain; charset=utf-8 "what was packed" `,
		`GET /moved []: 302 text/plain; charset=utf-8 "" `,
		`GET /picture []: 200 image/png "iVBORw0KGgoA/w==" base64`,
		`GET /broken []: 200 text/plain; charset=utf-8 "the beginning" `,
		`POST /search []: 200 text/plain; charset=utf-8 "found {\"q\":\"lamp\",\"key\":\"\"}" `,
		`GET /gone []: 0  "" `,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	entries := har.Log.Entries
	if entries[3].Response.RedirectURL != "/plain" || entries[5].Response.Comment == "" || entries[7].Response.Comment == "" || entries[6].Request.PostData.MimeType != "application/json" {
		t.Errorf("entries %+v", entries)
	}
}

// TestInfo counts what a recording has.
func TestInfo(t *testing.T) {
	recording, url := kept(t)
	info, err := recording.Info()
	if err != nil {
		t.Fatal(err)
	}
	host := tape.Host{Host: strings.TrimPrefix(url, "http://"), Counts: info.Counts}
	if info.Exchanges != 8 || info.Requests != 8 || info.Failed != 2 || info.Bytes == 0 || info.Disk <= 0 || info.Digest != recording.Digest() || !cmp.Equal(info.Hosts, []tape.Host{host}) {
		t.Errorf("%+v", info)
	}
}
