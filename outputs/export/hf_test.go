package export_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"go.yaml.in/yaml/v3"

	"trajgen/outputs/export"
	"trajgen/outputs/rows"
	"trajgen/outputs/sinktest"
)

func TestHuggingFaceCard(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hf")
	sink, err := export.Open("hf", path, export.Options{
		PartRows: 5, Set: map[string]string{"license": "mit", "split": "test", "name": "A | <b>name</b>\nof two lines"},
		Run: export.Run{Name: "first", Model: "asked-for", Dataset: "tasks.jsonl", Digest: "sha256:abc", Tasks: 8, Samples: 2, Seed: 7, Version: "v1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := export.Write(t.Context(), sinktest.Slice(sinktest.Episodes(12)), sink)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Notes) > 0 {
		t.Errorf("notes %q, want none with a license", result.Notes)
	}
	data, err := os.ReadFile(filepath.Join(path, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitN(string(data), "---\n", 3)
	var head struct {
		License string   `yaml:"license"`
		Sizes   []string `yaml:"size_categories"`
		Configs []struct {
			Name string                         `yaml:"config_name"`
			Data []struct{ Split, Path string } `yaml:"data_files"`
		}
		Info []struct {
			Features []struct{ Name string }
			Splits   []struct {
				Examples int `yaml:"num_examples"`
				Bytes    int `yaml:"num_bytes"`
			}
		} `yaml:"dataset_info"`
	}
	if err := yaml.Unmarshal([]byte(parts[1]), &head); err != nil {
		t.Fatal(err)
	}
	if head.License != "mit" || head.Sizes[0] != "n<1K" || len(head.Configs) != 2 || head.Info[0].Splits[0].Examples != 12 || head.Info[0].Splits[0].Bytes == 0 {
		t.Errorf("front matter %+v", head)
	}
	if got, want := len(head.Info[0].Features), reflect.TypeFor[rows.Trajectory]().NumField(); got != want {
		t.Errorf("%d features, want %d", got, want)
	}
	// The patterns of the card find every file, and nothing else does.
	n := int64(0)
	for _, config := range head.Configs {
		found, err := filepath.Glob(filepath.Join(path, config.Data[0].Path))
		if err != nil || len(found) == 0 {
			t.Errorf("%s finds %v, %v", config.Data[0].Path, found, err)
		}
		if config.Name == "trajectories" {
			for _, file := range found {
				list, err := parquet.ReadFile[rows.Trajectory](file)
				if err != nil {
					t.Fatal(err)
				}
				n += int64(len(list))
			}
			if want := "test-00000-of-00003.parquet"; filepath.Base(found[0]) != want {
				t.Errorf("first file %s, want %s", found[0], want)
			}
		}
	}
	if n != 12 {
		t.Errorf("%d rows, want 12", n)
	}
	for _, want := range []string{
		"# A ¦ ‹b›name‹/b› of two lines\n", "| success | 2 |", "asked for as `asked-for`", "`tasks.jsonl sha256:abc`", "8 tasks, 2 samples each, seed 7", "`terminal`",
		"Mean reward: 0.250 (95 % interval", "| `tools` | JSON of each tool",
	} {
		if !strings.Contains(parts[2], want) {
			t.Errorf("the card lacks %q:\n%.1500s", want, parts[2])
		}
	}
	if strings.Contains(string(data), filepath.Dir(path)) {
		t.Error("the card names a path of this machine")
	}
}

func TestHuggingFaceSettings(t *testing.T) {
	_, err := export.Open("hf", t.TempDir()+"/x", export.Options{Set: map[string]string{"license": "My License!", "split": "../x"}})
	for _, want := range []string{"license is", "split is"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}
