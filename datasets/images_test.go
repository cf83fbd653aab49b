package datasets_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
)

func pngOf(t *testing.T, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestImages(t *testing.T) {
	first, second := pngOf(t, 3, 2), pngOf(t, 5, 4)
	url := func(data []byte) string {
		return `{"type": "image_url", "image_url": {"url": "data:image/png;base64,` + base64.StdEncoding.EncodeToString(data) + `"}}`
	}
	picture := func(data []byte) episode.Part {
		return episode.Part{Type: episode.PartImage, MIME: "image/png", Data: data}
	}
	words := func(text string) episode.Part { return episode.Part{Type: episode.PartText, Text: text} }
	for _, tt := range []struct {
		name, give string
		want       episode.Message
	}{
		{"a text before an image", `[{"type": "text", "text": "what is this?"}, ` + url(first) + `]`,
			episode.Message{Content: "what is this?", Parts: []episode.Part{picture(first)}}},
		{"texts around images", `[{"type": "text", "text": "a"}, ` + url(first) + `, {"type": "text", "text": "b"}, ` + url(second) + `]`,
			episode.Message{Content: "a\nb", Parts: []episode.Part{words("a"), picture(first), words("b"), picture(second)}}},
		{"an image alone", `[` + url(first) + `]`, episode.Message{Parts: []episode.Part{picture(first)}}},
		{"texts alone", `[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]`, episode.Message{Content: "a\nb"}},
	} {
		tt.want.Role = "user"
		for shape, row := range map[string]string{
			"":     `{"prompt": [{"role": "user", "content": ` + tt.give + `}], "verify": {"exact": "x"}}`,
			"chat": `{"messages": [{"role": "user", "content": ` + tt.give + `}, {"role": "assistant", "content": "a cat"}]}`,
		} {
			path := filepath.Join(t.TempDir(), "rows.jsonl")
			if err := os.WriteFile(path, []byte(row+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			tasks := read(t, path, datasets.Options{Shape: shape})
			if diff := cmp.Diff([]episode.Message{tt.want}, tasks[0].Prompt); diff != "" {
				t.Errorf("%s, shape %q (-want +got):\n%s", tt.name, shape, diff)
			}
		}
	}
}

// TestImageColumn reads the column of images that rows for trainers have beside their prompts.
func TestImageColumn(t *testing.T) {
	type message struct {
		Role    string `parquet:"role"`
		Content string `parquet:"content"`
	}
	type picture struct {
		Bytes []byte  `parquet:"bytes"`
		Path  *string `parquet:"path,optional"`
	}
	type row struct {
		DataSource string    `parquet:"data_source"`
		Prompt     []message `parquet:"prompt,list"`
		Images     []picture `parquet:"images,list"`
		Reward     struct {
			Style string `parquet:"style"`
			Truth string `parquet:"ground_truth"`
		} `parquet:"reward_model"`
	}
	image := pngOf(t, 7, 6)
	r := row{DataSource: "geometry", Prompt: []message{{"user", "<image>How long is AB?"}}, Images: []picture{{Bytes: image}}}
	r.Reward.Style, r.Reward.Truth = "rule", "4"
	path := filepath.Join(t.TempDir(), "train.parquet")
	if err := parquet.WriteFile(path, []row{r}); err != nil {
		t.Fatal(err)
	}
	tasks := read(t, path, datasets.Options{})
	want := []episode.Message{{Role: "user", Content: "How long is AB?", Parts: []episode.Part{
		{Type: episode.PartImage, Data: image}, {Type: episode.PartText, Text: "How long is AB?"},
	}}}
	if diff := cmp.Diff(want, tasks[0].Prompt); diff != "" {
		t.Errorf("prompt (-want +got):\n%s", diff)
	}
}
