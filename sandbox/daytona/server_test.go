package daytona_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/rented/rentedtest"
)

// What the server knows.
const (
	Key          = "dtn_stand_in"
	Organization = "org-stand-in"
	Image        = "debian:stand-in"
	Snapshot     = "stand-in-small"
)

// Server speaks Daytona's protocol, as far as a client of sandboxes does.
//
// Its machines are sandboxes of another backend, so what a client asks of them really happens. It is strict: it refuses a request
// without the key, to another path, with another method, or with a field that it does not know.
type Server struct {
	// URL is its address, for the setting api_url.
	URL string
	// Env is what the image sets, beside what all machines have. It must be set before there are machines.
	Env []string

	machines sandbox.Backend
	http     *http.Server
	root     string
	serving  sync.WaitGroup

	mu        sync.Mutex // guards what follows
	sandboxes map[string]*machine
	faults    map[string]*fault // by method and path
	calls     map[string]int
	next      int
}

// fault is what a request is answered with instead of its work.
type fault struct {
	status int
	header http.Header
	times  int
	after  bool // the work is done, and its answer lost
}

// Start starts a server whose machines are native sandboxes, until the test ends, and returns the options of its user.
func Start(t testing.TB) (*Server, sandbox.Options, error) {
	t.Helper()
	return rentedtest.Start(t, New)
}

// New starts a server on loopback, which makes machines of a backend.
func New(machines sandbox.Backend) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	root := "http://" + listener.Addr().String()
	s := &Server{
		URL: root + "/api", root: root, machines: machines,
		sandboxes: map[string]*machine{}, faults: map[string]*fault{}, calls: map[string]int{},
	}
	s.http = &http.Server{Handler: s.enter(s.routes())}
	s.serving.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

// Settings are those of a user of the server.
func (s *Server) Settings() map[string]string {
	return map[string]string{"api_key": Key, "api_url": s.URL, "organization": Organization, "image": Image, "arch": runtime.GOARCH}
}

// Fail makes the next requests of a method whose path ends so fail with a status; after is after they did their work.
func (s *Server) Fail(method, end string, status int, header http.Header, times int, after bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[method+" "+end] = &fault{status: status, header: header, times: times, after: after}
}

// Calls says how often a method was asked for whose path ends so.
func (s *Server) Calls(method, end string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for call, times := range s.calls {
		if m, path, _ := strings.Cut(call, " "); m == method && strings.HasSuffix(path, end) {
			n += times
		}
	}
	return n
}

// Running says how many machines there are.
func (s *Server) Running() int { return len(s.all()) }

// Lose ends all machines as the service may do at any time.
func (s *Server) Lose() {
	for _, m := range s.all() {
		_ = m.destroy()
	}
}

// Drop ends all connections to terminals, as the service does with a client that is too slow.
func (s *Server) Drop() {
	for _, m := range s.all() {
		m.drop()
	}
}

func (s *Server) all() []*machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*machine, 0, len(s.sandboxes))
	for _, m := range s.sandboxes {
		all = append(all, m)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].number < all[j].number })
	return all
}

// Close ends all machines and the server.
func (s *Server) Close() error {
	var errs []error
	for _, m := range s.all() {
		errs = append(errs, m.destroy())
	}
	errs = append(errs, s.http.Close())
	s.serving.Wait()
	return errors.Join(errs...)
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/sandbox", s.create)
	mux.HandleFunc("GET /api/sandbox", s.list)
	mux.HandleFunc("GET /api/sandbox/{id}", s.with(s.describe))
	mux.HandleFunc("DELETE /api/sandbox/{id}", s.with(s.remove))
	mux.HandleFunc("GET /api/sandbox/{id}/toolbox-proxy-url", s.with(func(w http.ResponseWriter, _ *http.Request, _ *machine) {
		reply(w, http.StatusOK, map[string]string{"url": s.root + "/toolbox"})
	}))
	mux.HandleFunc("POST /toolbox/{id}/files/upload", s.with(s.upload))
	mux.HandleFunc("POST /toolbox/{id}/files/permissions", s.with(s.permissions))
	mux.HandleFunc("POST /toolbox/{id}/process/pty", s.with(s.makeTerminal))
	mux.HandleFunc("GET /toolbox/{id}/process/pty/{terminal}", s.with(s.describeTerminal))
	mux.HandleFunc("GET /toolbox/{id}/process/pty/{terminal}/connect", s.with(s.connectTerminal))
	return mux
}

// enter checks what every request needs.
func (s *Server) enter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.calls[r.Method+" "+r.URL.Path]++
		var f *fault
		for call, candidate := range s.faults {
			method, end, _ := strings.Cut(call, " ")
			if method == r.Method && strings.HasSuffix(r.URL.Path, end) && candidate.times > 0 {
				candidate.times--
				f = candidate
			}
		}
		s.mu.Unlock()
		switch {
		case f != nil && !f.after:
			for name := range f.header {
				w.Header().Set(name, f.header.Get(name))
			}
			refuse(w, f.status, "as the test wants it")
			return
		case r.Header.Get("Authorization") != "Bearer "+Key:
			refuse(w, http.StatusUnauthorized, "Invalid credentials")
			return
		case r.Header.Get("X-Daytona-Organization-ID") != Organization:
			refuse(w, http.StatusForbidden, "No access to this organization")
			return
		case r.Header.Get("X-Daytona-Source") == "":
			refuse(w, http.StatusBadRequest, "header X-Daytona-Source is missing")
			return
		}
		if f != nil {
			next.ServeHTTP(discard{http.Header{}}, r)
			refuse(w, f.status, "as the test wants it, afterwards")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// discard is a reply that gets lost.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

// with finds the machine that a request is about.
func (s *Server) with(next func(http.ResponseWriter, *http.Request, *machine)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		m := s.sandboxes[r.PathValue("id")]
		s.mu.Unlock()
		if m == nil {
			refuse(w, http.StatusNotFound, fmt.Sprintf("Sandbox with ID or name %s not found", r.PathValue("id")))
			return
		}
		next(w, r, m)
	}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, message string) {
	reply(w, status, map[string]any{"statusCode": status, "error": http.StatusText(status), "message": message, "path": "", "timestamp": ""})
}

// decode reads a body that may have the fields of v and no others.
func decode(w http.ResponseWriter, r *http.Request, v any) bool {
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "content type "+strconv.Quote(kind))
		return false
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return false
	}
	return true
}

// queried refuses a query with other names than these.
func queried(w http.ResponseWriter, r *http.Request, names ...string) bool {
	known := " " + strings.Join(names, " ") + " "
	for name := range r.URL.Query() {
		if !strings.Contains(known, " "+name+" ") {
			refuse(w, http.StatusBadRequest, "query parameter "+strconv.Quote(name)+" is not honoured")
			return false
		}
	}
	return true
}
