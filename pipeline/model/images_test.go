package model_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

func image(name string, w, h int) episode.Part {
	return episode.Part{Type: episode.PartImage, SHA256: strings.Repeat(name, 64), MIME: "image/png", Width: w, Height: h, Bytes: 3}
}

// TestImagesOnTheWire holds that a server gets the kept bytes in the place of digests, also where a text looks like one.
func TestImagesOnTheWire(t *testing.T) {
	var got struct {
		Messages []struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		} `json:"messages"`
		Model string `json:"model"`
	}
	requests := 0
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		body, err := io.ReadAll(r.Body)
		if requests <= 2 && (err != nil || int64(len(body)) != r.ContentLength || json.Unmarshal(body, &got) != nil) { // the last one is cut off
			t.Errorf("body of %d bytes, said to be %d, %v", len(body), r.ContentLength, err)
		}
		if requests == 1 {
			http.Error(w, "{}", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"seen"},"finish_reason":"stop"}]}`)
	}))
	defer at.Close()
	kept := map[string]string{strings.Repeat("a", 64): "one", strings.Repeat("b", 64): "two"}
	client, err := model.Open(model.Config{Settings: model.Settings{Name: "m", BaseURL: at.URL}, Patience: model.Patience{Retries: 1}, RetryBase: 1, RetryMax: 1,
		Images: func(sha256 string) ([]byte, error) {
			if data, ok := kept[sha256]; ok {
				return []byte(data), nil
			}
			return nil, errors.New("image " + sha256[:2] + " is missing")
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	hostile := `"image_url":{"url":"sha256:` + strings.Repeat("a", 64)
	a, b, words := image("a", 10, 10), image("b", 10, 10), episode.Part{Type: episode.PartText, Text: hostile}
	messages := []episode.Message{
		{Role: "user", Content: hostile, Parts: []episode.Part{a}},
		{Role: "assistant", Content: hostile},
		{Role: "user", Content: hostile, Parts: []episode.Part{b, words, a}},
	}
	reply, err := client.Complete(t.Context(), model.Request{Messages: messages, Tools: []json.RawMessage{[]byte(`{"type":"function"}`)}})
	if err != nil || reply.Message.Content != "seen" || requests != 2 {
		t.Fatalf("%+v, %v", reply.Message, err)
	}
	text := map[string]any{"type": "text", "text": hostile}
	seen := func(data string) any {
		url := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(data))
		return map[string]any{"type": "image_url", "image_url": map[string]any{"url": url}}
	}
	want := []any{[]any{text, seen("one")}, hostile, []any{seen("two"), text, seen("one")}}
	for i, m := range got.Messages {
		if diff := cmp.Diff(want[i], m.Content); diff != "" {
			t.Errorf("message %d (-want +got):\n%s", i, diff)
		}
	}
	messages[0].Parts[0] = image("c", 10, 10)
	_, err = client.Complete(t.Context(), model.Request{Messages: messages})
	if failed, ok := errors.AsType[*model.Error](err); !ok || failed.Class != model.ClassImage || !failed.Fatal || !strings.Contains(failed.Message, "image cc is missing") {
		t.Errorf("an image that is missing: %v", err)
	}
}

// TestImageTokens holds that images count, before a server has said what they cost and after.
func TestImageTokens(t *testing.T) {
	if got := model.ImageTokens(image("a", 1280, 720)); got != 1229 {
		t.Errorf("a screenshot has %d tokens, want 1229", got)
	}
	seen := episode.Message{Role: "user", Content: "look", Parts: []episode.Part{image("a", 1280, 720)}}
	plain := episode.Message{Role: "user", Content: strings.Repeat("word ", 400)}
	var c model.Counter
	if with, without := c.Count([]episode.Message{plain, seen}, nil), c.Count([]episode.Message{plain, {Role: "user", Content: "look"}}, nil); with-without != 1229 {
		t.Errorf("an image adds %d tokens, want 1229", with-without)
	}
	c.Learn([]episode.Message{plain, seen}, nil, 1700)
	if ratio := c.Ratio(); ratio < 0.2 || ratio > 0.3 {
		t.Errorf("a byte of text is said to have %v tokens: the image's are in it", ratio)
	}
	if got := c.Count([]episode.Message{plain, seen, seen}, nil); got < 1700+1229 || got > 1700+1240 {
		t.Errorf("another image makes it %d tokens, want about %d", got, 1700+1232)
	}
}
