package bench

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	allTurns   = -1
	early      = 1000 // how many requests' times are kept
	assistants = `"role":"assistant"`
	// ports are as many as 50,000 connections take: more than some thousand at once overflow the queue of a port, and more than
	// 28,000 the client's own ports for it.
	ports = 17
)

// baseURL is where a script is answered, with a delay before the replies to one turn, or to all.
func baseURL(at, script string, delay time.Duration, turn int) string {
	return fmt.Sprintf("http://%s/%s/%s/%d/v1", at, script, delay, turn)
}

// Counts are what a server saw since it was last asked to begin anew.
type Counts struct {
	Requests int
	Bytes    int         // of request bodies
	Early    []time.Time // when the first of them came, as many as are kept
	Peak     int         // delayed requests that waited at once, at most
}

// Server answers from the scripts. It shares the machine with what is measured, so it does little: it counts the turns in the
// bytes of a request and writes a reply that was made beforehand.
type Server struct {
	Addrs []string

	http    http.Server
	replies map[string][][]byte

	mu      sync.Mutex // guards what follows
	counts  Counts
	waiting int
}

// Listen begins to serve.
func Listen() (*Server, error) {
	s := &Server{replies: map[string][][]byte{}}
	for _, script := range []string{scriptAnswer, scriptEpisode} {
		for turn := range turns(script) {
			s.replies[script] = append(s.replies[script], reply(script, turn))
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{script}/{delay}/{turn}/v1/chat/completions", s.complete)
	mux.HandleFunc("GET /{script}/{delay}/{turn}/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model"}]}`, modelName)
	})
	s.http.Handler = mux
	for range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("listen: %w", err)
		}
		s.Addrs = append(s.Addrs, l.Addr().String())
		go func() { _ = s.http.Serve(l) }() // until Close
	}
	return s, nil
}

// Close ends all connections.
func (s *Server) Close() { _ = s.http.Close() }

// complete answers one request.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	replies := s.replies[r.PathValue("script")]
	delay, badDelay := time.ParseDuration(r.PathValue("delay"))
	delayed, badTurn := strconv.Atoi(r.PathValue("turn"))
	if replies == nil || errors.Join(badDelay, badTurn) != nil {
		http.NotFound(w, r)
		return
	}
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil {
		return
	}
	turn := min(bytes.Count(body.Bytes(), []byte(assistants)), len(replies)-1)
	s.came(body.Len())
	body = bytes.Buffer{} // a request that waits holds little
	if delay > 0 && (delayed == allTurns || delayed == turn) {
		s.wait(1)
		time.Sleep(delay)
		s.wait(-1)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(replies[turn])
}

// came counts a request.
func (s *Server) came(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Requests++
	s.counts.Bytes += size
	if len(s.counts.Early) < early {
		s.counts.Early = append(s.counts.Early, time.Now())
	}
}

func (s *Server) wait(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting += more
	s.counts.Peak = max(s.counts.Peak, s.waiting)
}

// Reset begins to count anew.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts = Counts{Peak: s.waiting}
}

// Counts is what came since the last reset.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}
