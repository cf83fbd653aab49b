package export_test

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trajgen/outputs/export"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// Damage in what is read is an error, or changes nothing that counts; it never ends the process.
func TestDamagedFilesAreErrors(t *testing.T) {
	for _, format := range []string{"parquet", "arrow"} {
		t.Run(format, func(t *testing.T) {
			dir := exported(t, format, sinktest.Episodes(8), export.Options{})
			var paths []string
			err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && !entry.IsDir() && entry.Name()[0] != '.' {
					paths = append(paths, path)
				}
				return err
			})
			if err != nil || len(paths) != 2 {
				t.Fatal(paths, err)
			}
			rng := rand.New(rand.NewPCG(3, 4))
			failed := 0
			for range 60 {
				path := paths[rng.IntN(len(paths))]
				whole, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				broken := append([]byte{}, whole...)
				switch at := rng.IntN(len(broken)); rng.IntN(4) {
				case 0: // anywhere
					broken[at] ^= byte(1 + rng.IntN(255))
				case 1: // in the footer, where the lengths are
					broken[len(broken)-1-rng.IntN(min(2000, len(broken)))] ^= byte(1 + rng.IntN(255))
				case 2:
					broken = broken[:at]
				case 3:
					clear(broken[at:min(len(broken), at+64)])
				}
				if err := os.WriteFile(path, broken, 0o666); err != nil {
					t.Fatal(err)
				}
				if _, err := readFiles(t, dir); err != nil {
					failed++
				}
				if err := os.WriteFile(path, whole, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if failed < 20 {
				t.Errorf("%d of 60 damaged exports were errors, want most of them", failed)
			}
		})
	}
}

// JSON of strangers that nests so deep that readers of a document die of it stands as a text. jsonl is the journal's own
// form, and tables have JSON in texts.
func TestDeepJSONStandsAsText(t *testing.T) {
	deep := `{"a":` + strings.Repeat(`{"b":[`, 1000) + strings.Repeat(`]}`, 1000) + `}`
	ep := chat(user("hi"), calling("a", "b"), result("a", deep), result("b", "["+deep+"]"), episode.Message{Role: "assistant", Content: "done", ReasoningDetails: json.RawMessage("[" + deep + "]")})
	ep.Messages[1].Calls[0].Arguments = deep
	ep.Calls = []episode.ToolCall{{ID: "a", Name: "f", RawArguments: deep, Arguments: json.RawMessage(deep), Repaired: true, Status: episode.CallOK, Result: deep}}
	ep.Task.Metadata = json.RawMessage(deep)
	ep.Task.Prompt = ep.Messages[:1]
	ep.Tools = []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"f","description":"","parameters":` + deep + `}}`)}
	own := []string{"arrow", "arrow-stream", "hf", "jsonl", "parquet"}
	for _, format := range export.Names() {
		if slices.Contains(own, format) {
			continue
		}
		var set map[string]string
		if format == "inspect" {
			set = map[string]string{"file": "json"}
		}
		err := filepath.WalkDir(exported(t, format, []*episode.Episode{ep}, export.Options{Set: set}), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err == nil && bytes.HasPrefix(data, []byte("{")) {
				if n := depthOf(t, data); n > 130 {
					t.Errorf("%s: %s nests %d deep", format, filepath.Base(path), n)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var log struct {
		Samples []struct {
			Messages []struct {
				ToolCalls []struct {
					Arguments  map[string]any
					ParseError string `json:"parse_error"`
				} `json:"tool_calls"`
			}
		}
	}
	decode(t, whole(t, exported(t, "inspect", []*episode.Episode{ep}, export.Options{Set: map[string]string{"file": "json"}}))[0], &log)
	if call := log.Samples[0].Messages[1].ToolCalls[0]; len(call.Arguments) != 0 || !strings.Contains(call.ParseError, deep) {
		t.Errorf("arguments %.40v, parse error %.80q", call.Arguments, call.ParseError)
	}
}

// depthOf is how deep JSON values nest.
func depthOf(t *testing.T, data []byte) (most int) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	for depth := 0; ; most = max(most, depth) {
		token, err := decoder.Token()
		if err == io.EOF {
			return most
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}
