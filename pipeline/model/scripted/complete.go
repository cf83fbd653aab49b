package scripted

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// complete answers a chat completion. Whether it may come in depends on the time and on what else goes on; what the
// reply is does not.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	inFlight := s.load.enter(now)
	var visit visit
	defer func() { s.load.leave(visit) }()
	answer := func(no *refusal) {
		visit.status = no.status
		no.write(w)
	}
	refuse := func(no *refusal) {
		visit.refused = true
		answer(no)
	}

	no := s.outage()
	if no == nil && s.cfg.MaxInFlight > 0 && inFlight > s.cfg.MaxInFlight {
		no = overloaded
	}
	if no == nil {
		no = s.requests.charge(now, w.Header(), 1)
	}
	if no != nil {
		io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody)) // so that the connection can be used again
		refuse(no)
		return
	}
	job, no := s.prepare(w, r)
	if no != nil {
		answer(no)
		return
	}
	if job.reply != nil {
		if no := s.tokens.charge(now, w.Header(), job.reply.usage.TotalTokens); no != nil {
			refuse(no)
			return
		}
	}
	free, ok := s.load.slot(r.Context())
	if !ok {
		return
	}
	defer free()
	there := pause(r.Context(), job.wait)
	if no := s.outage(); there && no != nil { // it began meanwhile
		refuse(no)
		return
	}
	job.met() // also by a client that would not wait for it, and comes again
	switch {
	case !there:
	case job.reply == nil:
		answer(job.fault.answer(&s.cfg, w.Header()))
	default:
		visit.status, visit.usage = http.StatusOK, job.reply.usage
		job.reply.send(w, r, job.fault.kind)
	}
}

// job is a request that was let in: what will be sent, when, and what will be wrong with it.
type job struct {
	reply *reply // nil when the fault is an answer of its own
	fault fault
	met   func() // counts the fault, or that there is none
	wait  time.Duration
}

// prepare reads the request and makes the whole reply, before any waiting.
func (s *Server) prepare(w http.ResponseWriter, r *http.Request) (job, *refusal) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if _, big := errors.AsType[*http.MaxBytesError](err); big {
			return job{}, tooLarge
		}
		return job{}, &refusal{} // the client went away
	}
	episodeID, taskID := unescape(r.Header.Get("X-Trajgen-Episode")), unescape(r.Header.Get("X-Trajgen-Task"))
	content := sha256.Sum256(body)
	sum := hash(episodeID, string(content[:]))
	w.Header().Set("X-Request-Id", "req_"+hex.EncodeToString(sum[:10]))

	req, no := parse(body)
	if no != nil {
		return job{}, no
	}
	if req.Model != s.cfg.Model {
		return job{}, s.cfg.noModel(req.Model)
	}
	fault, met, err := s.draw(r.Header.Get("X-Scripted-Fault"), episodeID, content)
	if err != nil {
		return job{}, invalid("unknown_fault", err.Error())
	}
	out := job{fault: fault, met: met, wait: s.latency(sum) + fault.delay}
	if fault.kind != "" && !slices.Contains(spoiling, fault.kind) {
		return out, nil
	}
	next, no := s.next(req, taskID, episodeID)
	if no != nil {
		return job{}, no
	}
	if out.reply, no = s.cfg.compose(req, next, "chatcmpl-"+hex.EncodeToString(sum[:12])); no != nil {
		return job{}, no
	}
	if fault.kind == "filter" {
		out.reply.filter()
	}
	if !req.Stream {
		out.wait += s.cfg.generation(out.reply.usage.CompletionTokens)
	}
	s.cfg.Logger.Debug("reply", "episode", episodeID, "task", taskID, "calls", len(out.reply.message.ToolCalls), "finish", out.reply.finish,
		"fault", fault.kind)
	return out, nil
}

// unescape reads a header of ours; one that is not escaped is taken as it is.
func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}
