package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// The server is a process of its own that shares the machine with what is measured, so it does as little as a server
// can: it reads a request into a buffer that no waiting connection keeps, counts the turns in its bytes and writes a
// reply that was made beforehand. The path says what is asked of it: /SCRIPT/DELAY/TURN/v1/chat/completions, with a
// delay before the replies to one turn, or to all.

const (
	allTurns    = -1
	maxRequest  = 16 << 20
	readBuffer  = 32 << 10
	tick        = 100 * time.Millisecond // of the counts over time
	longest     = 2 * time.Hour
	assistants  = `"role":"assistant"`
	modelsReply = `{"object":"list","data":[{"id":"` + modelName + `","object":"model"}]}`
)

// baseURL is where a script is answered after a delay; at is one of Server.Addrs.
func baseURL(at, script string, delay time.Duration, turn int) string {
	which := "all"
	if turn != allTurns {
		which = strconv.Itoa(turn)
	}
	return fmt.Sprintf("http://%s/%s/%s/%s/v1", at, script, delay, which)
}

// Counts are what a server saw since it was last asked to begin anew.
type Counts struct {
	Requests int64         `json:"requests"`
	Bytes    int64         `json:"bytes"`         // of request bodies
	EarlyNS  []int64       `json:"early_unix_ns"` // when the first of them came, in order, as many as are kept
	Ticks    map[int64]int `json:"ticks"`         // unix time in tenths of a second → requests
}

// early is how many requests' times are kept.
const early = 1000

// add adds what another server saw.
func (c *Counts) add(other Counts) {
	c.Requests, c.Bytes = c.Requests+other.Requests, c.Bytes+other.Bytes
	c.EarlyNS = append(c.EarlyNS, other.EarlyNS...)
	slices.Sort(c.EarlyNS)
	c.EarlyNS = c.EarlyNS[:min(len(c.EarlyNS), early)]
	for at, n := range other.Ticks {
		c.Ticks[at] += n
	}
}

// before is how many requests came until some time after the first.
func (c Counts) before(after time.Duration) (n int64) {
	if len(c.EarlyNS) == 0 {
		return 0
	}
	end := (c.EarlyNS[0] + int64(after)) / int64(tick)
	for at, count := range c.Ticks {
		if at < end {
			n += int64(count)
		}
	}
	return n
}

// Server answers from the scripts.
type Server struct {
	Addrs []string

	listeners []net.Listener
	replies   map[string][][]byte
	buffers   sync.Pool
	count     atomic.Pointer[counter]
}

// counter is a Counts in the making.
type counter struct {
	requests, bytes atomic.Int64
	early           [early]atomic.Int64
	began           time.Time
	ticks           [longest / tick]atomic.Int32
}

// Listen opens a server on so many ports of the loopback address: between one address and one port there are not
// enough of the client's own ports for everybody.
func Listen(ports int) (*Server, error) {
	s := &Server{replies: map[string][][]byte{}}
	s.buffers.New = func() any { return new([readBuffer]byte) }
	s.reset()
	for _, script := range []string{scriptAnswer, scriptEpisode} {
		for turn := range turns(script) {
			s.replies[script] = append(s.replies[script], response(reply(script, turn)))
		}
	}
	for range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen: %w", err), s.Close())
		}
		s.listeners, s.Addrs = append(s.listeners, l), append(s.Addrs, l.Addr().String())
	}
	return s, nil
}

func (s *Server) reset() { s.count.Store(&counter{began: time.Now()}) }

// Close stops listening.
func (s *Server) Close() error {
	var errs []error
	for _, l := range s.listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Serve accepts until ctx ends. What is connected is left to the end of the process.
func (s *Server) Serve(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { s.Close() })()
	var wait sync.WaitGroup
	errs := make([]error, len(s.listeners))
	for i, l := range s.listeners {
		wait.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					if !errors.Is(err, net.ErrClosed) {
						errs[i] = fmt.Errorf("accept: %w", err)
					}
					return
				}
				go s.talk(conn.(*net.TCPConn))
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// talk answers one connection until it ends, or until it says something that no client of ours does.
func (s *Server) talk(conn *net.TCPConn) {
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	var where route
	for {
		reply, delay, err := s.read(conn, raw, &where)
		if err != nil {
			return
		}
		time.Sleep(delay) // of what is in memory, nothing but this stack waits
		if _, err := conn.Write(reply); err != nil {
			return
		}
	}
}

// read reads a request and returns its reply, and how long that is kept back.
func (s *Server) read(conn io.Reader, raw syscall.RawConn, where *route) (reply []byte, delay time.Duration, err error) {
	buffer, n, err := s.first(raw)
	if err != nil {
		return nil, 0, err
	}
	defer s.buffers.Put(buffer)
	head, body, err := whole(conn, buffer[:], n)
	if err != nil {
		return nil, 0, err
	}
	line, _, _ := bytes.Cut(head, []byte("\r\n"))
	method, path, _ := bytes.Cut(line, []byte(" "))
	path, _, _ = bytes.Cut(path, []byte(" "))
	if string(method) == http.MethodGet {
		reply, err = s.get(string(path))
		return reply, 0, err
	}
	if err := where.find(path); err != nil {
		return nil, 0, err
	}
	s.count.Load().add(len(body))
	replies := s.replies[where.script]
	turn := min(bytes.Count(body, []byte(assistants)), len(replies)-1)
	if where.turn == allTurns || where.turn == turn {
		delay = where.delay
	}
	return replies[turn], delay, nil
}

// first reads the beginning of a request, into a buffer that is taken when there is something to read.
func (s *Server) first(raw syscall.RawConn) (buffer *[readBuffer]byte, n int, err error) {
	waited := raw.Read(func(fd uintptr) bool {
		buffer = s.buffers.Get().(*[readBuffer]byte)
		for {
			n, err = syscall.Read(int(fd), buffer[:])
			switch {
			case errors.Is(err, syscall.EINTR):
				continue
			case errors.Is(err, syscall.EAGAIN):
				s.buffers.Put(buffer)
				return false
			}
			return true
		}
	})
	if err = errors.Join(err, waited); err == nil && n <= 0 {
		err = io.EOF
	}
	return buffer, n, err
}

// whole reads on until the request is there, n bytes of which are, and returns it up to its body, and its body.
func whole(conn io.Reader, data []byte, n int) (head, body []byte, err error) {
	end, length := -1, 0
	for {
		if end < 0 {
			if i := bytes.Index(data[:n], []byte("\r\n\r\n")); i >= 0 {
				if end, length = i+4, contentLength(data[:i]); length < 0 || length > maxRequest {
					return nil, nil, errors.New("a request without a length")
				}
			}
		}
		if end >= 0 && n >= end+length {
			return data[:end], data[end : end+length], nil
		}
		if n == len(data) {
			if end < 0 {
				return nil, nil, errors.New("a request without an end to its head")
			}
			data = append(make([]byte, 0, end+length), data...)
			data = data[:cap(data)]
		}
		more, err := conn.Read(data[n:])
		if n += more; err != nil {
			return nil, nil, err
		}
	}
}

// contentLength is 0 without one, and -1 when it is not a number.
func contentLength(head []byte) int {
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		const name = "content-length:"
		if len(line) > len(name) && bytes.EqualFold(line[:len(name)], []byte(name)) {
			n, err := strconv.Atoi(string(bytes.TrimSpace(line[len(name):])))
			if err != nil {
				return -1
			}
			return n
		}
	}
	return 0
}

// route is what a path asks for. A connection asks for the same again and again.
type route struct {
	path   string
	script string
	delay  time.Duration
	turn   int
}

func (r *route) find(path []byte) error {
	if r.path != "" && r.path == string(path) {
		return nil
	}
	parts := strings.SplitN(string(path), "/", 5)
	if len(parts) < 5 || parts[4] != "v1/chat/completions" || parts[1] != scriptAnswer && parts[1] != scriptEpisode {
		return fmt.Errorf("no such path: %q", path)
	}
	delay, err := time.ParseDuration(parts[2])
	turn := allTurns
	if parts[3] != "all" && err == nil {
		turn, err = strconv.Atoi(parts[3])
	}
	if err != nil {
		return err
	}
	*r = route{string(path), parts[1], delay, turn}
	return nil
}

func (c *counter) add(size int) {
	now := time.Now()
	if n := c.requests.Add(1); n <= early {
		c.early[n-1].Store(now.UnixNano())
	}
	c.bytes.Add(int64(size))
	if i := int(now.Sub(c.began) / tick); i < len(c.ticks) {
		c.ticks[i].Add(1)
	}
}

// get answers what the driver and a client's probe ask.
func (s *Server) get(path string) ([]byte, error) {
	switch {
	case strings.HasSuffix(path, "/models"):
		return response([]byte(modelsReply)), nil
	case path == "/reset":
		s.reset()
		return response([]byte("{}")), nil
	case path != "/counts":
		return nil, fmt.Errorf("no such path: %q", path)
	}
	body, err := json.Marshal(s.Counts())
	return response(body), err
}

// Counts is what came since the last reset.
func (s *Server) Counts() Counts {
	c := s.count.Load()
	counts := Counts{Requests: c.requests.Load(), Bytes: c.bytes.Load(), Ticks: map[int64]int{}}
	for i := range min(counts.Requests, early) {
		if at := c.early[i].Load(); at > 0 { // it may just be on its way
			counts.EarlyNS = append(counts.EarlyNS, at)
		}
	}
	slices.Sort(counts.EarlyNS)
	for i := range c.ticks {
		if n := c.ticks[i].Load(); n > 0 {
			counts.Ticks[c.began.Add(time.Duration(i)*tick).UnixNano()/int64(tick)] += int(n)
		}
	}
	return counts
}

// response is a body with the head that goes before it, written at once.
func response(body []byte) []byte {
	return append(fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body)), body...)
}
