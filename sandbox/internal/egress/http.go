package egress

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"slices"
	"strings"
	"time"
)

// mostHead is how long the head of a request may be.
const mostHead = 1 << 20

// requests reads the first request of HTTP. The sender then sends that and those that follow, each after a look at its host.
// Requests are written anew, so that what is judged here is what the server understands.
func (c *carriage) requests() (sender, error) {
	source := &innerReader{carriage: c, until: time.Now().Add(c.server.config.Begin)}
	reader := bufio.NewReader(source)
	first, err := c.request(source, reader)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refusal(fmt.Sprintf("it made no request of HTTP within %v", c.server.config.Begin))
	case errors.Is(err, io.EOF):
		return nil, refusal("it ended before a request")
	case err != nil:
		return nil, err
	}
	source.until = time.Time{}
	return func(c *carriage) error {
		writer := bufio.NewWriter(&counter{c})
		for request := first; ; {
			if err := send(writer, request); err != nil {
				return err
			}
			if request, err = c.request(source, reader); err == io.EOF {
				return closeWrite(c.outer)
			} else if err != nil {
				return err
			}
		}
	}, nil
}

// request reads the head of a request and judges its host. The error is io.EOF when there is none.
func (c *carriage) request(source *innerReader, reader *bufio.Reader) (*http.Request, error) {
	source.left, source.bounded = mostHead, true
	defer func() { source.bounded = false }()
	if _, err := reader.Peek(1); err != nil {
		return nil, err
	}
	request, err := http.ReadRequest(reader)
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		return nil, refusal(fmt.Sprintf("it is no request of HTTP, as it must be on port %d: %v", portHTTP, err))
	}
	host := request.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	switch {
	case request.ProtoMajor != 1:
		return nil, refusal("it is no request of HTTP/1")
	case request.Method == http.MethodConnect:
		return nil, refusal("it asks a proxy for a connection")
	case host == "":
		return nil, refusal("the request names no host")
	}
	if reason := c.server.config.Policy.name(canonical(host), c.target.Port()); reason != "" {
		return nil, refusal(fmt.Sprintf("the request is for %q: %s", host, reason))
	}
	return request, nil
}

// send writes a request. It asks for no other protocol on the same connection, for then what is asked for would not be seen.
func send(w *bufio.Writer, request *http.Request) error {
	header := request.Header
	if header.Get("Upgrade") != "" {
		header.Del("Upgrade")
		header.Del("Http2-Settings")
		var rest []string
		for _, option := range strings.Split(strings.Join(header.Values("Connection"), ","), ",") {
			if option = strings.TrimSpace(option); option != "" && !strings.EqualFold(option, "upgrade") && !strings.EqualFold(option, "http2-settings") {
				rest = append(rest, option)
			}
		}
		if header.Del("Connection"); len(rest) > 0 {
			header.Set("Connection", strings.Join(rest, ", "))
		}
	}
	chunked := slices.Contains(request.TransferEncoding, "chunked")
	fmt.Fprintf(w, "%s %s HTTP/1.%d\r\nHost: %s\r\n", request.Method, request.URL.RequestURI(), request.ProtoMinor, request.Host)
	switch {
	case chunked:
		fmt.Fprint(w, "Transfer-Encoding: chunked\r\n")
		for _, name := range sorted(request.Trailer) {
			fmt.Fprintf(w, "Trailer: %s\r\n", name)
		}
	case request.ContentLength > 0 || header.Get("Content-Length") != "":
		fmt.Fprintf(w, "Content-Length: %d\r\n", request.ContentLength)
	}
	if err := header.WriteSubset(w, map[string]bool{"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Trailer": true}); err != nil {
		return err
	}
	if _, err := w.WriteString("\r\n"); err != nil {
		return err
	}
	if err := sendBody(w, request, chunked); err != nil {
		return err
	}
	return w.Flush()
}

func sendBody(w *bufio.Writer, request *http.Request, chunked bool) error {
	body := flusher{request.Body, w}
	if !chunked {
		// Not by the writer's own ReadFrom, which cannot be flushed meanwhile.
		_, err := io.CopyN(struct{ io.Writer }{w}, body, request.ContentLength)
		return err
	}
	chunks := httputil.NewChunkedWriter(w)
	if _, err := io.Copy(chunks, body); err != nil {
		return err
	}
	if err := chunks.Close(); err != nil {
		return err
	}
	if err := request.Trailer.Write(w); err != nil {
		return err
	}
	_, err := w.WriteString("\r\n")
	return err
}

// flusher sends all that there is before it waits for more: a client may wait for an answer meanwhile.
type flusher struct {
	io.Reader
	w *bufio.Writer
}

func (f flusher) Read(p []byte) (int, error) {
	if err := f.w.Flush(); err != nil {
		return 0, err
	}
	return f.Reader.Read(p)
}

// counter writes to the world.
type counter struct{ carriage *carriage }

func (w *counter) Write(p []byte) (int, error) {
	// Before anyone can have answered.
	w.carriage.record.sent.Add(int64(len(p)))
	w.carriage.move()
	n, err := w.carriage.outer.Write(p)
	w.carriage.record.sent.Add(int64(n - len(p)))
	return n, err
}

func sorted(header http.Header) []string {
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
