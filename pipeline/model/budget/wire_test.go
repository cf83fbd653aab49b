package budget_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/budget"
)

const good = `{"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"x"}}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`

func client(t *testing.T, url string, ledger model.Meter, edit func(*model.Config)) *model.Client {
	t.Helper()
	cfg := model.Config{Settings: model.Settings{Name: "m", BaseURL: url, MaxTokens: 50}, Patience: model.Patience{Retries: 0}, RetryBase: time.Microsecond, RetryMax: time.Microsecond, Meter: ledger}
	if edit != nil {
		edit(&cfg)
	}
	c, err := model.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestServerNeverBillsMore holds that what a server bills stays below the budget over any number of callers, with
// replies that are refused, cut or lost, plain and streamed.
func TestServerNeverBillsMore(t *testing.T) {
	for _, callers := range []int{1, 8, 64} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d callers, stream %v", callers, stream), func(t *testing.T) {
				const limit = 60_000
				var billed atomic.Int64
				var served atomic.Uint64
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					draw := rand.New(rand.NewPCG(uint64(callers), served.Add(1)))
					fate := draw.IntN(12)
					if fate == 0 {
						http.Error(w, "{}", http.StatusInternalServerError)
						return
					}
					// As many tokens as there are bytes is what no tokenizer passes; a template adds words of its own.
					prompt, completion := 1+draw.IntN(len(body)+300), 1+draw.IntN(50)
					billed.Add(int64(prompt + completion))
					text := fmt.Sprintf(good, prompt, completion)
					if stream {
						text = "data: " + strings.Replace(text, `"message"`, `"delta"`, 1) + "\n\ndata: [DONE]\n\n"
					}
					switch fate {
					case 1:
						panic(http.ErrAbortHandler)
					case 2: // cut
						io.WriteString(w, text[:len(text)/2])
						w.(http.Flusher).Flush()
						panic(http.ErrAbortHandler)
					case 3: // the usage is missing
						text = strings.ReplaceAll(text, "usage", "abuse")
					}
					io.WriteString(w, text)
				}))
				defer server.Close()
				ledger := open(t, budget.Config{Tokens: limit})
				c := client(t, server.URL, ledger, func(cfg *model.Config) { cfg.Stream, cfg.Retries = stream, 3 })
				var wait sync.WaitGroup
				for range callers {
					wait.Go(func() {
						for {
							_, err := c.Complete(t.Context(), model.Request{Messages: []episode.Message{{Role: "user", Content: "Say x."}}})
							if failed, ok := errors.AsType[*model.Error](err); ok && failed.Class == model.ClassBudget {
								if _, ok := errors.AsType[*budget.Reached](err); !ok {
									t.Errorf("%v does not say that the budget is reached", err)
								}
								return
							}
						}
					})
				}
				wait.Wait()
				if got := billed.Load(); got > limit || got < limit/20 {
					t.Errorf("the server billed %d tokens of %d", got, limit)
				}
				if got := ledger.Spent().Tokens; got > limit || got < billed.Load() {
					t.Errorf("the ledger says %d tokens, and the server billed %d", got, billed.Load())
				}
			})
		}
	}
}

// TestBilled holds what each way to fail costs: nothing where the server cannot have billed it, what was reported, or
// else the worst case.
func TestBilled(t *testing.T) {
	const nothing, reported = 0, 30
	const worst = -1
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	whole := fmt.Sprintf(good, 20, 10)
	tests := []struct {
		name   string
		stream bool
		serve  http.HandlerFunc
		want   int
	}{
		{"a reply", false, answer(200, whole), reported},
		{"a reply without usage", false, answer(200, `{"choices":[{"index":0,"message":{"role":"assistant","content":"x"}}]}`), worst},
		{"a reply with a usage of 0", false, answer(200, fmt.Sprintf(good, 0, 0)), worst},
		{"a stream with a usage of 0", true, answer(200, "data: "+strings.Replace(fmt.Sprintf(good, 0, 0), `"message"`, `"delta"`, 1)+"\n\ndata: [DONE]\n\n"), worst},
		{"rate limit", false, answer(429, `{}`), nothing},
		{"server error", false, answer(500, `{}`), nothing},
		{"bad request", false, answer(400, `{}`), nothing},
		{"a proxy that gave up", false, answer(504, `{}`), worst},
		{"not JSON", false, answer(200, `<html>`), worst},
		{"an error within a reply that was billed", false, answer(200, `{"error":{"message":"died"},"usage":{"prompt_tokens":20,"completion_tokens":10}}`), reported},
		{"filtered, and billed", false, answer(200, strings.Replace(whole, `"stop"`, `"content_filter"`, 1)), reported},
		{"too slow", false, func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); <-r.Context().Done() }, worst},
		{"hung up", false, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, worst},
		{"stream", true, answer(200, "data: "+strings.Replace(whole, `"message"`, `"delta"`, 1)+"\n\ndata: [DONE]\n\n"), reported},
		{"stream that counts along and is cut", true, answer(200, `data: {"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":20,"completion_tokens":1}}`+"\n\n"), worst},
		{"stream without usage", true, answer(200, `data: {"choices":[{"index":0,"finish_reason":"stop","delta":{"content":"x"}}]}`+"\n\ndata: [DONE]\n\n"), worst},
	}
	request := model.Request{Messages: []episode.Message{{Role: "user", Content: "Say x."}}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(tt.serve)
			defer server.Close()
			ledger := open(t, budget.Config{Tokens: 10_000})
			c := client(t, server.URL, ledger, func(cfg *model.Config) { cfg.Stream, cfg.Timeout = tt.stream, 300*time.Millisecond })
			c.Complete(t.Context(), request) // how it ends is not what is tested
			got := int(ledger.Spent().Tokens)
			if tt.want == worst && got < 1000 || tt.want != worst && got != tt.want {
				t.Errorf("%d tokens are spent, want %d (-1 is the worst case)", got, tt.want)
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		ledger := open(t, budget.Config{Tokens: 10_000})
		_, err = client(t, "http://"+l.Addr().String(), ledger, nil).Complete(t.Context(), request)
		if got := ledger.Spent().Tokens; err == nil || got != 0 {
			t.Errorf("%d tokens are spent, error %v", got, err)
		}
	})
}

// TestKnownBound holds that what the server has counted before makes the worst case of a long conversation a close one.
func TestKnownBound(t *testing.T) {
	long := []episode.Message{{Role: "user", Content: strings.Repeat("word ", 10_000)}, {Role: "assistant", Content: "x"}, {Role: "user", Content: "and?"}}
	request := model.Request{Messages: long}
	if got := model.PromptBound(request); got < 50_000 {
		t.Errorf("bound = %d for 50000 bytes", got)
	}
	request.Known = model.Known{Messages: 1, Tokens: 10_000}
	if got := model.PromptBound(request); got < 10_005 || got > 10_500 {
		t.Errorf("bound = %d after 10000 counted tokens and 5 bytes", got)
	}
	request.Known.Messages = 4 // of another conversation
	if got := model.PromptBound(request); got < 50_000 {
		t.Errorf("bound = %d with a count of something else", got)
	}
}
