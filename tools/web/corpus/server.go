package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"

	"golang.org/x/sync/errgroup"

	"trajgen/tools/web/source"
)

// What a server takes in one request: as much as a trainer sends for a batch of episodes.
const (
	maxBody    = 16 << 20
	maxQueries = 10_000
	maxTopK    = 100
	chunk      = 64 // queries that are answered before their results are sent
)

// defaultTopK is what the protocol's own server has.
const defaultTopK = 3

// retrieval is the body of POST /retrieve.
type retrieval struct {
	Queries []string `json:"queries"`
	TopK    *int     `json:"topk"`
	Scores  bool     `json:"return_scores"`
}

// passed is a document as the protocol has it, with its URL where it has one.
type passed struct {
	ID       string `json:"id"`
	Contents string `json:"contents"` // title, newline, text
	URL      string `json:"url,omitempty"`
}

type passedScore struct {
	Document passed  `json:"document"`
	Score    float64 `json:"score"`
}

// health is the body of GET /healthz.
type health struct {
	Status    string `json:"status"`
	Documents int    `json:"documents"`
	Digest    string `json:"digest"`
}

// Handler serves a corpus over HTTP: POST /retrieve, which is the protocol of Search-R1, GET /doc/{id} and GET /healthz.
func Handler(c Corpus) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /retrieve", func(w http.ResponseWriter, r *http.Request) { retrieve(c, w, r) })
	mux.HandleFunc("GET /doc/{id...}", func(w http.ResponseWriter, r *http.Request) {
		d, err := c.Document(r.Context(), r.PathValue("id"))
		if err != nil {
			refuse(w, statusOf(err), err)
			return
		}
		answer(w, http.StatusOK, d)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, health{"ok", c.Len(), c.Digest()})
	})
	return mux
}

func retrieve(c Corpus, w http.ResponseWriter, r *http.Request) {
	var asked retrieval
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&asked); err != nil {
		status := http.StatusUnprocessableEntity
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			status = http.StatusRequestEntityTooLarge
		}
		refuse(w, status, fmt.Errorf(`the body is not {"queries": [...], "topk": N, "return_scores": BOOL}: %w`, err))
		return
	}
	topK := defaultTopK
	if asked.TopK != nil && *asked.TopK != 0 {
		topK = *asked.TopK
	}
	switch {
	case asked.Queries == nil:
		refuse(w, http.StatusUnprocessableEntity, errors.New("queries is missing; want a list of texts"))
	case len(asked.Queries) > maxQueries:
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Errorf("%d queries; at most %d", len(asked.Queries), maxQueries))
	case topK < 1 || topK > maxTopK:
		refuse(w, http.StatusUnprocessableEntity, fmt.Errorf("topk is %d; want from 1 to %d", topK, maxTopK))
	default:
		sendResults(r.Context(), c, w, asked, topK)
	}
}

// sendResults answers a chunk of the queries at a time, so that a large batch needs little memory. When an error comes after
// results were sent, it ends the connection: a client must not take a part for all.
func sendResults(ctx context.Context, c Corpus, w http.ResponseWriter, asked retrieval, topK int) {
	sent := 0
	for ; sent == 0 || sent < len(asked.Queries); sent += chunk {
		queries := asked.Queries[sent:min(sent+chunk, len(asked.Queries))]
		results := make([]json.RawMessage, len(queries))
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(runtime.GOMAXPROCS(0))
		for i, query := range queries {
			group.Go(func() error {
				hits, err := c.Search(ctx, query, topK)
				if err == nil {
					results[i], err = json.Marshal(inProtocol(hits, asked.Scores))
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			if sent > 0 {
				panic(http.ErrAbortHandler)
			}
			refuse(w, statusOf(err), err)
			return
		}
		lead := `{"result":[`
		if sent == 0 {
			w.Header().Set("Content-Type", "application/json")
		}
		for i, result := range results {
			if sent+i > 0 {
				lead = ","
			}
			_, _ = w.Write(append([]byte(lead), result...)) // the context ends when the client is gone
		}
		if len(asked.Queries) == 0 {
			_, _ = w.Write([]byte(lead))
		}
	}
	_, _ = w.Write([]byte("]}"))
}

// inProtocol are the results for one query.
func inProtocol(hits []Hit, scores bool) any {
	documents := make([]passed, len(hits))
	scored := make([]passedScore, len(hits))
	for i, hit := range hits {
		documents[i] = passed{ID: hit.ID, Contents: hit.Title + "\n" + hit.Text, URL: hit.URL}
		scored[i] = passedScore{documents[i], hit.Score}
	}
	if scores {
		return scored
	}
	return documents
}

func statusOf(err error) int {
	ours, _ := errors.AsType[*source.Error](err)
	switch {
	case ours == nil:
		return http.StatusServiceUnavailable // the context ended
	case ours.Class == source.NotInCorpus:
		return http.StatusNotFound
	case ours.Blame == source.Agent:
		return http.StatusUnprocessableEntity
	case ours.Blame == source.Outage:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// refuse answers with an error in the form of the protocol's own server.
func refuse(w http.ResponseWriter, status int, err error) {
	answer(w, status, map[string]string{"detail": err.Error()})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
