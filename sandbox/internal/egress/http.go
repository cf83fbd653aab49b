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

// mostHead bounds the head of a request, in bytes.
const mostHead = 1 << 20

// requests reads the first HTTP request. The sender then sends it and those that follow, after it has judged the host of each.
// It writes requests anew, so that the server understands them as they were judged here.
func (c *proxied) requests() (sender, error) {
	source := &innerReader{connection: c, until: time.Now().Add(c.server.config.Begin)}
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
	return func(c *proxied) error {
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

// request reads the head of a request and judges its host. It returns io.EOF after the last request.
func (c *proxied) request(source *innerReader, reader *bufio.Reader) (*http.Request, error) {
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
		return nil, refusal(fmt.Sprintf("it is not a request of HTTP, as it must be on port %d: %v", portHTTP, err))
	}
	host := request.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	switch {
	case request.ProtoMajor != 1:
		return nil, refusal("it is not a request of HTTP/1")
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

// send writes a request. It removes offers to upgrade the protocol, because later requests could not be judged then.
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
		// Not with the writer's own ReadFrom, which cannot be flushed meanwhile.
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

// flusher flushes before it waits for more data: the client may be waiting for an answer meanwhile.
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

// counter writes to the target and counts.
type counter struct{ connection *proxied }

func (w *counter) Write(p []byte) (int, error) {
	// Count before the server can have answered.
	w.connection.record.sent.Add(int64(len(p)))
	w.connection.move()
	n, err := w.connection.outer.Write(p)
	w.connection.record.sent.Add(int64(n - len(p)))
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
