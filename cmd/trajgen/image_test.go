package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImage pulls, lists and removes an image that is a directory.
func TestImage(t *testing.T) {
	dir, root := filepath.Join(t.TempDir(), "images"), t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "file"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	reference := "dir:" + root
	got := succeed(t, "image", "pull", "--image-dir", dir, reference)
	name, digest, _ := strings.Cut(strings.TrimSpace(got.out), "\t")
	if name != reference || !strings.HasPrefix(digest, "sha256:") || !strings.Contains(got.errOut, "layer unpacked") {
		t.Errorf("pull: %q, %q; want the reference and its digest, and a line for the layer", got.out, got.errOut)
	}
	var list []struct {
		Digest     string
		References []string
		Layers     int
	}
	got = succeed(t, "image", "list", "--json", "--image-dir", dir)
	if err := json.Unmarshal([]byte(got.out), &list); err != nil || len(list) != 1 || list[0].Digest != digest || list[0].Layers != 1 {
		t.Errorf("list: %s, %v; want one image %s", got.out, err, digest)
	}
	if got := succeed(t, "image", "list", "--image-dir", dir); !strings.Contains(got.out, digest) {
		t.Errorf("list: %q, want %s", got.out, digest)
	}
	succeed(t, "image", "remove", "--image-dir", dir, reference)
	if got := trajgen(t, "image", "remove", "--image-dir", dir, reference); got.code != exitFailed || !strings.Contains(got.errOut, "no such image") {
		t.Errorf("remove again: exit code %d, %s", got.code, got.errOut)
	}
	if got := trajgen(t, "image", "pull", "--image-dir", dir, "dir:/no/such", reference); got.code != exitFailed || !strings.Contains(got.out, digest) {
		t.Errorf("pull of one that is not there and one that is: exit code %d, %s%s", got.code, got.out, got.errOut)
	}
	if got := trajgen(t, "image", "pull"); got.code != exitUsage {
		t.Errorf("pull of nothing: exit code %d, want %d", got.code, exitUsage)
	}
	if got := succeed(t, "image", "list", "--json", "--image-dir", filepath.Join(dir, "new")); strings.TrimSpace(got.out) != "[]" {
		t.Errorf("list of nothing: %q, want []", got.out)
	}
}
