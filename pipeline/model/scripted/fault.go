package scripted

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Fault is one way to misbehave.
type Fault struct {
	Kind       string // a status such as "429", or one of faultKinds
	RetryAfter string // header of a status
	Times      int    // only the first so many askings of the same request; 0 means every one
	Delay      time.Duration
}

var faultKinds = []string{"a status 400 to 599", "stall", "cut", "reset", "garbage", "types", "empty", "error", "slow",
	"quota", "auth", "policy", "filter", "context"}

// ParseFault reads what Config.Faults and the header X-Scripted-Fault carry: a kind, then options.
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
//	context             400 for a conversation that is too long, in the words of Config.Errors
//
// times=N with any of them: only the first N times that the same request is asked, so that a retry succeeds.
func ParseFault(spec string) (Fault, error) {
	kind, options, _ := strings.Cut(spec, ";")
	f := Fault{Kind: strings.TrimSpace(kind)}
	status, err := strconv.Atoi(f.Kind)
	if !(err == nil && status >= 400 && status <= 599 || slices.Contains(faultKinds[1:], f.Kind)) {
		return Fault{}, fmt.Errorf("unknown fault %q (have %s)", f.Kind, strings.Join(faultKinds, ", "))
	}
	if f.Kind == "slow" {
		f.Delay = time.Second
	}
	for option := range strings.SplitSeq(options, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(option), "=")
		switch name {
		case "":
		case "retry-after":
			f.RetryAfter = value
		case "times":
			if f.Times, err = strconv.Atoi(value); err != nil || f.Times < 1 {
				return Fault{}, fmt.Errorf("fault %q: times %q (want 1 or more)", spec, value)
			}
		case "delay":
			if f.Delay, err = time.ParseDuration(value); err != nil || f.Delay < 0 {
				return Fault{}, fmt.Errorf("fault %q: delay %q (want e.g. 500ms)", spec, value)
			}
		default:
			return Fault{}, fmt.Errorf("fault %q: unknown option %q (have retry-after, times, delay)", spec, name)
		}
	}
	return f, nil
}

// asked counts how often a request met a fault already. It is the only memory of the server, and only faults use it:
// without it a retry would meet the same fault for ever. A request that is answered is forgotten.
type asked struct {
	mu    sync.Mutex
	count map[[32]byte]int
}

// maxAsked bounds the memory for requests whose clients gave up.
const maxAsked = 100_000

func (a *asked) before(key [32]byte) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count[key]
}

func (a *asked) met(key [32]byte, fault bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !fault {
		delete(a.count, key)
		return
	}
	if a.count == nil || len(a.count) >= maxAsked && a.count[key] == 0 {
		a.count = make(map[[32]byte]int)
	}
	a.count[key]++
}

// draw decides whether this asking of the request goes wrong: by its header, else by the rate. It counts when met is
// called. A request that is refused after all has met nothing, so that which one meets which fault is not for the load
// to say.
func (s *Server) draw(header http.Header, episodeID string, body [32]byte) (f Fault, met func(), err error) {
	spec := header.Get("X-Scripted-Fault")
	if spec == "" && s.cfg.FaultRate == 0 {
		return Fault{}, func() {}, nil
	}
	key := hash("fault", strconv.FormatUint(s.cfg.Seed, 10), episodeID, string(body[:]))
	before := s.asked.before(key)
	hit := true
	if spec != "" {
		if f, err = ParseFault(spec); err != nil {
			return Fault{}, nil, err
		}
	} else {
		sum := hash(string(key[:]), strconv.Itoa(before))
		share := float64(binary.LittleEndian.Uint64(sum[:8])>>11) / (1 << 53)
		hit = share < s.cfg.FaultRate
		f = s.faults[binary.LittleEndian.Uint64(sum[8:16])%uint64(len(s.faults))]
	}
	if !hit || f.Times > 0 && before >= f.Times {
		f, hit = Fault{}, false
	}
	return f, func() { s.asked.met(key, hit) }, nil
}

// spoils reports whether the fault spoils a reply; any other is an answer of its own.
func (f Fault) spoils() bool {
	return slices.Contains([]string{"stall", "cut", "error", "slow", "filter"}, f.Kind)
}

// answer plays the faults that need no reply.
func (c *Config) answer(w http.ResponseWriter, f Fault) {
	switch f.Kind {
	case "garbage":
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<!DOCTYPE html>\n<html><body><h1>502 Bad Gateway</h1></body></html>\n")
	case "types":
		writeText(w, http.StatusOK, `{"id":7,"object":["chat.completion"],"created":"now","model":null,`+
			`"choices":[{"index":"0","message":{"role":1,"content":{"text":3},"tool_calls":"none"},"finish_reason":0}],"usage":"some"}`)
	case "empty":
		writeText(w, http.StatusOK, `{"choices":[],"id":"chatcmpl-empty","object":"chat.completion"}`)
	case "reset":
		(&refusal{}).write(w)
	case "quota":
		(&refusal{status: http.StatusTooManyRequests, Kind: "insufficient_quota", Code: "insufficient_quota",
			Message: "You exceeded your current quota, please check your plan and billing details."}).write(w)
	case "auth":
		wrongKey.write(w)
	case "policy":
		invalid("content_policy_violation", "Your request was rejected as a result of our safety system.").write(w)
	case "context":
		c.tooLong(8192, 8200, 0).write(w)
	default:
		status, _ := strconv.Atoi(f.Kind)
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		r := &refusal{status: status, Kind: "server_error", Message: "scripted fault: " + f.Kind + " " + http.StatusText(status)}
		switch status {
		case http.StatusTooManyRequests:
			r.Kind, r.Code = "requests", "rate_limit_exceeded"
		case http.StatusPaymentRequired:
			r.Kind, r.Code = "insufficient_quota", "insufficient_quota"
		}
		r.write(w)
	}
}
