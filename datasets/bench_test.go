package datasets_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/datasets"
)

// BenchmarkRows reads 100,000 rows, as a run does before it begins: short ones and those of a kilobyte, with an id, and named
// by what they say.
func BenchmarkRows(b *testing.B) {
	const rows = 100_000
	for _, size := range []string{"short", "kilobyte"} {
		for _, name := range []string{"id", "content"} {
			b.Run(size+"/"+name, func(b *testing.B) {
				text := strings.Repeat(`Write \"a\" and the numbers 1, 2, 3 carefully to path/to/x.py.\n`, map[string]int{"short": 1, "kilobyte": 15}[size])
				path := filepath.Join(b.TempDir(), "rows.jsonl")
				file, err := os.Create(path)
				if err != nil {
					b.Fatal(err)
				}
				for n := range rows {
					id := ""
					if name == "id" {
						id = fmt.Sprintf(`"id": "task-%d", `, n)
					}
					fmt.Fprintf(file, `{%s"prompt": "Task %d. %s", "verify": {"command": "grep -q ok out.txt"}}`+"\n", id, n, text)
				}
				if err := file.Close(); err != nil {
					b.Fatal(err)
				}
				source, err := datasets.Open(path, datasets.Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					for _, err := range source.InOrder(b.Context()) {
						if err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
