package daytona_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/websocket"

	"trajgen/sandbox"
)

const (
	// maxUpload is what is held in memory.
	maxUpload = 256 << 20
	// maxMessage is what the toolbox reads at once.
	maxMessage = 64 << 10
	// queue is how many messages wait for a client until it is dropped.
	queue = 256
)

// upload stores a file of a form.
func (s *Server) upload(w http.ResponseWriter, r *http.Request, m *machine) {
	name := r.URL.Query().Get("path")
	if !queried(w, r, "path") {
		return
	}
	if name == "" {
		refuse(w, http.StatusBadRequest, "path is required")
		return
	}
	file, _, err := r.FormFile("file")
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxUpload))
	if err == nil {
		err = m.box.Files().Write(r.Context(), sandbox.FileWrite{Path: name, Data: data})
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	w.WriteHeader(http.StatusOK)
}

// permissions sets a file's mode.
func (s *Server) permissions(w http.ResponseWriter, r *http.Request, m *machine) {
	q := r.URL.Query()
	if !queried(w, r, "path", "mode") {
		return
	}
	if _, err := strconv.ParseUint(q.Get("mode"), 8, 32); err != nil {
		refuse(w, http.StatusBadRequest, "invalid mode format")
		return
	}
	result, err := sandbox.Run(r.Context(), m.box, sandbox.Command{Args: []string{"chmod", q.Get("mode"), path.Clean(q.Get("path"))}}, sandbox.RunOptions{})
	if err != nil || result.Exit.Code != 0 {
		refuse(w, http.StatusNotFound, string(result.Stderr.Bytes()))
		return
	}
	w.WriteHeader(http.StatusOK)
}

// terminal is a shell on a terminal.
type terminal struct {
	id    string
	input *io.PipeWriter
	ended chan struct{}

	mu      sync.Mutex // guards what follows
	clients map[*attached]bool
}

// attached is a client of a terminal.
type attached struct {
	socket *websocket.Conn
	queue  chan []byte
	gone   chan struct{}
	once   sync.Once
}

func (a *attached) drop() {
	a.once.Do(func() {
		close(a.gone)
		_ = a.socket.Close()
	})
}

// makeTerminal starts an interactive login shell.
func (s *Server) makeTerminal(w http.ResponseWriter, r *http.Request, m *machine) {
	var q struct {
		ID        string            `json:"id"`
		Cwd       string            `json:"cwd"`
		Envs      map[string]string `json:"envs"`
		Cols      *uint16           `json:"cols"`
		Rows      *uint16           `json:"rows"`
		LazyStart bool              `json:"lazyStart"`
	}
	if !queried(w, r) || !decode(w, r, &q) {
		return
	}
	if q.ID == "" || q.Cols == nil || q.Rows == nil || *q.Cols > 1000 || *q.Rows > 1000 || q.LazyStart || len(q.Envs) > 0 {
		refuse(w, http.StatusBadRequest, "session ID is required, and a size up to 1000")
		return
	}
	input, output := io.Pipe()
	t := &terminal{id: q.ID, input: output, clients: map[*attached]bool{}, ended: make(chan struct{})}
	m.mu.Lock()
	taken := m.terminals[q.ID] != nil
	if !taken {
		m.terminals[q.ID] = t
	}
	m.mu.Unlock()
	if taken {
		refuse(w, http.StatusConflict, "PTY session with ID '"+q.ID+"' already exists")
		return
	}
	p, err := m.box.Start(r.Context(), sandbox.Command{
		Args: []string{"bash", "-i", "-l"}, Dir: q.Cwd, Env: append([]string{"TERM=xterm-256color", "DAYTONA_SANDBOX_ID=" + m.id}, s.Env...),
		Stdin: input, Stdout: t, TTY: &sandbox.TTY{Rows: *q.Rows, Cols: *q.Cols},
	})
	if err != nil {
		refuse(w, http.StatusInternalServerError, "failed to start PTY session: "+err.Error())
		return
	}
	go func() {
		_, _ = p.Wait(context.Background())
		m.mu.Lock()
		delete(m.terminals, t.id)
		m.mu.Unlock()
		close(t.ended)
		_ = input.Close()
		// What was printed last is on its way.
		time.Sleep(50 * time.Millisecond)
		t.drop()
	}()
	reply(w, http.StatusCreated, map[string]string{"sessionId": t.id})
}

// Write passes on what appears on the terminal. A client that does not keep up is dropped.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := range t.clients {
		select {
		case a.queue <- append([]byte(nil), p...):
		default:
			delete(t.clients, a)
			a.drop()
		}
	}
	return len(p), nil
}

func (t *terminal) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := range t.clients {
		delete(t.clients, a)
		a.drop()
	}
}

func (s *Server) describeTerminal(w http.ResponseWriter, r *http.Request, m *machine) {
	m.mu.Lock()
	t := m.terminals[r.PathValue("terminal")]
	m.mu.Unlock()
	if t == nil {
		refuse(w, http.StatusNotFound, "PTY session not found")
		return
	}
	reply(w, http.StatusOK, map[string]any{"id": t.id, "active": true})
}

// connectTerminal attaches a client.
func (s *Server) connectTerminal(w http.ResponseWriter, r *http.Request, m *machine) {
	m.mu.Lock()
	t := m.terminals[r.PathValue("terminal")]
	m.mu.Unlock()
	server := websocket.Server{Handler: func(socket *websocket.Conn) {
		say := func(v map[string]string) {
			text, _ := json.Marshal(v)
			_ = websocket.Message.Send(socket, string(text))
		}
		if t == nil {
			say(map[string]string{"type": "control", "status": "error", "error": "Failed to connect to PTY session: not found"})
			return
		}
		t.attach(socket, func() { say(map[string]string{"type": "control", "status": "connected"}) })
	}}
	server.ServeHTTP(w, r)
}

func (t *terminal) attach(socket *websocket.Conn, connected func()) {
	a := &attached{socket: socket, queue: make(chan []byte, queue), gone: make(chan struct{})}
	t.mu.Lock()
	t.clients[a] = true
	t.mu.Unlock()
	var writing sync.WaitGroup
	connected()
	writing.Go(func() {
		for {
			select {
			case part := <-a.queue:
				if websocket.Message.Send(socket, part) != nil {
					return
				}
			case <-a.gone:
				return
			}
		}
	})
	socket.MaxPayloadBytes = maxMessage
	for {
		var typed []byte
		if err := websocket.Message.Receive(socket, &typed); err != nil {
			break
		}
		if _, err := t.input.Write(typed); err != nil {
			break
		}
	}
	t.mu.Lock()
	delete(t.clients, a)
	t.mu.Unlock()
	a.drop()
	writing.Wait()
}
