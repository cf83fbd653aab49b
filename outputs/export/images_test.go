package export_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/datasets"
	"trajgen/outputs/export"
	"trajgen/outputs/log/blobs"
	"trajgen/pipeline/episode"
)

// pixels are the images of these tests, by their digests: what stands for images, and one that can be played.
var pixels = map[string][]byte{}

func pixel(text string) episode.Part {
	digest := blobs.Digest([]byte(text))
	pixels[digest] = []byte(text)
	return episode.Part{Type: episode.PartImage, MIME: "image/png", SHA256: digest, Width: 1, Height: 1, Bytes: len(text)}
}

func readPixel(digest string) ([]byte, error) {
	if data, ok := pixels[digest]; ok {
		return data, nil
	}
	return nil, errors.New("missing")
}

var dot, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

// seeing is an episode with images among the texts of its prompt, and one that a tool showed.
func seeing() *episode.Episode {
	text := func(s string) episode.Part { return episode.Part{Type: episode.PartText, Text: s} }
	shown := episode.Message{Role: "user", Content: "Shown by look (a):", Harness: true, Parts: []episode.Part{pixel("third")}}
	ep := chat(
		episode.Message{Role: "user", Content: "Compare\nwith\nplease.", Parts: []episode.Part{
			text("Compare"), pixel(string(dot)), text("with"), pixel("second\x00\xff"), text("please."),
		}},
		calling("a"), result("a", "x"), shown, episode.Message{Role: "assistant", Content: "done"})
	ep.Row = 1
	return ep
}

// glancing is the same without what the tool showed, and unseeing is without images.
func glancing() *episode.Episode {
	ep := seeing()
	return chat(ep.Messages[0], calling("a"), result("a", "x"), episode.Message{Role: "assistant", Content: "done"})
}

func unseeing() *episode.Episode {
	return chat(user("hi"), calling("a"), result("a", "x"), episode.Message{Role: "assistant", Content: "done"})
}

const behind = "an image behind the model's first message, where TRL looks for none"

// pieces are what a reader of a format finds in a row, message by message: texts, and the digests of images.
type pieces [][]string

func piecesOf(messages []episode.Message) (all pieces) {
	for i := range messages {
		var said []string
		for _, part := range messages[i].Ordered() {
			if said = append(said, part.Text); part.Type == episode.PartImage {
				said[len(said)-1] = part.SHA256
			}
		}
		all = append(all, said)
	}
	return all
}

// rowPixels are the digests of a row's images: data URLs in JSON, {bytes, path} in Parquet.
func rowPixels(t *testing.T, row object) (digests []string) {
	t.Helper()
	images, _ := row["images"].([]any)
	for _, image := range images {
		text, isURL := image.(string)
		if isURL {
			var found bool
			if text, found = strings.CutPrefix(text, "data:image/png;base64,"); !found {
				t.Errorf("an image is %.60q", image)
			}
		} else {
			text = image.(object)["bytes"].(string)
		}
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, blobs.Digest(data))
		if want := blobs.Digest(data) + ".png"; !isURL && image.(object)["path"] != want {
			t.Errorf("the path of an image is %v, want %s", image.(object)["path"], want)
		}
	}
	return digests
}

var split = regexp.MustCompile(`<image>|<video>|<audio>`)

// marked reads messages as verl and LLaMA-Factory do: each mark in a text is the next image, and there are as many.
func marked(t *testing.T, row object, messages, content string) (all pieces) {
	t.Helper()
	images := rowPixels(t, row)
	for _, m := range row[messages].([]any) {
		text := m.(object)[content].(string)
		var said []string
		add := func(piece string) {
			if piece != "" {
				said = append(said, piece)
			}
		}
		for at := split.FindStringIndex(text); at != nil; at = split.FindStringIndex(text) {
			if text[at[0]:at[1]] != "<image>" || len(images) == 0 {
				t.Fatalf("%s without one, in %v", text[at[0]:at[1]], row)
			}
			add(text[:at[0]])
			add(images[0])
			text, images = text[at[1]:], images[1:]
		}
		add(text)
		all = append(all, said)
	}
	if len(images) > 0 {
		t.Errorf("%d images more than marks", len(images))
	}
	return all
}

// filled reads messages as TRL's prepare_multimodal_messages does.
func filled(t *testing.T, row object, columns ...string) (all pieces) {
	t.Helper()
	images := rowPixels(t, row)
	for _, column := range columns {
		for _, m := range row[column].([]any) {
			var said []string
			for _, part := range m.(object)["content"].([]any) {
				if part := part.(object); part["type"] == "image" {
					said, images = append(said, images[0]), images[1:]
				} else {
					said = append(said, part["text"].(string))
				}
			}
			all = append(all, said)
		}
	}
	if len(images) > 0 {
		t.Errorf("%d images more than parts", len(images))
	}
	return all
}

// urls reads messages with parts of chat APIs.
func urls(t *testing.T, messages []any) (all pieces) {
	t.Helper()
	for _, m := range messages {
		content := m.(object)["content"]
		if text, ok := content.(string); ok {
			all = append(all, []string{text})
			continue
		}
		var said []string
		for _, part := range content.([]any) {
			if part := part.(object); part["type"] == "image_url" {
				said = append(said, rowPixels(t, object{"images": []any{part["image_url"].(object)["url"]}})...)
			} else {
				said = append(said, part["text"].(string))
			}
		}
		all = append(all, said)
	}
	return all
}

// TestImagesInRows has the images of episodes stand in rows where the trainers look for them, bytes and order the same.
func TestImagesInRows(t *testing.T) {
	inParquet := map[string]string{"file": "parquet", "json": "string"}
	heard := func(all pieces) (said pieces) { // ShareGPT wraps what is not the user's
		for _, one := range all {
			if len(one) == 0 || !strings.HasPrefix(one[0], "<") && !strings.Contains(one[0], "<tools>") {
				said = append(said, one)
			}
		}
		return said
	}
	ofUser := func(ep *episode.Episode) (all pieces) {
		for i := range ep.Messages {
			if ep.Messages[i].Role == "user" {
				all = append(all, piecesOf(ep.Messages[i:i+1])...)
			}
		}
		return all
	}
	ofAll := func(ep *episode.Episode) pieces { return piecesOf(ep.Messages) }
	for _, tt := range []struct {
		format, file string
		set          map[string]string
		give         []*episode.Episode
		want         func(*episode.Episode) pieces
		read         func(t *testing.T, row object) pieces
	}{
		{"trl", "a.jsonl", nil, []*episode.Episode{seeing(), unseeing()}, ofAll, func(t *testing.T, row object) pieces { return filled(t, row, "messages") }},
		{"trl", "a.parquet", inParquet, []*episode.Episode{unseeing(), seeing()}, ofAll, func(t *testing.T, row object) pieces { return filled(t, row, "messages") }},
		{"trl-prompt-completion", "a.jsonl", nil, []*episode.Episode{glancing(), unseeing()}, ofAll, func(t *testing.T, row object) pieces { return filled(t, row, "prompt", "completion") }},
		{"trl-prompt-completion", "a.parquet", inParquet, []*episode.Episode{glancing()}, ofAll, func(t *testing.T, row object) pieces { return filled(t, row, "prompt", "completion") }},
		{"verl-sft", "a.parquet", asTexts, []*episode.Episode{unseeing(), seeing()}, ofAll, func(t *testing.T, row object) pieces { return marked(t, row, "messages", "content") }},
		{"verl", "a.parquet", nil, []*episode.Episode{seeing()}, func(ep *episode.Episode) pieces { return piecesOf(ep.Messages[:1]) }, func(t *testing.T, row object) pieces { return marked(t, row, "prompt", "content") }},
		{"sharegpt", "a.jsonl", nil, []*episode.Episode{seeing(), unseeing()}, ofUser, func(t *testing.T, row object) pieces { return heard(marked(t, row, "conversations", "value")) }},
		{"sharegpt", "a.parquet", map[string]string{"file": "parquet"}, []*episode.Episode{unseeing(), seeing()}, ofUser, func(t *testing.T, row object) pieces { return heard(marked(t, row, "conversations", "value")) }},
		{"verifiers-results", "a", nil, []*episode.Episode{seeing(), unseeing()}, ofAll, func(t *testing.T, row object) pieces {
			return urls(t, append(row["prompt"].([]any), row["completion"].([]any)...))
		}},
	} {
		t.Run(tt.format+" "+tt.file, func(t *testing.T) {
			options := export.Options{Set: tt.set, Images: readPixel, Inline: true}
			path, result := wrote(t, tt.format, tt.file, options, tt.give...)
			var rows []object
			switch filepath.Ext(tt.file) {
			case ".parquet":
				rows = arrowFile(t, path)
			case ".jsonl":
				rows = jsonLines(t, path)
			default:
				rows = jsonLines(t, filepath.Join(path, "results.jsonl"))
			}
			if len(rows) != len(tt.give) || noted(result.Notes, "episodes whose images") {
				t.Fatalf("%d rows of %d episodes, left out %v, notes %q", len(rows), len(tt.give), result.Dropped, result.Notes)
			}
			for i, row := range rows {
				want := tt.want(tt.give[i])
				for n := range want {
					if len(want[n]) == 1 && want[n][0] == "" {
						want[n] = nil
					}
				}
				got := tt.read(t, row)
				for n := range got {
					if len(got[n]) == 1 && got[n][0] == "" {
						got[n] = nil
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("row %d (-want +got):\n%s", i, diff)
				}
			}
			options.Inline = false
			path, result = wrote(t, tt.format, tt.file, options, tt.give...)
			if result.Episodes != len(tt.give) || !noted(result.Notes, "episodes whose images were left out (--inline-media") {
				t.Errorf("without --inline-media: %d episodes, notes %q", result.Episodes, result.Notes)
			}
			if filepath.Ext(tt.file) == ".jsonl" {
				if rows := jsonLines(t, path); rows[0]["images"] != nil {
					t.Errorf("without --inline-media there are images: %v", rows[0]["images"])
				}
			}
		})
	}
}

// TestImagesInPairs has the images of a prompt stand in a preference pair, once, and refuses images in an answer.
func TestImagesInPairs(t *testing.T) {
	for file, set := range map[string]map[string]string{"a.jsonl": nil, "a.parquet": {"file": "parquet", "json": "string"}} {
		better, worse := glancing(), glancing()
		worse.ID, worse.Key.Sample, worse.Messages[3].Content = worse.ID+"-1", 1, "no"
		better.Reward, worse.Reward = new(1.0), new(0.0)
		path, result := wrote(t, "trl-preference", file, export.Options{Set: set, Images: readPixel, Inline: true}, better, worse)
		var rows []object
		if set == nil {
			rows = jsonLines(t, path)
		} else {
			rows = arrowFile(t, path)
		}
		if len(rows) != 1 {
			t.Fatalf("%s: %d rows, left out %v", file, len(rows), result.Dropped)
		}
		for column, ep := range map[string]*episode.Episode{"chosen": better, "rejected": worse} {
			want, got := piecesOf(ep.Messages), filled(t, rows[0], "prompt", column)
			want[1], got[1] = nil, nil // the calls
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", file, column, diff)
			}
		}
		_, result = wrote(t, "trl-preference", file, export.Options{Set: set, Inline: false}, better, worse)
		if !noted(result.Notes, "episodes whose images were left out (--inline-media") {
			t.Errorf("%s without --inline-media: notes %q", file, result.Notes)
		}
		shown := seeing()
		shown.Reward = new(1.0)
		_, result = wrote(t, "trl-preference", file, export.Options{Set: set, Images: readPixel, Inline: true}, shown)
		if result.Dropped[behind] != 1 {
			t.Errorf("%s: an image in an answer: left out %v", file, result.Dropped)
		}
	}
}

// TestMarksInTexts has a text say what a trainer takes for an image.
func TestMarksInTexts(t *testing.T) {
	said := func(text string) *episode.Episode {
		return chat(user(text), calling("a"), result("a", "x"), episode.Message{Role: "assistant", Content: "done"})
	}
	heard := chat(user("hi"), calling("a"), result("a", `{"page":"<p><video><image>"}`), episode.Message{Role: "assistant", Content: "<p>"})
	answered := chat(user("hi"), episode.Message{Role: "assistant", Content: "use <audio>"})
	const mark = "a text with <image>, <video> or <audio> in it, for which the format would want an image, a video or a sound"
	for _, tt := range []struct {
		name, format string
		give         *episode.Episode
		refused      string
	}{
		{"said", "trl", said("an <image> tag"), ""},
		{"said", "verifiers-results", said("an <image> tag"), ""},
		{"said", "verl-sft", said("an <image> tag"), mark},
		{"said", "verl", said("an <image> tag"), mark},
		{"said", "sharegpt", said("an <image> tag"), mark},
		{"said of a video", "verl", said("<video>"), mark},
		{"almost said", "verl-sft", said("<image src=x>"), ""},
		{"in a result", "verl-sft", heard, mark},
		{"in a result", "sharegpt", heard, ""}, // escaped
		{"by the model", "sharegpt", answered, mark},
		{"beside images", "verl-sft", chat(episode.Message{Role: "user", Content: "<image>", Parts: []episode.Part{pixel("a")}}, episode.Message{Role: "assistant", Content: "b"}), mark},
		{"shown by a tool", "trl-prompt-completion", seeing(), behind},
		{"missing", "trl", chat(episode.Message{Role: "user", Parts: []episode.Part{{Type: episode.PartImage, SHA256: "0"}}}, episode.Message{Role: "assistant", Content: "b"}), "an image that is missing"},
	} {
		for _, inline := range []bool{true, false} {
			want := map[string]int{}
			if inline && tt.refused != "" {
				want[tt.refused] = 1
			}
			path, result := wrote(t, tt.format, "out", export.Options{Images: readPixel, Inline: inline}, tt.give)
			if diff := cmp.Diff(want, result.Dropped); diff != "" {
				t.Errorf("%s, %s, inline %v: left out (-want +got):\n%s", tt.name, tt.format, inline, diff)
			}
			if tt.format == "sharegpt" && inline && tt.refused == "" {
				text := string(bytes.Join(linesOf(t, path), nil))
				if split.MatchString(text) || !strings.Contains(text, `\\u003cimage>`) {
					t.Errorf("%s: %s", tt.name, text)
				}
			}
		}
	}
}

// TestVerlRowsArePlayedAgain reads the prompts of verl's rows as a dataset.
func TestVerlRowsArePlayedAgain(t *testing.T) {
	ep := seeing()
	ep.Messages[0].Parts[3] = pixel(string(dot))
	path, _ := wrote(t, "verl", "tasks.parquet", export.Options{Images: readPixel, Inline: true}, ep)
	source, err := datasets.Open(path, datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for task, err := range source.Tasks(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got := task.Prompt[len(task.Prompt)-1]
		for i := range got.Parts {
			if part := &got.Parts[i]; part.Type == episode.PartImage {
				*part = pixel(string(part.Data))
			}
		}
		if diff := cmp.Diff(piecesOf(ep.Messages[:1]), piecesOf([]episode.Message{got})); diff != "" {
			t.Errorf("the prompt (-written +read):\n%s", diff)
		}
		return
	}
	t.Error("no task")
}
