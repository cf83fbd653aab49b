package tape_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"trajgen/tools/web/tape"
)

func Example() {
	dir, err := os.MkdirTemp("", "tape")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "a page") }))

	recorder, err := tape.Create(dir, tape.Options{Now: time.Now})
	if err != nil {
		panic(err)
	}
	get(recorder.Play("episode-1", 1).Transport("web_extract", "fetch/1", http.DefaultTransport), server.URL+"/page?b=1#top")
	if err := recorder.Close(); err != nil {
		panic(err)
	}
	server.Close() // from here on the recording is all there is

	recorded, err := tape.Open(dir, tape.ReplayOptions{})
	if err != nil {
		panic(err)
	}
	defer recorded.Close()
	attempt := recorded.Play("episode-1")
	get(attempt.Transport("", "fetch/1"), server.URL+"/page?b=1")
	get(attempt.Transport("", "fetch/1"), "http://another.test/")
	fmt.Println(attempt.Stats())
	// Output:
	// a page
	// a page
	// Get "http://another.test/": the recording lacks GET http://another.test/
	// {1 0 map[another.test:1]}
}

func get(through http.RoundTripper, url string) {
	client := http.Client{Transport: through}
	resp, err := client.Get(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}
