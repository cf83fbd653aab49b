package scripted

import "net/http"

// maxBody is the largest request that is read.
const maxBody = 64 << 20

// created is the time stamp of every reply: the same request gives the same bytes.
const created = 1735689600

func (s *Server) route() http.Handler {
	mux := http.NewServeMux()
	card := modelCard{s.cfg.Model, "model", created, "trajgen", s.cfg.Context}
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"object": "list", "data": []modelCard{card}})
	})
	mux.HandleFunc("GET /v1/models/{id...}", func(w http.ResponseWriter, r *http.Request) {
		if id := r.PathValue("id"); id != card.ID {
			s.cfg.noModel(id).write(w)
			return
		}
		writeJSON(w, card)
	})
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	for _, root := range []string{"", "/v1"} { // vLLM has them at the root, SGLang at both
		mux.HandleFunc("POST "+root+"/tokenize", s.tokenize)
		mux.HandleFunc("POST "+root+"/detokenize", detokenize)
	}
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if no := s.outage(); no != nil {
			no.write(w)
		}
	})
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Stats()) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		(&refusal{status: http.StatusNotFound, Kind: "invalid_request_error", Code: "unknown_url", Message: "Invalid URL (" + r.Method + " " +
			r.URL.Path + "); this server has GET /v1/models and POST /v1/chat/completions"}).write(w)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open := s.cfg.APIKey == "" || r.URL.Path == "/health" || r.URL.Path == "/stats"
		if !open && r.Header.Get("Authorization") != "Bearer "+s.cfg.APIKey {
			wrongKey.write(w)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

type modelCard struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Room    int    `json:"max_model_len,omitempty"` // vLLM
}
