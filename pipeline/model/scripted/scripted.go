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
	"sync/atomic"
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

// Policies lists what Config.Policy takes: names, and characters with chances for example.
func Policies() []string { return append([]string{Oracle, Noop, Noisy, Replay}, characters...) }

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

	// How long it takes. Delay comes before each reply: 2s, 1s-3s, lognormal:MEDIAN,SIGMA (cut at a hundred times the
	// median), or empty for none. Then follow the tokens at Speed, streamed or not.
	Delay string
	Speed float64 // tokens per second; 0 means at once

	// What the server takes. These, unlike the replies, depend on the time and on what else goes on.
	RequestRate  float64 // requests per second, 0 for any number; beyond it the answer is a 429
	RequestBurst int     // requests that may come at once; 0 means 1
	TokenRate    int     // tokens per minute, of prompts and replies
	MaxInFlight  int     // requests at a time, waiting ones among them; beyond it the answer is a 503
	Slots        int     // requests that are worked on at a time; the others wait
	// Outages are times in which the server cannot be used, counted from the first chat completion that it is asked for:
	// 30s-90s, when the answer is a 503, or 30s-90s;refuse, when connections are closed without an answer.
	Outages []string

	// FaultRate is the share of requests that end in one of Faults, which are drawn from the seed, the request and how
	// often it was asked, so that a retry is a new draw and a run meets the same faults whatever its workers do. A request
	// with the header X-Scripted-Fault meets the fault that it names. A fault is a kind, then options.
	//
	//	429;retry-after=1   any status from 400 to 599, with an error body; retry-after goes out as it is
	//	stall               half a reply (or, unstreamed, its headers), then silence until the client leaves
	//	cut                 half a reply, then an orderly end as if that were all
	//	reset               the connection is closed without an answer
	//	garbage             status 200 and a page of HTML
	//	types               status 200 and JSON in which nothing has the type that it should have
	//	empty               status 200 and no choices
	//	error               status 200 and an error in the body, or in the middle of the stream
	//	slow;delay=500ms    a proper reply, that much later
	//	quota               429 with the code insufficient_quota: the account has no money
	//	auth                401 with the code invalid_api_key
	//	policy              400 with the code content_policy_violation
	//	filter              half a reply with the finish reason content_filter
	//	context             400 for a conversation that is too long, in the words of Errors
	//
	// times=N with any of them: only the first N times that the same request is asked, so that a retry succeeds.
	FaultRate float64
	Faults    []string // empty means "429;retry-after=0", "500" and "503"

	Logger *slog.Logger // nil is silent
}

// check reports everything at once that is wrong with what is not a text to parse.
func (c *Config) check() error {
	var errs []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	known := func(what, given string, names []string) {
		want(slices.Contains(names, given), "unknown %s %q (have %s)", what, given, strings.Join(names, ", "))
	}
	plays, err := parseCharacter(c.Policy)
	if errs = append(errs, err); plays == nil && err == nil {
		known("policy", c.Policy, Policies())
	}
	want(plays == nil || c.ToolFormat == "", "policy %s with a tool format (want none: it knows results by the ids of calls)", c.Policy)
	known("reasoning field", cmp.Or(c.ReasoningAs, ReasoningContent), ReasoningFields())
	known("drift", cmp.Or(c.Drift, DriftNone), Drifts())
	known("error style", cmp.Or(c.Errors, ErrorsOpenAI), ErrorStyles())
	if c.ToolFormat != "" {
		known("tool format", c.ToolFormat, ToolFormats())
	}
	want(c.Skill >= 0 && c.Skill <= 1, "skill %v (want 0 to 1)", c.Skill)
	want(c.FaultRate >= 0 && c.FaultRate <= 1, "fault rate %v (want 0 to 1)", c.FaultRate)
	want(c.Policy != Replay || c.Replay != nil, "policy replay without recorded episodes (want a run directory to replay)")
	want(min(c.Speed, c.RequestRate) >= 0 && min(c.Context, c.RequestBurst, c.TokenRate, c.MaxInFlight, c.Slots) >= 0,
		"speed %v, request rate %v, context %d, burst %d, token rate %d, in flight %d, slots %d (want 0 or more)",
		c.Speed, c.RequestRate, c.Context, c.RequestBurst, c.TokenRate, c.MaxInFlight, c.Slots)
	return errors.Join(errs...)
}

// Server is the model. All its methods are safe for concurrent use.
type Server struct {
	cfg       Config
	delay     latency
	outages   []outage
	faults    []fault
	character *character                                             // nil for other policies
	clean     atomic.Pointer[func(string) ([]episode.Message, bool)] // see Remember
	asked     askings                                                // the only memory of the server but for load
	load      load
	routes    http.Handler
	library
	requests, tokens *quota // nil for any number

	life    sync.RWMutex   // guards the change from open to closed, and http
	serving sync.WaitGroup // requests in progress, and the listener
	stop    context.CancelFunc
	stopped context.Context // ends the contexts of requests
	http    *http.Server
}

// New makes a server that does not listen yet: Start does, or Handler is mounted in another server.
func New(cfg Config) (*Server, error) {
	cfg.Model = cmp.Or(cfg.Model, DefaultModel)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if len(cfg.Faults) == 0 {
		cfg.Faults = []string{"429;retry-after=0", "500", "503"}
	}
	s := &Server{
		cfg: cfg, load: load{stats: Stats{Status: map[int]int{}}, slots: make(chan struct{}, max(0, cfg.Slots))},
		library:  library{byID: make(map[string]*script), byFirst: make(map[string][]*script)},
		requests: newQuota("requests", "requests per second", cfg.RequestRate, 1, max(1, cfg.RequestBurst)),
		tokens:   newQuota("tokens", "tokens per min (TPM)", float64(cfg.TokenRate), 60, cfg.TokenRate),
	}
	delay, err := parseLatency(cfg.Delay)
	s.delay = delay
	errs := []error{cfg.check(), err}
	s.character, _ = parseCharacter(cfg.Policy)
	for _, spec := range cfg.Outages {
		o, err := parseOutage(spec)
		s.outages, errs = append(s.outages, o), append(errs, err)
	}
	for _, spec := range cfg.Faults {
		f, err := parseFault(spec)
		s.faults, errs = append(s.faults, f), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("scripted model: %w", err)
	}
	s.stopped, s.stop = context.WithCancel(context.Background())
	s.routes = s.route()
	return s, nil
}

// Handler answers under /v1.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// Start listens on addr, e.g. 127.0.0.1:0, and gives the base URL that clients need.
func (s *Server) Start(addr string) (baseURL string, err error) {
	s.life.Lock()
	defer s.life.Unlock()
	if s.stopped.Err() != nil {
		return "", errors.New("scripted model is closed")
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("scripted model: %w", err)
	}
	server := &http.Server{
		Addr: listener.Addr().String(), Handler: s.Handler(), ReadHeaderTimeout: 30 * time.Second,
		ErrorLog: slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug), // clients that hang up, mostly
	}
	s.http = server
	s.serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.cfg.Logger.Error("scripted model stopped", "error", err)
		}
	})
	return "http://" + server.Addr + "/v1", nil
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

// serve answers a request, whose context also ends with the server.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.life.RLock()
	closed := s.stopped.Err() != nil
	if !closed {
		s.serving.Add(1)
	}
	s.life.RUnlock()
	if closed {
		(&refusal{status: http.StatusServiceUnavailable, Kind: "server_error", Message: "the server is closed"}).write(w)
		return
	}
	defer s.serving.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.stopped, cancel)()
	s.routes.ServeHTTP(w, r.WithContext(ctx))
}
