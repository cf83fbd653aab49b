//go:build linux

package images_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/sandbox/images"
)

// BenchmarkDeepLayers unpacks a layer with a file at each depth and entries for none of the directories. Its tarball is as large
// as the square of the depth, as all names are in it; so should the time be at most.
func BenchmarkDeepLayers(b *testing.B) {
	for _, depth := range []int{100, 200, 400} {
		var entries []entry
		for i := range depth {
			entries = append(entries, fileEntry(strings.Repeat("d/", i+1)+"f", "x"))
		}
		path := filepath.Join(b.TempDir(), "layer.tar")
		if err := os.WriteFile(path, tarball(b, entries...), 0o600); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(depth), func(b *testing.B) {
			for b.Loop() {
				store, err := images.Open(images.Options{Dir: b.TempDir(), Unprivileged: os.Getuid() != 0})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := store.Find(context.Background(), "tar:"+path); err != nil {
					b.Fatal(err)
				}
				if err := store.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
