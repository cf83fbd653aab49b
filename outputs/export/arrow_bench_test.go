package export_test

import (
	"fmt"
	"testing"

	"trajgen/outputs/export"
)

// BenchmarkArrowBatch is a record batch of so many rows, built, compressed and written, with the one of their tool calls.
func BenchmarkArrowBatch(b *testing.B) {
	ep := typical(1)
	for _, rows := range []int{1, 100} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			sink, err := export.Open("arrow", benchDir(b), export.Options{RowGroupRows: int64(rows)})
			if err != nil {
				b.Fatal(err)
			}
			defer sink.Close()
			b.ReportAllocs()
			for b.Loop() {
				for range rows {
					if err := sink.Write(b.Context(), ep); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
