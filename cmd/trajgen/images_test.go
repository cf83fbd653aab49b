package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pictures is a dataset of two tasks whose prompts have images. Their solutions say what of them the model is to see.
func pictures(t *testing.T) string {
	t.Helper()
	var rows strings.Builder
	for _, size := range []int{40, 50} {
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, size, 30))); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&rows, `{"id":"p%d","prompt":[{"role":"user","content":[{"type":"text","text":"How large is this, %d?"},`+
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}],"toolsets":[],"gold":[{"content":"{{image.size}}"}],"verify":{"exact":"%dx30"}}`+"\n",
			size, size, base64.StdEncoding.EncodeToString(b.Bytes()), size)
	}
	path := filepath.Join(t.TempDir(), "pictures.jsonl")
	if err := os.WriteFile(path, []byte(rows.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestImagesOfADataset plays prompts with images, and holds that verify, tapes, exports and merges know them.
func TestImagesOfADataset(t *testing.T) {
	dataset, at := pictures(t), t.TempDir()
	play := func(name string, flags ...string) string {
		t.Helper()
		dir := filepath.Join(at, name)
		succeed(t, append([]string{"run", "--dataset", dataset, "--policy", "oracle", "--sandbox", "local", "--vision", "--out", dir, "--quiet"}, flags...)...)
		return dir
	}
	blind := trajgen(t, "run", "--dataset", dataset, "--policy", "oracle", "--sandbox", "local", "--out", filepath.Join(at, "blind"), "--quiet")
	if blind.code != exitUsage || !strings.Contains(blind.errOut, "--vision") {
		t.Errorf("a model that takes no images: exit code %d, %s", blind.code, blind.errOut)
	}
	tape := filepath.Join(at, "tape")
	a := play("a", "--record", tape)
	for _, ep := range episodes(t, a) {
		if ep.Reward == nil || *ep.Reward != 1 || len(ep.Images()) != 1 {
			t.Errorf("%s: answer %q, %d images", ep.Key.Task, ep.Answer, len(ep.Images()))
		}
	}
	if info, err := os.Stat(tape); err != nil || info.Size() > 4<<10 {
		t.Errorf("the tape has %d bytes, %v: images are not to lie on it", info.Size(), err)
	}
	replayed := filepath.Join(at, "replayed")
	succeed(t, "run", "--dataset", dataset, "--policy", "oracle", "--sandbox", "local", "--vision", "--out", replayed, "--quiet", "--replay", tape)
	verified := func(dir string) string { return trajgen(t, "verify", "--run", dir).out }
	for _, dir := range []string{a, replayed} {
		if said := verified(dir); !strings.Contains(said, "nothing differs") {
			t.Errorf("verify of %s:\n%s", dir, said)
		}
	}
	inline := func(flags ...string) string {
		t.Helper()
		return succeed(t, append([]string{"export", "--to", "openai", "--out", "-", "--inline-media"}, flags...)...).out
	}
	want := inline("--run", a)
	if strings.Count(want, "data:image/png;base64,") != 2 {
		t.Errorf("inline:\n%.500s", want)
	}
	moved := filepath.Join(at, "moved")
	succeed(t, "export", "--run", a, "--to", "parquet", "--out", moved)
	if inline("--from", moved) != want || inline("--from", a) != want {
		t.Error("an export of rows has other images")
	}
	b := play("b", "--seed", "2")
	merged := filepath.Join(at, "merged")
	succeed(t, "merge", a, b, "--out", merged)
	if said := verified(merged); !strings.Contains(said, "nothing differs") || !strings.Contains(said, "4 episodes") {
		t.Errorf("verify of a merged run:\n%s", said)
	}
	kept, err := filepath.Glob(filepath.Join(merged, "images", "*", "*"))
	if err != nil || len(kept) != 2 {
		t.Fatalf("%d images, want 2, each once, %v", len(kept), err)
	}
	if err := os.WriteFile(kept[0], []byte("torn"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(kept[1]); err != nil {
		t.Fatal(err)
	}
	said := verified(merged)
	for i, how := range []string{"is damaged", "is missing"} {
		name := filepath.Base(filepath.Dir(kept[i])) + filepath.Base(kept[i])
		if !strings.Contains(said, "images: image "+name+" "+how) {
			t.Errorf("verify does not say that %s %s:\n%s", name, how, said)
		}
	}
}
