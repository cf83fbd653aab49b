package rollout_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"trajgen/outputs/export"
	"trajgen/outputs/journal"
	"trajgen/outputs/media"
	"trajgen/outputs/rows"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/pipeline/model/scripted"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
)

// drawing is a PNG of a size. Its first line differs between seeds.
func drawing(t *testing.T, w, h, seed int) []byte {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, w, h))
	for i := range m.Pix[:w] {
		m.Pix[i] = byte(i * seed)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pictured plays one episode whose prompt has an image and whose tool shows another, against a real server.
type pictured struct {
	dir  string
	vain bool     // the model takes no images
	sent []string // bodies of requests
}

// play plays it until it ends, or until the runner dies when it asks for the turn of that number.
func (p *pictured) play(t *testing.T, die int) (*episode.Episode, error) {
	t.Helper()
	task := &episode.Task{ID: "t", Prompt: []episode.Message{{Role: "user", Content: "What is here, and what does the camera see?", Parts: []episode.Part{
		{Type: episode.PartText, Text: "What is here,"}, {Type: episode.PartImage, MIME: "image/png", Data: drawing(t, 30, 20, 3)},
		{Type: episode.PartText, Text: "and what does the camera see?"},
	}}}, Gold: []episode.Step{
		{Calls: []episode.GoldCall{{Name: "camera", Arguments: json.RawMessage(`{"text":"{{image.size}}"}`)}, {Name: "camera", Arguments: json.RawMessage(`{"text":"again!"}`)}}},
		{Content: "{{image.count}} images, the last of {{image.size}}, {{image.sha256}}"},
	}}
	task.Prompt[0].Content = "What is here,\nand what does the camera see?"
	if p.vain {
		task.Prompt[0].Parts = nil
	}
	server, err := scripted.New(scripted.Config{Policy: scripted.Oracle, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	server.Learn(task)
	ctx, kill := context.WithCancelCause(t.Context())
	defer kill(nil)
	asked := 0
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if asked++; asked == die {
			kill(errDied)
			return
		}
		p.sent = append(p.sent, string(body))
		r.Body = io.NopCloser(bytes.NewReader(body))
		server.Handler().ServeHTTP(w, r)
	}))
	defer at.Close()
	images := media.Open(media.Dir(p.dir))
	client, err := model.Open(model.Config{Settings: model.Settings{Name: "m", BaseURL: at.URL + "/v1", Stream: !p.vain}, TraceHeaders: true, Images: images.Read})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	reg, err := registry.New(registry.Define(registry.Definition{Name: "camera", Toolset: "file", Description: "Looks.", NoSandbox: true},
		func(_ context.Context, env *registry.Env, args echoArgs) (any, error) {
			if !env.Sees() {
				return map[string]string{"said": "a drawing"}, nil
			}
			return map[string]string{"said": args.Text}, env.Attach(registry.Image{MIME: "image/png", Data: drawing(t, 640, 400+len(args.Text), 5)})
		}))
	if err != nil {
		t.Fatal(err)
	}
	backend, err := sandbox.Open("local", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	turns, err := record.OpenTurns(p.dir, record.TurnsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer turns.Close()
	player := &rollout.Player{
		Model: client, Registry: reg, Sandboxes: rollout.Sandboxes{Backend: backend}, Now: time.Now, Recorder: &record.Recorder{Turns: turns}, Calls: rollout.Calls{Sees: !p.vain, Images: images},
	}
	ep := &episode.Episode{Schema: episode.SchemaVersion, Key: episode.Key{Task: "t"}, Toolsets: []string{"file"}, Attempt: 1}
	ep.ID = ep.Key.ID()
	return ep, player.Play(ctx, task, ep)
}

// TestImages holds what becomes of images: the bytes that the model gets are those that are stored, the episode names them, rows
// and exports have them, and a runner that dies changes nothing.
func TestImages(t *testing.T) {
	p := &pictured{dir: t.TempDir()}
	ep, err := p.play(t, 0)
	if err != nil || ep.Outcome != episode.Success {
		t.Fatalf("%+v, %v", ep.Fault, err)
	}
	store, all := media.Open(media.Dir(p.dir)), ep.Images()
	if len(all) != 3 || all[2].Height != 406 || ep.Calls[0].Images[0].SHA256 != all[1].SHA256 {
		t.Fatalf("images %+v", all)
	}
	if want := "3 images, the last of 640x406, " + all[2].SHA256; ep.Answer != want {
		t.Errorf("the model saw %q, want %q", ep.Answer, want)
	}
	if was := ep.Calls[0].RawArguments; was != `{"text":"30x20"}` {
		t.Errorf("in the prompt it saw %s", was)
	}
	for _, part := range all {
		if data, err := store.Read(part.SHA256); err != nil || len(data) != part.Bytes {
			t.Errorf("%s: %d bytes, %v", part.SHA256, len(data), err)
		}
	}
	shown := ep.Messages[4]
	if shown.Role != "user" || !shown.Harness || len(shown.Images()) != 2 || !strings.HasPrefix(shown.Content, "Shown by camera (") {
		t.Errorf("behind the results: %+v", shown)
	}
	text, err := json.Marshal(ep)
	if err != nil || bytes.Contains(text, []byte("base64")) || len(text) > 8<<10 {
		t.Errorf("the journal has %d bytes of the episode, %v", len(text), err)
	}
	for die := 1; die <= 2; die++ {
		d := &pictured{dir: t.TempDir()}
		if _, err := d.play(t, die); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		again, err := d.play(t, 0)
		if err != nil || again.Differed != nil {
			t.Fatalf("%v, %+v", err, again.Differed)
		}
		if diff := cmp.Diff(timeless(t, ep), timeless(t, again)); diff != "" {
			t.Errorf("died at request %d (-want +got):\n%s", die, diff)
		}
		if diff := cmp.Diff(len(p.sent), len(d.sent)); diff != "" {
			t.Errorf("died at request %d: requests %s", die, diff)
		}
	}
	exported(t, p.dir, ep)
}

// exported holds that the rows name the images, media has them, and a format with a place for them shows them.
func exported(t *testing.T, dir string, ep *episode.Episode) {
	t.Helper()
	j, err := journal.Open(filepath.Join(dir, "journal"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Append(t.Context(), ep), j.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := journal.OpenReader(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := export.RunFiles(t.Context(), r, dir); err != nil {
		t.Fatal(err)
	}
	table, err := parquet.ReadFile[rows.Media](filepath.Join(dir, "media", "part-00000.parquet"))
	if err != nil || len(table) != 3 || table[0].Origin != "prompt" || table[1].Origin != "camera" || int(table[2].Height) != 406 {
		t.Fatalf("media: %d rows, %v", len(table), err)
	}
	store := media.Open(media.Dir(dir))
	for _, row := range table {
		if data, err := store.Read(row.SHA256); err != nil || !bytes.Equal(data, row.Bytes) {
			t.Errorf("media: %s differs from what is stored, %v", row.SHA256, err)
		}
	}
	files, err := export.OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	for back, err := range files.Episodes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ep.Messages, back.Messages); diff != "" {
			t.Errorf("the rows have other messages (-journal +rows):\n%s", diff)
		}
		if diff := cmp.Diff(ep.Images(), back.Images()); diff != "" {
			t.Errorf("the rows have other images (-journal +rows):\n%s", diff)
		}
		if data, err := files.Image(table[1].SHA256); err != nil || !bytes.Equal(data, table[1].Bytes) {
			t.Errorf("an image of the rows: %d bytes, %v", len(data), err)
		}
	}
	for _, inline := range []bool{true, false} {
		out := filepath.Join(t.TempDir(), "chat.jsonl")
		sink, err := export.Open("openai", out, export.Options{Images: store.Read, Inline: inline})
		if err != nil {
			t.Fatal(err)
		}
		result, err := export.Write(t.Context(), r, sink)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out)
		if n := strings.Count(string(text), "data:image/png;base64,"); err != nil || inline != (n == 3) {
			t.Errorf("inline %v: %d data URLs, %v", inline, n, err)
		}
		if lost := strings.Contains(strings.Join(result.Notes, "\n"), "images"); lost == inline {
			t.Errorf("inline %v: notes %q", inline, result.Notes)
		}
	}
}

// TestUnseen holds that a model that takes no images is shown none.
func TestUnseen(t *testing.T) {
	p := &pictured{dir: t.TempDir(), vain: true}
	ep, err := p.play(t, 0)
	if err != nil || len(ep.Images()) != 0 || ep.Calls[1].Result != `{"said":"a drawing"}` {
		t.Fatalf("%+v, %v", ep.Calls, err)
	}
	if strings.Contains(strings.Join(p.sent, ""), "image_url") {
		t.Error("an image was sent")
	}
}

// TestImagesAreDroppedFirst holds that a conversation near the end of the window loses its oldest images before any result.
func TestImagesAreDroppedFirst(t *testing.T) {
	images := &media.Store{}
	defer images.Close()
	reg, err := registry.New(registry.Define(registry.Definition{Name: "echo", Toolset: "file", Description: "Looks.", NoSandbox: true},
		func(_ context.Context, env *registry.Env, args echoArgs) (any, error) {
			said := map[string]string{"said": strings.Repeat("result ", 20)}
			return said, env.Attach(registry.Image{Data: drawing(t, 700, 600+len(said), len(args.Text))})
		}))
	if err != nil {
		t.Fatal(err)
	}
	backend, err := sandbox.Open("local", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	m := &script{steps: talk(12)}
	for i, step := range m.steps {
		m.steps[i] = func(req model.Request) (model.Reply, error) {
			reply, err := step(req)
			reply.Usage = episode.Usage{}
			return reply, err
		}
	}
	player := &rollout.Player{
		Model: m, Registry: reg, Sandboxes: rollout.Sandboxes{Backend: backend}, Now: time.Now, Calls: rollout.Calls{Sees: true, Images: images},
		Context: rollout.Context{ContextSettings: rollout.ContextSettings{Compaction: episode.CompactDrop}, Window: windowOf(6000), Reply: 100},
	}
	ep := &episode.Episode{Key: episode.Key{Task: "t"}, Toolsets: []string{"file"}, Attempt: 1}
	if err := player.Play(t.Context(), &episode.Task{ID: "t", Prompt: []episode.Message{{Role: "user", Content: "look"}}}, ep); err != nil {
		t.Fatal(err)
	}
	if len(ep.Compactions) == 0 {
		t.Fatal("nothing was left out")
	}
	for _, r := range ep.Compactions[0].Replaced {
		if ep.Messages[r.Message].Role == "tool" {
			t.Errorf("a result was left out with the images: %s", r.Content)
		}
	}
	last := m.asked[len(m.asked)-1].Messages
	shown, told := 0, 0
	for i := range last {
		shown += len(last[i].Images())
		if strings.Contains(last[i].Content, "result result") {
			told++
		}
	}
	if shown >= 12 || shown < 3 || told != 12 {
		t.Errorf("the last request has %d images and %d results, want fewer than 12, the last 3 among them, and all 12", shown, told)
	}
	if c := ep.Compactions[0]; c.After >= c.Before-500 {
		t.Errorf("before %d tokens, after %d", c.Before, c.After)
	}
}
