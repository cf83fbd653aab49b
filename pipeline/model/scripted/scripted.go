// Package scripted is a language model that knows its answers beforehand: an OpenAI-compatible server over a real
// socket that plays the reference solutions of tasks, well or badly, or recorded episodes, and misbehaves on demand.
//
// Every reply is a pure function of the server's seed, the task, the episode and the request, whatever its temperature.
// So any number of workers, or a resumed run, gets the same replies. Only whether and when a reply comes depends on the
// time and on other requests, where limits, slots or outages are set.
package scripted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"trajgen/pipeline/episode"
)

// The policies: what the server does with a request.
const (
	Oracle = "oracle" // plays the reference solution
	Noop   = "noop"   // declines at once
	Noisy  = "noisy"  // solves a share of the episodes, with slips on the way, and fails the rest
	Replay = "replay" // repeats recorded episodes
)

// Policies lists the names that Config.Policy takes.
func Policies() []string { return []string{Oracle, Noop, Noisy, Replay} }

// Where reasoning is found in a reply.
const (
	ReasoningContent = "reasoning_content" // DeepSeek, SGLang, older vLLM
	ReasoningPlain   = "reasoning"         // newer vLLM, Ollama
	ReasoningDetails = "reasoning_details" // OpenRouter, beside reasoning
	ReasoningTags    = "tags"              // <think> in the content: a server that does not look for it
)

// ReasoningFields lists the names that Config.ReasoningAs takes.
func ReasoningFields() []string {
	return []string{ReasoningContent, ReasoningPlain, ReasoningDetails, ReasoningTags}
}

// DefaultModel is the name under which the model is served when Config.Model is empty.
const DefaultModel = "scripted"

// Config says how the server behaves.
type Config struct {
	Policy string
	Skill  float64 // noisy: the share of episodes that end as the reference solution does
	Seed   uint64
	Model  string // served name; empty means DefaultModel
	APIKey string // when set, requests without it are refused

	// Replay gives the messages of a recorded episode, for the policy of that name. Called from many goroutines.
	Replay func(episodeID string) ([]episode.Message, bool)

	// What a reply looks like. Errors, Drift and ReasoningAs say how the server words, renders and sends things; empty
	// means the first of their values.
	ToolFormat    string // calls are written into the text in this format (ToolFormats); empty gives tool_calls
	ReasoningAs   string // the field that reasoning comes in, or tags in the text
	Drift         string // what the chat template changes of earlier turns
	Errors        string // whose words a conversation that is too long is refused with
	Context       int    // tokens that a prompt and its reply may have; 0 means any number
	WeightVersion string // sent as metadata.weight_version, as SGLang does; empty sends none

	// How long it takes. Delay and Latency come before each reply; then follow the tokens at Speed, streamed or not.
	Delay   time.Duration
	Latency Latency
	Speed   float64 // tokens per second; 0 means at once

	// What the server takes. These, unlike the replies, depend on the time and on what else goes on.
	RequestRate  float64 // requests per second, 0 for any number; beyond it the answer is a 429
	RequestBurst int     // requests that may come at once; 0 means 1
	TokenRate    int     // tokens per minute, of prompts and replies
	MaxInFlight  int     // requests at a time, waiting ones among them; beyond it the answer is a 503
	Slots        int     // requests that are worked on at a time; the others wait
	Outages      []Outage
	Now          func() time.Time // nil means time.Now

	// FaultRate is the share of requests that end in one of Faults (ParseFault has the grammar; empty means
	// "429;retry-after=0", "500" and "503"). Which ones is drawn from the seed, the request and how often it was
	// asked, so that a retry is a new draw and a run meets the same faults whatever its workers do.
	FaultRate float64
	Faults    []string

	Logger *slog.Logger // nil is silent
}

// Validate reports everything that is wrong at once.
func (c Config) Validate() error {
	var errs []error
	if !slices.Contains(Policies(), c.Policy) {
		errs = append(errs, fmt.Errorf("unknown policy %q (have %s)", c.Policy, strings.Join(Policies(), ", ")))
	}
	if !(c.Skill >= 0 && c.Skill <= 1) {
		errs = append(errs, fmt.Errorf("skill %v (want 0 to 1)", c.Skill))
	}
	if c.Policy == Replay && c.Replay == nil {
		errs = append(errs, errors.New("policy replay without recorded episodes (want a run directory to replay)"))
	}
	for _, name := range []struct {
		what, given string
		known       []string
	}{{"tool format", c.ToolFormat, ToolFormats()}, {"reasoning field", c.ReasoningAs, ReasoningFields()},
		{"drift", c.Drift, Drifts()}, {"error style", c.Errors, ErrorStyles()}} {
		if name.given != "" && !slices.Contains(name.known, name.given) {
			errs = append(errs, fmt.Errorf("unknown %s %q (have %s)", name.what, name.given, strings.Join(name.known, ", ")))
		}
	}
	if c.Delay < 0 {
		errs = append(errs, fmt.Errorf("delay %v (want 0 or more)", c.Delay))
	}
	if !(c.Speed >= 0) || !(c.RequestRate >= 0) || min(c.Context, c.RequestBurst, c.TokenRate, c.MaxInFlight, c.Slots) < 0 {
		errs = append(errs, fmt.Errorf("speed %v, request rate %v, context %d, burst %d, token rate %d, in flight %d, slots %d (want 0 or more)",
			c.Speed, c.RequestRate, c.Context, c.RequestBurst, c.TokenRate, c.MaxInFlight, c.Slots))
	}
	errs = append(errs, c.Latency.check())
	for _, o := range c.Outages {
		errs = append(errs, o.check())
	}
	if !(c.FaultRate >= 0 && c.FaultRate <= 1) {
		errs = append(errs, fmt.Errorf("fault rate %v (want 0 to 1)", c.FaultRate))
	}
	for _, spec := range c.Faults {
		if _, err := ParseFault(spec); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Server is the model. All its methods are safe for concurrent use.
type Server struct {
	cfg    Config
	faults []Fault
	asked  asked
	limits limiter
	load   load
	mux    http.Handler
	library

	life    sync.RWMutex   // guards the change from open to closed, and http
	serving sync.WaitGroup // requests in progress, and the listener
	stop    context.CancelFunc
	stopped context.Context // ends the contexts of requests
	http    *http.Server
}

// New makes a server that does not listen yet: Start does, or Handler is mounted in another server.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("scripted model: %w", err)
	}
	cfg.Model = cmp.Or(cfg.Model, DefaultModel)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if len(cfg.Faults) == 0 {
		cfg.Faults = []string{"429;retry-after=0", "500", "503"}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{
		cfg: cfg, limits: newLimiter(cfg), load: load{stats: Stats{Status: map[int]int{}}},
		library: library{byID: make(map[string]*script), byPrompt: make(map[[16]byte][]*script)},
	}
	if cfg.Slots > 0 {
		s.load.slots = make(chan struct{}, cfg.Slots)
	}
	for _, spec := range cfg.Faults {
		fault, _ := ParseFault(spec) // which Validate has tried
		s.faults = append(s.faults, fault)
	}
	s.stopped, s.stop = context.WithCancel(context.Background())
	s.mux = s.routes()
	return s, nil
}

// Handler answers under /v1.
func (s *Server) Handler() http.Handler { return s.mux }

// Start listens on addr, e.g. 127.0.0.1:0, and gives the base URL that clients need.
func (s *Server) Start(addr string) (baseURL string, err error) {
	s.life.Lock()
	defer s.life.Unlock()
	if s.http != nil {
		return "", fmt.Errorf("scripted model is started already, on %s", s.http.Addr)
	}
	if s.stopped.Err() != nil {
		return "", errors.New("scripted model is closed")
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("scripted model: %w", err)
	}
	s.http = &http.Server{
		Addr: listener.Addr().String(), Handler: s.mux, ReadHeaderTimeout: 30 * time.Second,
		ErrorLog: slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug), // clients that hang up, mostly
	}
	server := s.http
	s.serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.cfg.Logger.Error("scripted model stopped", "error", err)
		}
	})
	return "http://" + listener.Addr().String() + "/v1", nil
}

// Close ends every request and returns when none is left.
func (s *Server) Close() error {
	s.life.Lock()
	s.stop()
	server := s.http
	s.life.Unlock()
	var err error
	if server != nil {
		err = server.Close()
	}
	s.serving.Wait()
	return err
}

// enter counts a request in, whose context then ends with the server, too. It is refused when the server is closed.
func (s *Server) enter(r *http.Request) (entered *http.Request, leave func(), ok bool) {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.stopped.Err() != nil {
		return nil, nil, false
	}
	s.serving.Add(1)
	ctx, cancel := context.WithCancel(r.Context())
	forget := context.AfterFunc(s.stopped, cancel)
	return r.WithContext(ctx), func() {
		forget()
		cancel()
		s.serving.Done()
	}, true
}
