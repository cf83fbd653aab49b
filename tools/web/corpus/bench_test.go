package corpus_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"trajgen/tools/web/corpus"
)

// large has 100,000 documents, which are made once.
var large = sync.OnceValue(func() []corpus.Document { return zipf(100_000, 300_000, 1) })

// processor is the processor time of this process so far.
func processor() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // fails only for a wrong argument
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkBuild makes an index of 100,000 documents.
func BenchmarkBuild(b *testing.B) {
	documents := large()
	path := filepath.Join(b.TempDir(), "large.corpus")
	b.ResetTimer()
	before := processor()
	for b.Loop() {
		info, err := corpus.Build(b.Context(), path, from(documents...), corpus.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.TextBytes)/1e6, "text-MB")
		b.ReportMetric(float64(info.Bytes)/1e6, "index-MB")
	}
	b.ReportMetric((processor()-before).Seconds()/float64(b.N), "cpu-s/op")
}

// BenchmarkSearch asks for two neighbouring words of a document, and for ten; found says how often it was among the first ten.
func BenchmarkSearch(b *testing.B) {
	documents := large()
	path := filepath.Join(b.TempDir(), "large.corpus")
	if _, err := corpus.Build(context.Background(), path, from(documents...), corpus.Options{}); err != nil {
		b.Fatal(err)
	}
	index := open(b, path)
	for _, one := range []struct {
		name  string
		words int
	}{{"two", 2}, {"ten", 10}} {
		b.Run(one.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(3, 3))
			found, asked := 0, 0
			before := processor()
			for b.Loop() {
				d := documents[r.IntN(len(documents))]
				words := strings.Fields(d.Text)
				at := r.IntN(len(words))
				hits, err := index.Search(b.Context(), strings.Join(words[at:min(len(words), at+one.words)], " "), 10)
				if err != nil {
					b.Fatal(err)
				}
				asked++
				for _, hit := range hits {
					if hit.ID == d.ID {
						found++
					}
				}
			}
			b.ReportMetric((processor()-before).Seconds()*1000/float64(asked), "cpu-ms/op")
			b.ReportMetric(100*float64(found)/float64(asked), "found-%")
		})
	}
}
