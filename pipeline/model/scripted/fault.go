package scripted

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fault is one way to misbehave, of those that Config.FaultRate explains.
type fault struct {
	kind       string // a status such as "429", or a name
	retryAfter string // header of a status
	times      int    // only the first so many askings of the same request; 0 means every one
	delay      time.Duration
}

// spoiling are the faults that spoil a reply. Every other is an answer of its own.
var spoiling = []string{"stall", "cut", "error", "slow", "filter"}

// parseFault reads what Config.Faults and the header X-Scripted-Fault carry.
func parseFault(spec string) (fault, error) {
	kind, options, _ := strings.Cut(spec, ";")
	f := fault{kind: strings.TrimSpace(kind)}
	status, err := strconv.Atoi(f.kind)
	named := slices.Concat(spoiling, []string{"context"}, slices.Sorted(maps.Keys(answers)))
	if !(err == nil && status >= 400 && status <= 599 || slices.Contains(named, f.kind)) {
		return fault{}, fmt.Errorf("unknown fault %q (have a status 400 to 599, %s)", f.kind, strings.Join(named, ", "))
	}
	if f.kind == "slow" {
		f.delay = time.Second
	}
	for option := range strings.SplitSeq(options, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(option), "=")
		switch name {
		case "":
		case "retry-after":
			f.retryAfter = value
		case "times":
			if f.times, err = strconv.Atoi(value); err != nil || f.times < 1 {
				return fault{}, fmt.Errorf("fault %q: times %q (want 1 or more)", spec, value)
			}
		case "delay":
			if f.delay, err = time.ParseDuration(value); err != nil || f.delay < 0 {
				return fault{}, fmt.Errorf("fault %q: delay %q (want e.g. 500ms)", spec, value)
			}
		default:
			return fault{}, fmt.Errorf("fault %q: unknown option %q (have retry-after, times, delay)", spec, name)
		}
	}
	return f, nil
}

// draw decides whether this asking of the request goes wrong: by spec, which its header has, else by the rate. It counts
// when met is called: without that a retry would meet the same fault for ever. A request that is refused after all has met
// nothing, so that which one meets which fault is not for the load to say, and one that is answered is forgotten.
func (s *Server) draw(spec, episodeID string, body [32]byte) (f fault, met func(), err error) {
	if spec == "" && s.cfg.FaultRate == 0 {
		return fault{}, func() {}, nil
	}
	key := hash("fault", strconv.FormatUint(s.cfg.Seed, 10), episodeID, string(body[:]))
	before := s.asked.count(key, 0)
	if spec != "" {
		if f, err = parseFault(spec); err != nil {
			return fault{}, nil, err
		}
	} else {
		sum := hash(string(key[:]), strconv.Itoa(before))
		if share := float64(binary.LittleEndian.Uint64(sum[:8])>>11) / (1 << 53); share < s.cfg.FaultRate {
			f = s.faults[binary.LittleEndian.Uint64(sum[8:16])%uint64(len(s.faults))]
		}
	}
	if f.kind == "" || f.times > 0 && before >= f.times {
		return fault{}, func() { s.asked.count(key, -1) }, nil
	}
	return f, func() { s.asked.count(key, 1) }, nil
}

// askings counts how often requests have met a fault. Where too many are counted it begins anew.
type askings struct {
	mu sync.Mutex
	of map[[32]byte]int
}

const maxAskings = 1 << 17

// count adds to the count of a request, or forgets it with a number below 0, and returns it.
func (a *askings) count(key [32]byte, more int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case more < 0:
		delete(a.of, key)
	case more > 0:
		if len(a.of) >= maxAskings || a.of == nil {
			a.of = map[[32]byte]int{}
		}
		a.of[key] += more
	}
	return a.of[key]
}

// answers are those of faults that are neither a status nor in the words of the configuration.
var answers = map[string]*refusal{
	"reset":   {},
	"garbage": {status: http.StatusOK, page: "<!DOCTYPE html>\n<html><body><h1>502 Bad Gateway</h1></body></html>\n"},
	"types": {status: http.StatusOK, page: `{"id":7,"object":["chat.completion"],"created":"now","model":null,` +
		`"choices":[{"index":"0","message":{"role":1,"content":{"text":3},"tool_calls":"none"},"finish_reason":0}],"usage":"some"}`},
	"empty": {status: http.StatusOK, page: `{"choices":[],"id":"chatcmpl-empty","object":"chat.completion"}`},
	"quota": {status: http.StatusTooManyRequests, Kind: "insufficient_quota", Code: "insufficient_quota",
		Message: "You exceeded your current quota, please check your plan and billing details."},
	"auth":   wrongKey,
	"policy": invalid("content_policy_violation", "Your request was rejected as a result of our safety system."),
}

// answer is what a fault sends that needs no reply.
func (f fault) answer(c *Config, header http.Header) *refusal {
	if known := answers[f.kind]; known != nil {
		return known
	}
	if f.kind == "context" {
		return c.tooLong(8192, 8200, 0)
	}
	if f.retryAfter != "" {
		header.Set("Retry-After", f.retryAfter)
	}
	status, _ := strconv.Atoi(f.kind)
	r := &refusal{status: status, Kind: "server_error", Message: "scripted fault: " + f.kind + " " + http.StatusText(status)}
	switch status {
	case http.StatusTooManyRequests:
		r.Kind, r.Code = "requests", "rate_limit_exceeded"
	case http.StatusPaymentRequired:
		r.Kind, r.Code = "insufficient_quota", "insufficient_quota"
	}
	return r
}
