package datasets_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
)

// BenchmarkRows reads rows of a kilobyte, and skims them as a run does before it begins: those with an id, and those that are
// named by what they say.
func BenchmarkRows(b *testing.B) {
	const rows = 2000
	for _, name := range []string{"id", "content"} {
		b.Run(name, func(b *testing.B) {
			var text strings.Builder
			for n := range rows {
				if text.WriteString("{"); name == "id" {
					fmt.Fprintf(&text, `"id": "task-%d", `, n)
				}
				fmt.Fprintf(&text, `"prompt": "Task %d. %s", "verify": {"command": "grep -q ok out.txt"}}`+"\n", n,
					strings.Repeat(`Write \"a\" and the numbers 1, 2, 3 carefully to path/to/x.py.\n`, 15))
			}
			path := filepath.Join(b.TempDir(), "rows.jsonl")
			if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
				b.Fatal(err)
			}
			source, err := datasets.Open(path, datasets.Options{})
			if err != nil {
				b.Fatal(err)
			}
			for name, read := range map[string]func(context.Context) iter.Seq2[*episode.Task, error]{"whole": source.InOrder, "skimmed": source.Skim} {
				b.Run(name, func(b *testing.B) {
					b.SetBytes(int64(text.Len()))
					b.ReportAllocs()
					for b.Loop() {
						for _, err := range read(b.Context()) {
							if err != nil {
								b.Fatal(err)
							}
						}
					}
				})
			}
		})
	}
}
