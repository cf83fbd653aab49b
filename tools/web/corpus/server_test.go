package corpus_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/tools/web/corpus"
	"trajgen/tools/web/source"
)

func world(t testing.TB) *corpus.Index {
	return build(t, corpus.Options{},
		corpus.Document{ID: "paris", Title: "Paris", URL: "https://x.test/paris", Text: "Paris is the capital of France."},
		corpus.Document{ID: "lyon/old town", Title: "Lyon", Text: "Lyon is a city of France & has <b>two</b> rivers."},
		corpus.Document{ID: "nets", Title: "Neural networks", Text: "Neural networks explain little."},
	)
}

func serve(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// TestSearchR1Client sends the bytes of Search-R1's own client (search_r1/search/retrieval_request.py with requests 2.32), and reads
// the answer as its trainer does.
func TestSearchR1Client(t *testing.T) {
	recorded, err := os.ReadFile("testdata/search-r1-request.txt")
	if err != nil {
		t.Fatal(err)
	}
	connection, err := net.Dial("tcp", serve(t, corpus.Handler(world(t))).Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := connection.Write(recorded); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 || response.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s, %v: %s", response.Status, err, body)
	}
	var got map[string][][]map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || len(got["result"]) != 2 || len(got["result"][0]) != 2 || len(got["result"][1]) != 1 {
		t.Fatalf("%s", body)
	}
	first := got["result"][0][0]
	want := map[string]any{"id": "paris", "contents": "Paris\nParis is the capital of France.", "url": "https://x.test/paris"}
	if diff := cmp.Diff(want, first["document"]); diff != "" || first["score"].(float64) <= got["result"][0][1]["score"].(float64) {
		t.Errorf("%s (-want +got):\n%s", body, diff)
	}
}

func TestRetrieve(t *testing.T) {
	server := serve(t, corpus.Handler(world(t)))
	many, err := json.Marshal(map[string]any{"queries": bytes.Split(bytes.Repeat([]byte("France|"), 10_001), []byte("|"))})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, body string
		status     int
		want       string
	}{
		{"documents alone", `{"queries":["networks"]}`, 200, `{"result":[[{"id":"nets","contents":"Neural networks\nNeural networks explain little."}]]}`},
		{"no queries", `{"queries":[]}`, 200, `{"result":[]}`},
		{"nothing found", `{"queries":["unheard",""],"topk":null,"return_scores":true,"more":1}`, 200, `{"result":[[],[]]}`},
		{"topk 0 is the default", `{"queries":["France"],"topk":0}`, 200, `"paris"`},
		{"topk 1", `{"queries":["France"],"topk":1}`, 200, `{"result":[[{"id":"paris",`},
		{"markup", `{"queries":["rivers"]}`, 200, `has \u003cb\u003etwo\u003c/b\u003e rivers`},
		{"queries missing", `{}`, 422, `queries is missing`},
		{"one text", `{"queries":"France"}`, 422, `the body is not`},
		{"topk below 0", `{"queries":["a"],"topk":-1}`, 422, `topk is -1; want from 1 to 100`},
		{"topk too large", `{"queries":["a"],"topk":101}`, 422, `topk is 101`},
		{"topk a text", `{"queries":["a"],"topk":"3"}`, 422, `detail`},
		{"half a body", `{"queries":["a"`, 422, `detail`},
		{"empty", ``, 422, `detail`},
		{"too many", string(many), 413, `at most 10000`},
		{"too large", `{"queries":["` + strings.Repeat("a", 17<<20) + `"]}`, 413, `detail`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			response, err := http.Post(server.URL+"/retrieve", "application/json", strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			got, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != tt.status || !strings.Contains(string(got), tt.want) || !json.Valid(got) {
				t.Errorf("%s, %v: %.300s, want %q", response.Status, err, got, tt.want)
			}
		})
	}
	t.Run("a large batch", func(t *testing.T) {
		queries := make([]string, 1000)
		for i := range queries {
			queries[i] = []string{"capital", "rivers", "unheard"}[i%3]
		}
		body, _ := json.Marshal(map[string]any{"queries": queries})
		response, err := http.Post(server.URL+"/retrieve", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var got struct{ Result [][]struct{ ID string } }
		if err := json.NewDecoder(response.Body).Decode(&got); err != nil || len(got.Result) != 1000 {
			t.Fatalf("%d results, %v", len(got.Result), err)
		}
		for i, result := range got.Result {
			if want := []string{"paris", "lyon/old town", ""}[i%3]; (want == "") != (len(result) == 0) || want != "" && result[0].ID != want {
				t.Fatalf("result %d is %v", i, result)
			}
		}
	})
	for path, want := range map[string]int{"/doc/paris": 200, "/doc/lyon%2Fold%20town": 200, "/doc/lyon/old%20town": 200, "/doc/none": 404, "/doc/": 404, "/healthz": 200, "/retrieve": 405} {
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("GET %s: %s, want %d", path, response.Status, want)
		}
	}
}

// failing fails from a search on.
type failing struct {
	*corpus.Index
	query string
}

func (f failing) Search(ctx context.Context, query string, limit int) ([]corpus.Hit, error) {
	if query == f.query {
		return nil, source.Errorf(source.Operator, source.Malformed, "damaged")
	}
	return f.Index.Search(ctx, query, limit)
}

// TestServerFails holds that a client never takes a part of the results for all.
func TestServerFails(t *testing.T) {
	server := serve(t, corpus.Handler(failing{world(t), "bad"}))
	for _, before := range []int{0, 200} {
		queries := append(strings.Split(strings.Repeat("France ", before), " "), "bad")
		body, _ := json.Marshal(map[string]any{"queries": queries})
		response, err := http.Post(server.URL+"/retrieve", "application/json", bytes.NewReader(body))
		if err == nil {
			_, err = io.ReadAll(response.Body)
			response.Body.Close()
			if response.StatusCode == 500 && before == 0 {
				continue
			}
		}
		if err == nil {
			t.Errorf("after %d queries: %s without an error", before, response.Status)
		}
	}
}

// TestClient holds that a corpus on a server answers as the index itself.
func TestClient(t *testing.T) {
	index := world(t)
	server := serve(t, corpus.Handler(index))
	client, err := corpus.Dial(t.Context(), server.URL+"/retrieve", server.Client().Transport, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if client.Digest() != index.Digest() || client.Len() != 3 {
		t.Errorf("digest %s, %d documents", client.Digest(), client.Len())
	}
	for _, query := range []string{"capital of France", "neural", "unheard"} {
		want, err1 := index.Search(t.Context(), query, 2)
		got, err2 := client.Search(t.Context(), query, 2)
		if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); err1 != nil || err2 != nil || diff != "" {
			t.Errorf("%q: %v, %v (-index +client):\n%s", query, err1, err2, diff)
		}
	}
	for _, id := range []string{"paris", "https://x.test/paris", "lyon/old town", "none", "", "..", "a?b#c%2F"} {
		want, err1 := index.Document(t.Context(), id)
		got, err2 := client.Document(t.Context(), id)
		if want != got || fmt.Sprint(err1) != fmt.Sprint(err2) {
			t.Errorf("%q: %v, %v, the index has %v, %v", id, got, err2, want, err1)
		}
	}
}

// TestForeignServer is one of Search-R1's own: without ids of its documents, GET /doc and GET /healthz.
func TestForeignServer(t *testing.T) {
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/retrieve" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"result":[[{"document":{"title":"Aaron","contents":"\"Aaron\"\nAaron is a prophet."},"score":14.5},{"document":{"id":7,"contents":"B\nb"},"score":3}]]}`)
	}))
	client, err := corpus.Dial(t.Context(), server.URL, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Document(t.Context(), "Aaron"); err == nil {
		t.Error("a document that no search has returned")
	}
	hits, err := client.Search(t.Context(), "prophet", 5)
	if err != nil || len(hits) != 2 || hits[0].Title != "Aaron" || hits[0].Score != 14.5 || hits[0].Snippet != "Aaron is a prophet." || hits[1].ID != "7" {
		t.Fatalf("%+v, %v", hits, err)
	}
	for _, id := range []string{"Aaron", "7"} {
		if d, err := client.Document(t.Context(), id); err != nil || d.ID != id {
			t.Errorf("%q: %+v, %v", id, d, err)
		}
	}
	if client.Digest() != server.URL || client.Len() != 0 {
		t.Errorf("digest %s, %d documents", client.Digest(), client.Len())
	}
}

// TestClientForgets holds that a client of such a server remembers a bounded amount.
func TestClientForgets(t *testing.T) {
	n := 0
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/retrieve" {
			http.NotFound(w, r)
			return
		}
		n++
		fmt.Fprintf(w, `{"result":[[{"document":{"id":"%d","contents":"t\n%s"},"score":1}]]}`, n, strings.Repeat("x", 10<<20))
	}))
	client, err := corpus.Dial(t.Context(), server.URL, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		if _, err := client.Search(t.Context(), "x", 1); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]bool{"1": false, "2": false, "3": true, "8": true} {
		if _, err := client.Document(t.Context(), id); (err == nil) != want {
			t.Errorf("document %s: %v", id, err)
		}
	}
}

func TestClientErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		class  string
		blame  source.Blame
	}{
		{"overloaded", 429, "", source.Unavailable, source.Outage},
		{"broken", 500, "oops", source.Unavailable, source.Outage},
		{"a key is missing", 401, "", source.Refused, source.Operator},
		{"another service", 404, "", "http_404", source.Operator},
		{"elsewhere", 302, "", source.Malformed, source.Operator},
		{"HTML", 200, "<html>", source.Malformed, source.Outage},
		{"half", 200, `{"result":[[`, source.Malformed, source.Outage},
		{"no result", 200, `{}`, source.Malformed, source.Outage},
		{"an error", 200, `{"detail":"x"}`, source.Malformed, source.Outage},
		{"too large", 200, strings.Repeat(" ", 65<<20), source.TooLarge, source.Outage},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // some are asked again after a pause
			server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/healthz" {
					http.NotFound(w, r)
					return
				}
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			}))
			client, err := corpus.Dial(t.Context(), server.URL, nil, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Search(t.Context(), "x", 1)
			if ours, ok := errors.AsType[*source.Error](err); !ok || ours.Class != tt.class || ours.Blame != tt.blame || len(ours.Message) > 400 {
				t.Errorf("%+v", err)
			}
		})
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	for address, want := range map[string]string{gone.URL: "does not answer", "localhost:8000": "want one such as", "ftp://x/": "want one such as", "": "want one such as"} {
		if _, err := corpus.Dial(t.Context(), address, nil, time.Now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("dial %q: %v", address, err)
		}
	}
	down := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }))
	if _, err := corpus.Dial(t.Context(), down.URL, nil, time.Now); err == nil {
		t.Error("a server that is down has its address as digest")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := corpus.Dial(ctx, down.URL, nil, time.Now); !errors.Is(err, cause) {
		t.Errorf("cancelled: %v", err)
	}
}
