package scripted

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxBody is the largest request that is read.
const maxBody = 64 << 20

// created is the time stamp of every reply: the same request gives the same bytes.
const created = 1735689600

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", s.listModels)
	mux.HandleFunc("GET /v1/models/{id...}", s.showModel)
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, "invalid_request_error", "unknown_url",
			"Invalid URL ("+r.Method+" "+r.URL.Path+"); this server has GET /v1/models and POST /v1/chat/completions")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			writeError(w, http.StatusServiceUnavailable, "server_error", "", "the server is closed")
			return
		}
		defer s.serving.Done()
		if !s.authorized(r) {
			writeError(w, http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "Incorrect API key provided.")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *Server) authorized(r *http.Request) bool {
	if s.cfg.APIKey == "" {
		return true
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(token), []byte(s.cfg.APIKey)) == 1
}

type modelCard struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (s *Server) card() modelCard { return modelCard{s.cfg.Model, "model", created, "trajgen"} }

func (s *Server) listModels(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []modelCard{s.card()}})
}

func (s *Server) showModel(w http.ResponseWriter, r *http.Request) {
	if id := r.PathValue("id"); id != s.cfg.Model {
		s.noModel(w, id)
		return
	}
	writeJSON(w, http.StatusOK, s.card())
}

func (s *Server) noModel(w http.ResponseWriter, id string) {
	writeError(w, http.StatusNotFound, "invalid_request_error", "model_not_found",
		"The model `"+id+"` does not exist (this server has `"+s.cfg.Model+"`).")
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			writeError(w, http.StatusRequestEntityTooLarge, "invalid_request_error", "", "the request is too large")
		}
		return // else the client went away
	}
	episodeID, taskID := unescape(r.Header.Get("X-Trajgen-Episode")), unescape(r.Header.Get("X-Trajgen-Task"))
	sum := hash(episodeID, string(body))
	w.Header().Set("X-Request-Id", "req_"+hex.EncodeToString(sum[:10]))

	req, complaint := parse(body)
	if complaint != "" {
		writeError(w, http.StatusBadRequest, "invalid_request_error", "", complaint)
		return
	}
	if req.Model != s.cfg.Model {
		s.noModel(w, req.Model)
		return
	}
	fault, hit, err := s.draw(r.Header, episodeID, body)
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_request_error", "unknown_fault", err.Error())
		return
	}
	if !hit {
		fault = Fault{}
	}
	if !s.pause(r.Context(), s.cfg.Delay+fault.Delay) {
		return
	}
	if fault.answer(w) {
		s.cfg.Logger.Debug("fault", "kind", fault.Kind, "episode", episodeID)
		return
	}
	t, err := s.next(req, taskID, episodeID)
	if err != nil {
		code := ""
		if refused, ok := errors.AsType[*requestError](err); ok {
			code = refused.code
		}
		writeError(w, http.StatusBadRequest, "invalid_request_error", code, err.Error())
		return
	}
	out := newReply(req, t, "chatcmpl-"+hex.EncodeToString(sum[:12]))
	s.cfg.Logger.Debug("reply", "episode", episodeID, "task", taskID, "calls", len(t.calls), "finish", out.finish)
	if req.Stream {
		s.stream(w, r, req, out, fault.Kind)
		return
	}
	s.whole(w, r, out, fault.Kind)
}

// answer plays the faults that need no reply; false leaves the request to be answered, well or badly.
func (f Fault) answer(w http.ResponseWriter) bool {
	switch {
	case f.status() != 0:
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		kind, code := "server_error", ""
		switch f.status() {
		case http.StatusTooManyRequests:
			kind, code = "requests", "rate_limit_exceeded"
		case http.StatusPaymentRequired:
			kind, code = "insufficient_quota", "insufficient_quota"
		}
		writeError(w, f.status(), kind, code, "scripted fault: "+f.Kind+" "+http.StatusText(f.status()))
	case f.Kind == "garbage":
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<!DOCTYPE html>\n<html><body><h1>502 Bad Gateway</h1></body></html>\n")
	case f.Kind == "empty":
		writeJSON(w, http.StatusOK, map[string]any{"id": "chatcmpl-empty", "object": "chat.completion", "choices": []any{}})
	case f.Kind == "reset":
		panic(http.ErrAbortHandler) // net/http closes the connection and logs nothing
	default:
		return false
	}
	return true
}

// pause waits, and tells whether the client was still there and the server still open.
func (s *Server) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-s.stopped.Done():
	}
	return false
}

// hang keeps the connection open and silent, and then breaks it: an orderly end would make a reply of the half one.
func (s *Server) hang(w http.ResponseWriter, r *http.Request) {
	http.NewResponseController(w).Flush()
	select {
	case <-r.Context().Done():
	case <-s.stopped.Done():
	}
	panic(http.ErrAbortHandler)
}

type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func newErrorBody(kind, code, message string) errorBody {
	e := errorBody{errorDetail{Message: message, Type: kind}}
	if code != "" {
		e.Error.Code = &code
	}
	return e
}

func writeError(w http.ResponseWriter, status int, kind, code, message string) {
	writeJSON(w, status, newErrorBody(kind, code, message))
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	body := literal(value)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// unescape reads a header of ours; one that is not escaped is taken as it is.
func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}
