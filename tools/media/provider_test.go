package media_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/budget"
	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
	"trajgen/tools/media"
	"trajgen/tools/web"
	"trajgen/tools/web/source"
)

const key = "a-secret-of-the-provider"

// fake is a server with the documented shapes of all providers. Its script says what the next answers to requests that make something
// are; behind its end it answers rightly.
type fake struct {
	*httptest.Server
	mu     sync.Mutex
	script []func(w http.ResponseWriter)
	asked  []string // path and body of each request that makes something
	auth   []string // header of a key, of each request
	polls  int
}

func newFake(t *testing.T) *fake {
	f := &fake{}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func picture() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 30, 20)))
	return b.Bytes()
}

// wav is a second of silence.
func wav() []byte {
	b := []byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data")
	b = binary.LittleEndian.AppendUint32(b, 8000)
	return append(b, make([]byte, 8000)...)
}

// mp4 says that it plays for four seconds.
var mp4 = []byte("\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom" + "\x00\x00\x00\x08free" +
	"\x00\x00\x00\x24moov\x00\x00\x00\x1cmvhd" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x02\x58\x00\x00\x09\x60")

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.auth = append(f.auth, r.URL.Path+" "+r.Header.Get("Authorization")+r.Header.Get("xi-api-key"))
	if r.Method == http.MethodPost {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		text, _ := json.Marshal(body)
		f.asked = append(f.asked, r.URL.RequestURI()+" "+string(text))
		if len(f.script) > 0 {
			next := f.script[0]
			f.script = f.script[1:]
			next(w)
			return
		}
	}
	switch {
	case r.URL.Path == "/images/generations":
		fmt.Fprintf(w, `{"created":1,"data":[{"b64_json":"%s","revised_prompt":"A fine cat"}],"usage":{"total_tokens":30,"input_tokens":10,"output_tokens":20}}`,
			base64.StdEncoding.EncodeToString(picture()))
	case r.URL.Path == "/audio/speech", strings.HasPrefix(r.URL.Path, "/text-to-speech/"):
		_, _ = w.Write(append([]byte("ID3"), make([]byte, 100)...))
	case r.URL.Path == "/fal-ai/flux/dev":
		fmt.Fprintf(w, `{"images":[{"url":"%s/files/a.png","width":30,"height":20}],"seed":7,"has_nsfw_concepts":[false]}`, f.URL)
	case r.URL.Path == "/fal-ai/veo3/fast":
		fmt.Fprint(w, `{"request_id":"r-1","status_url":"http://elsewhere.test/steal"}`)
	case r.URL.Path == "/fal-ai/veo3/requests/r-1/status":
		f.polls++
		fmt.Fprintf(w, `{"status":"%s"}`, map[bool]string{true: "IN_PROGRESS", false: "COMPLETED"}[f.polls < 2])
	case r.URL.Path == "/fal-ai/veo3/requests/r-1":
		fmt.Fprintf(w, `{"video":{"url":"%s/files/a.mp4"}}`, f.URL)
	case r.URL.Path == "/files/a.png":
		_, _ = w.Write(picture())
	case r.URL.Path == "/files/a.mp4":
		_, _ = w.Write(mp4)
	default:
		http.NotFound(w, r)
	}
}

// purchase opens a view of a run that may spend so much. What it asks of the episode's record is in halted.
func purchase(t *testing.T, s media.Settings, w *web.Web, usd float64) (v *media.View, ledger *budget.Ledger, halted *error) {
	t.Helper()
	ledger, err := budget.Open(budget.Config{USD: usd, Prices: prices})
	if err != nil {
		t.Fatal(err)
	}
	m, err := media.Open(media.Config{Settings: s, Getenv: getenv, Now: time.Now, Replay: w.Mode() == web.Replay, Meter: ledger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	halted = new(error)
	return m.View(media.Attempt{
		Web: w.View("ep", 1), Side: model.Side{
			Ask: func(_, _ string, _ any, ask func() error) error { *halted = ask(); return *halted },
			Price: func(u episode.Usage, names ...string) *float64 {
				if _, price, known := prices.Find(names...); known && u.Reported {
					return new(price.Of(u))
				}
				return nil
			},
		},
	}), ledger, halted
}

func settings(f *fake) media.Settings {
	here := media.Provider{BaseURL: f.URL, APIKeyEnv: "MEDIA_KEY"}
	return media.Settings{Video: "fal", Providers: map[string]media.Provider{"openai": here, "fal": here, "elevenlabs": here}}
}

func getenv(name string) string { return map[string]string{"MEDIA_KEY": key}[name] }

func openWeb(t *testing.T, s web.Settings) *web.Web {
	t.Helper()
	s.AllowPrivate = []string{"127.0.0.1"}
	w, err := web.Open(t.Context(), web.Config{Settings: s, Getenv: getenv, Now: time.Now, KeyEnvs: []string{"MEDIA_KEY"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func open(t *testing.T, s media.Settings, w *web.Web) *media.View {
	t.Helper()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	m, err := media.Open(media.Config{Settings: s, Getenv: getenv, Now: time.Now, Replay: w.Mode() == web.Replay})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m.View(media.Attempt{Web: w.View("ep", 1)})
}

// prices are what the models of these tests cost.
var prices = episode.Prices{
	"gpt-image-1": {Image: 0.04, Input: 10, Output: 40}, "fal-ai/flux/dev": {Image: 0.025}, "gpt-4o-mini-tts": {Characters: 12},
	"eleven_multilingual_v2": {Characters: 300}, "fal-ai/veo3/fast": {Second: 0.25},
}

// makers are what providers make.
var makers = []struct {
	name string
	set  func(*media.Settings)
	make func(ctx context.Context, v *media.View) (media.File, error)
}{
	{"openai image", func(s *media.Settings) { s.Image = "openai" }, func(ctx context.Context, v *media.View) (media.File, error) {
		return v.Image(ctx, "c1", "a cat", "portrait")
	}},
	{"fal image", func(s *media.Settings) { s.Image = "fal" }, func(ctx context.Context, v *media.View) (media.File, error) {
		return v.Image(ctx, "c1", "a cat", "landscape")
	}},
	{"openai speech", func(s *media.Settings) { s.Speech = "openai" }, speak},
	{"elevenlabs speech", func(s *media.Settings) { s.Speech = "elevenlabs" }, speak},
	{"fal video", func(*media.Settings) {}, func(ctx context.Context, v *media.View) (media.File, error) {
		return v.Video(ctx, "c1", media.Clip{Prompt: "a cat", Seconds: 4, Seed: new(int64)})
	}},
}

func speak(ctx context.Context, v *media.View) (media.File, error) {
	s := media.Speech{Text: "Hello"}
	if err := v.Check(&s); err != nil {
		return media.File{}, err
	}
	return v.Spoken(ctx, "c1", s)
}

// TestProviders has each provider answer rightly.
func TestProviders(t *testing.T) {
	asked := map[string]string{
		"openai image":      `/images/generations {"model":"gpt-image-1","n":1,"output_format":"png","prompt":"a cat","size":"1024x1536"}`,
		"fal image":         `/fal-ai/flux/dev {"image_size":{"height":1024,"width":1536},"num_images":1,"output_format":"png","prompt":"a cat"}`,
		"openai speech":     `/audio/speech {"input":"Hello","model":"gpt-4o-mini-tts","response_format":"mp3","voice":"alloy"}`,
		"elevenlabs speech": `/text-to-speech/21m00Tcm4TlvDq8ikWAM?output_format=mp3_44100_128 {"model_id":"eleven_multilingual_v2","text":"Hello"}`,
		"fal video":         `/fal-ai/veo3/fast {"duration":4,"prompt":"a cat","seed":0}`,
	}
	for _, maker := range makers {
		t.Run(maker.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			s := settings(f)
			maker.set(&s)
			made, err := maker.make(t.Context(), open(t, s, openWeb(t, web.Settings{})))
			if err != nil {
				t.Fatal(err)
			}
			about := made.About
			if maker.name == "fal video" && about.Seconds != 4 {
				t.Errorf("plays %v seconds", about.Seconds)
			}
			if len(made.Data) == 0 || about.Bytes != len(made.Data) || len(about.Digest) != 64 || media.Extension(about.Type) == "" || about.Model == "" || about.By == "" {
				t.Errorf("%d bytes, %+v", len(made.Data), about)
			}
			if len(f.asked) != 1 || f.asked[0] != asked[maker.name] {
				t.Errorf("asked %q, want %q", f.asked, asked[maker.name])
			}
			for _, auth := range f.auth {
				if carries := strings.Contains(auth, key); carries == strings.HasPrefix(auth, "/files/") {
					t.Errorf("the key goes with %q: %v", auth, carries)
				}
			}
		})
	}
}

// TestRefusals has each provider answer wrongly, once or for ever.
func TestRefusals(t *testing.T) {
	say := func(status int, text string, header ...string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}
	}
	busy := say(429, `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, "Retry-After", "0")
	type script = []func(w http.ResponseWriter)
	tests := []struct {
		name   string
		script script
		blame  source.Blame
		class  string // "" for a good end
		asked  int
		only   string // part of the maker's name
	}{
		{"busy once", script{busy}, 0, "", 2, ""},
		{"busy for ever", script{busy, busy, busy, busy, busy}, source.Outage, source.Unavailable, 4, ""},
		{"down", script{say(500, "oops "+key)}, source.Outage, source.Unavailable, 1, ""},
		{"wrong key", script{say(401, `{"detail":{"status":"invalid_api_key"}}`)}, source.Operator, source.Refused, 1, ""},
		{"no money", script{say(429, `{"error":{"code":"insufficient_quota","message":"pay"}}`)}, source.Operator, source.Refused, 1, ""},
		{"unknown model", script{say(404, `{"error":{"message":"no such model"}}`)}, source.Operator, "http_404", 1, ""},
		{"busy for a moment", script{say(503, "overloaded", "Retry-After", "0")}, 0, "", 2, ""},
		{"credits of elevenlabs", script{say(401, `{"detail":{"status":"quota_exceeded","message":"This request exceeds your quota."}}`)}, source.Operator, source.Refused, 1, "elevenlabs speech"},
		{"voice of elevenlabs", script{say(404, `{"detail":{"status":"voice_not_found","message":"no such voice"}}`)}, source.Operator, "http_404", 1, "elevenlabs speech"},
		{"crowd at elevenlabs", script{say(429, `{"detail":{"status":"too_many_concurrent_requests","message":"wait"}}`, "Retry-After", "0")}, 0, "", 2, "elevenlabs speech"},
		{"redirect", script{say(307, "", "Location", "http://169.254.169.254/")}, source.Operator, source.Malformed, 1, ""},
		{"bad request", script{say(400, `{"error":{"message":"bad size"}}`)}, source.Agent, "http_400", 1, ""},
		{"policy of openai", script{say(400, `{"error":{"code":"moderation_blocked","type":"image_generation_user_error","message":"no"}}`)}, source.Agent, media.RefusedPrompt, 1, ""},
		{"policy of fal", script{say(422, `{"detail":[{"type":"content_policy_violation","msg":"no"}]}`)}, source.Agent, media.RefusedPrompt, 1, ""},
		{"black picture", script{say(200, `{"images":[{"url":"http://x.test/a.png"}],"has_nsfw_concepts":[true]}`)}, source.Agent, media.RefusedPrompt, 1, "fal image"},
		{"nothing", script{say(200, "")}, source.Outage, source.Malformed, 1, ""},
		{"empty object", script{say(200, "{}")}, source.Outage, source.Malformed, 1, ""},
		{"half a JSON", script{say(200, `{"data":[{"b64_json":"iVBORw0`)}, source.Outage, source.Malformed, 1, ""},
		{"a page", script{say(200, "<html>Sorry</html>")}, source.Outage, source.Malformed, 1, ""},
		{"no picture in it", script{say(200, `{"data":[{"b64_json":"aGVsbG8="}]}`)}, source.Outage, source.Malformed, 1, "openai image"},
		{"inside address", script{say(200, `{"images":[{"url":"http://169.254.169.254/a.png"}]}`)}, source.Agent, source.BlockedURL, 1, "fal image"},
		{"odd request id", script{say(200, `{"request_id":"../../admin"}`)}, source.Outage, source.Malformed, 1, "fal video"},
		{"too long", script{func(w http.ResponseWriter) {
			for range 40 {
				_, _ = w.Write(bytes.Repeat([]byte("ID3 "), 1<<18))
			}
		}}, source.Outage, source.TooLarge, 1, ""},
		{"cut", script{func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "ID3")
		}}, source.Outage, source.Unavailable, 1, ""},
	}
	w := openWeb(t, web.Settings{})
	for _, tt := range tests {
		for _, maker := range makers {
			if !strings.Contains(maker.name, tt.only) {
				continue
			}
			t.Run(tt.name+", "+maker.name, func(t *testing.T) {
				t.Parallel()
				f := newFake(t)
				f.script = slices.Clone(tt.script)
				s := settings(f)
				maker.set(&s)
				_, err := maker.make(t.Context(), open(t, s, w))
				failed, ok := errors.AsType[*source.Error](err)
				switch {
				case tt.class == "" && err != nil, tt.class != "" && !ok:
					t.Fatalf("error %v", err)
				case ok && (failed.Class != tt.class || failed.Blame != tt.blame):
					t.Errorf("class %s, blame %d: %v; want %s, %d", failed.Class, failed.Blame, err, tt.class, tt.blame)
				case ok && strings.Contains(err.Error(), key):
					t.Errorf("the error has the key: %v", err)
				}
				if len(f.asked) != tt.asked {
					t.Errorf("asked %d times, want %d", len(f.asked), tt.asked)
				}
			})
		}
	}
}

// TestPaid has what providers make cost what the run's prices say, in the call's row and in the budget.
func TestPaid(t *testing.T) {
	say := func(status int, text string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}
	}
	cut := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, "ID3")
	}
	costs := map[string]struct {
		usage       episode.Usage
		cost, worst float64
	}{
		"openai image":      {episode.Usage{Prompt: 10, Completion: 20, Reported: true, Made: episode.Made{Images: 1}}, 0.0409, 0.04 + (261*10+8192*40)/1e6},
		"fal image":         {episode.Usage{Reported: true, Made: episode.Made{Images: 1}}, 0.025, 0.025},
		"openai speech":     {episode.Usage{Reported: true, Made: episode.Made{Characters: 5}}, 0.00006, 0.00006},
		"elevenlabs speech": {episode.Usage{Reported: true, Made: episode.Made{Characters: 5}}, 0.0015, 0.0015},
		"fal video":         {episode.Usage{Reported: true, Made: episode.Made{Seconds: 4}}, 1, 1},
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 5e-9 }
	w := openWeb(t, web.Settings{})
	for _, maker := range makers {
		t.Run(maker.name, func(t *testing.T) {
			t.Parallel()
			want := costs[maker.name]
			f := newFake(t)
			s := settings(f)
			maker.set(&s)
			v, ledger, halted := purchase(t, s, w, want.worst+want.cost+5e-9)
			made, err := maker.make(t.Context(), v)
			if err != nil {
				t.Fatal(err)
			}
			asked := made.About.Asked
			if len(asked) != 1 || *asked[0].Usage != want.usage || !near(*asked[0].CostUSD, want.cost) || asked[0].Asked != made.About.Model || asked[0].Text == "" {
				t.Errorf("asked %+v", asked)
			}
			if !near(ledger.Spent().USD(), want.cost) {
				t.Errorf("spent %v, want %v", ledger.Spent().USD(), want.cost)
			}
			for _, refused := range []func(http.ResponseWriter){say(401, "who are you"), say(400, `{"error":{"code":"content_policy"}}`), say(500, "oops")} {
				f.script = []func(http.ResponseWriter){refused}
				if failed, err := maker.make(t.Context(), v); err == nil || len(failed.About.Asked) > 0 || !near(ledger.Spent().USD(), want.cost) {
					t.Errorf("refused: spent %v, asked %+v, %v", ledger.Spent().USD(), failed.About.Asked, err)
				}
			}
			f.script = []func(http.ResponseWriter){cut}
			if _, err := maker.make(t.Context(), v); err == nil || !near(ledger.Spent().USD(), want.cost+want.worst) || *halted != nil {
				t.Errorf("a lost answer: spent %v, want %v: %v", ledger.Spent().USD(), want.cost+want.worst, err)
			}
			n := len(f.asked)
			_, err = maker.make(t.Context(), v)
			failed, known := errors.AsType[*source.Error](err)
			if _, reached := errors.AsType[*budget.Reached](*halted); !reached || !known || failed.Class != model.ClassBudget || failed.Blame != source.Operator || len(f.asked) != n {
				t.Errorf("the budget is reached: %v, the episode is told %v, asked %d times", err, *halted, len(f.asked)-n)
			}
		})
	}
}

// TestUnpriced holds that an agent cannot choose a model whose price is not known, where a budget needs it.
func TestUnpriced(t *testing.T) {
	f := newFake(t)
	v, ledger, halted := purchase(t, settings(f), openWeb(t, web.Settings{}), 100)
	_, err := v.Video(t.Context(), "c1", media.Clip{Prompt: "a cat", Model: "fal-ai/other"})
	if failed, ok := errors.AsType[*source.Error](err); !ok || failed.Class != media.Unpriced || failed.Blame != source.Agent || *halted != nil || len(f.asked) > 0 {
		t.Errorf("%v, asked %q", err, f.asked)
	}
	f.script = []func(http.ResponseWriter){func(w http.ResponseWriter) { fmt.Fprint(w, `{"request_id":""}`) }}
	if _, err := v.Video(t.Context(), "c1", media.Clip{Prompt: "a cat"}); err == nil || ledger.Spent().USD() != 15 { // 60 seconds
		t.Errorf("a video of unknown length: spent %v, %v", ledger.Spent().USD(), err)
	}
}

// TestGivenUp ends a call while its provider asks for patience.
func TestGivenUp(t *testing.T) {
	f := newFake(t)
	f.script = []func(http.ResponseWriter){func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(429)
	}}
	s := settings(f)
	s.Image = "openai"
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	_, err := open(t, s, openWeb(t, web.Settings{})).Image(ctx, "c1", "a cat", "square")
	if failed, ok := errors.AsType[*source.Error](err); !ok || failed.Class != source.Unavailable || time.Since(began) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

// TestReplay makes everything once more from a recording, without a server, and finds the key nowhere.
func TestReplay(t *testing.T) {
	run := t.TempDir()
	f := newFake(t)
	made := map[string]string{}
	recording := openWeb(t, web.Settings{Mode: web.Record})
	if err := recording.Record(run, false); err != nil {
		t.Fatal(err)
	}
	all := func(w *web.Web, check func(name string, file media.File, err error)) {
		for _, maker := range makers {
			s := settings(f)
			maker.set(&s)
			file, err := maker.make(t.Context(), open(t, s, w))
			check(maker.name, file, err)
		}
	}
	f.script = []func(http.ResponseWriter){func(w http.ResponseWriter) { // an echo of the key
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(503)
		fmt.Fprint(w, "busy "+key)
	}}
	all(recording, func(name string, file media.File, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		made[name] = string(file.Data)
	})
	if err := recording.Close(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	replayed := openWeb(t, web.Settings{Mode: web.Replay, Recording: run})
	began := time.Now()
	all(replayed, func(name string, file media.File, err error) {
		if err != nil || string(file.Data) != made[name] || file.About.Mode != web.Replay {
			t.Errorf("%s: %d bytes, want %d: %v", name, len(file.Data), len(made[name]), err)
		}
	})
	if took := time.Since(began); took > time.Second {
		t.Errorf("the replay waited: %s", took)
	}
	s := settings(f)
	s.Image = "openai"
	_, err := open(t, s, replayed).Image(t.Context(), "c1", "a dog", "square")
	if failed, ok := errors.AsType[*source.Error](err); !ok || failed.Class != source.ReplayMiss {
		t.Errorf("what was not recorded: %v", err)
	}
	err = filepath.WalkDir(run, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(key)) {
			t.Errorf("%s has the key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	tests := []struct {
		name string
		give media.Settings
		want string
	}{
		{"nothing", media.Settings{}, ""},
		{"all", media.Settings{Image: "fal", ImageModel: "fal-ai/x", Speech: "elevenlabs", SpeechModel: "m", Video: "fal", VideoModel: "v", VisionModel: "s", VisionBaseURL: "http://h/v1"}, ""},
		{"unknown", media.Settings{Image: "dalle"}, `unknown image provider "dalle" (have local, fal, openai)`},
		{"speech of a painter", media.Settings{Speech: "fal"}, `unknown speech provider "fal" (have espeak, elevenlabs, openai)`},
		{"no video of openai", media.Settings{Video: "openai"}, `(have fal)`},
		{"model without provider", media.Settings{ImageModel: "x"}, "image_model is for a provider"},
		{"vision without a model", media.Settings{VisionBaseURL: "http://h"}, "--vision-model NAME"},
		{"provider unknown", media.Settings{Providers: map[string]media.Provider{"me": {}}}, `unknown provider "me"`},
	}
	for _, tt := range tests {
		if err := tt.give.Validate(); tt.want == "" && err != nil || tt.want != "" && !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	_, err := media.Open(media.Config{Settings: media.Settings{Image: "openai", Speech: "openai", Video: "fal"}, Getenv: func(string) string { return "" }, Now: time.Now})
	if got := fmt.Sprint(err); strings.Count(got, "OPENAI_API_KEY") != 1 || !strings.Contains(got, "FAL_KEY") {
		t.Errorf("without keys: %v", err)
	}
}

func TestCheckSpeech(t *testing.T) {
	f := newFake(t)
	w := openWeb(t, web.Settings{})
	for _, tt := range []struct {
		provider, model string
		give            media.Speech
		class           string
	}{
		{"", "", media.Speech{Text: strings.Repeat("ä", 4000)}, ""},
		{"", "", media.Speech{Text: strings.Repeat("ä", 4001)}, source.TooLarge},
		{"", "", media.Speech{Text: " \n"}, "empty_text"},
		{"", "", media.Speech{Text: "a", Format: "mp3"}, source.Unsupported},
		{"openai", "", media.Speech{Text: strings.Repeat("a", 4096), Format: "flac"}, ""},
		{"openai", "", media.Speech{Text: strings.Repeat("a", 4097)}, source.TooLarge},
		{"elevenlabs", "", media.Speech{Text: strings.Repeat("a", 10_000), Format: "opus"}, ""},
		{"elevenlabs", "eleven_flash_v2_5", media.Speech{Text: strings.Repeat("a", 40_000)}, ""},
		{"elevenlabs", "eleven_v3", media.Speech{Text: strings.Repeat("a", 5001)}, source.TooLarge},
		{"elevenlabs", "", media.Speech{Text: "a", Format: "wav"}, source.Unsupported},
	} {
		s := settings(f)
		s.Speech, s.SpeechModel = tt.provider, tt.model
		err := open(t, s, w).Check(&tt.give)
		failed, _ := errors.AsType[*source.Error](err)
		if (tt.class == "") != (err == nil) || failed != nil && failed.Class != tt.class {
			t.Errorf("%s %s, %d characters as %q: %v, want class %q", tt.provider, tt.model, len(tt.give.Text), tt.give.Format, err, tt.class)
		}
	}
}

// TestSpeak has espeak-ng be missing, fail, and write what cannot be played.
func TestSpeak(t *testing.T) {
	v := open(t, media.Settings{Voice: "en-gb"}, openWeb(t, web.Settings{}))
	var args []string
	for _, tt := range []struct {
		name  string
		run   func(sb *sandboxtest.ScriptedSandbox) (sandbox.Exit, error)
		blame source.Blame
		class string
	}{
		{"right", func(sb *sandboxtest.ScriptedSandbox) (sandbox.Exit, error) {
			return sandbox.Exit{}, sb.Files().Write(context.Background(), sandbox.FileWrite{Path: "a.wav", Data: wav()})
		}, 0, ""},
		{"fails", func(*sandboxtest.ScriptedSandbox) (sandbox.Exit, error) { return sandbox.Exit{Code: 2}, nil }, source.Outage, source.Unavailable},
		{"silent", func(*sandboxtest.ScriptedSandbox) (sandbox.Exit, error) { return sandbox.Exit{}, nil }, source.Outage, source.Malformed},
		{"noise", func(sb *sandboxtest.ScriptedSandbox) (sandbox.Exit, error) {
			return sandbox.Exit{}, sb.Files().Write(context.Background(), sandbox.FileWrite{Path: "a.wav", Data: []byte("\x7fELF")})
		}, source.Outage, source.Malformed},
		{"removes", func(sb *sandboxtest.ScriptedSandbox) (sandbox.Exit, error) {
			return sandbox.Exit{}, sb.Files().Remove(context.Background(), "a.wav")
		}, source.Outage, source.Unavailable},
	} {
		backend := &sandboxtest.Scripted{Command: func(_ context.Context, sb *sandboxtest.ScriptedSandbox, cmd sandbox.Command) (sandbox.Exit, error) {
			args = cmd.Args
			return tt.run(sb)
		}}
		box, err := backend.Open(t.Context(), sandbox.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		if err := box.Files().Write(t.Context(), sandbox.FileWrite{Path: "a.wav"}); err != nil {
			t.Fatal(err)
		}
		about, err := v.Speak(t.Context(), box, "a.wav", media.Speech{Text: "Hello"})
		failed, _ := errors.AsType[*source.Error](err)
		_, gone := box.Files().Stat(t.Context(), "a.wav")
		switch {
		case tt.class == "" && (err != nil || about.Seconds != 1 || gone != nil):
			t.Errorf("%s: %+v, %v, file %v", tt.name, about, err, gone)
		case tt.class != "" && (failed == nil || failed.Class != tt.class || failed.Blame != tt.blame || gone == nil):
			t.Errorf("%s: %v, file %v", tt.name, err, gone)
		}
		if !slices.Equal(args, []string{"espeak-ng", "--stdin", "-w", "a.wav", "-v", "en-gb"}) {
			t.Errorf("args %q", args)
		}
		if _, err := v.Speak(t.Context(), absent{box}, "a.wav", media.Speech{Text: "Hello"}); !strings.Contains(fmt.Sprint(err), "apt-get install espeak-ng") {
			t.Errorf("without espeak-ng: %v", err)
		}
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	}
}

// absent is a sandbox without programs.
type absent struct{ sandbox.Sandbox }

func (absent) Start(context.Context, sandbox.Command) (sandbox.Process, error) {
	return nil, fmt.Errorf("espeak-ng: %w", sandbox.ErrNotFound)
}
