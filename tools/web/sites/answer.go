package sites

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// answer is a response in the making.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
	stream io.ReadCloser // in place of body, for what is too large to hold
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	if a.code == 0 {
		a.code = code
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

func (a *answer) status() int { return max(a.code, http.StatusOK) }

// response is what the client gets. Nothing in it depends on the time.
func (a *answer) response(req *http.Request) *http.Response {
	if a.header.Get("Content-Type") == "" && a.body.Len() > 0 {
		a.header.Set("Content-Type", http.DetectContentType(a.body.Bytes()))
	}
	resp := &http.Response{
		Status: fmt.Sprintf("%d %s", a.status(), http.StatusText(a.status())), StatusCode: a.status(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: a.stream, ContentLength: -1, Request: req,
	}
	if length, err := strconv.ParseInt(a.header.Get("Content-Length"), 10, 64); err == nil {
		resp.ContentLength = length
	}
	if a.stream == nil {
		resp.ContentLength = int64(a.body.Len())
		resp.Body = io.NopCloser(bytes.NewReader(a.body.Bytes()))
		a.header.Set("Content-Length", strconv.Itoa(a.body.Len()))
	}
	if req.Method == http.MethodHead {
		resp.Body = http.NoBody
	}
	return resp
}
