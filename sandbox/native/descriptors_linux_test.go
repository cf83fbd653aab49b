package native_test

import (
	"os"
	"sync"
	"testing"

	"trajgen/sandbox"
)

// TestOpenAmongFiles opens the backend while other goroutines open and close files, as those do that read a dataset meanwhile.
func TestOpenAmongFiles(t *testing.T) {
	stop := make(chan struct{})
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				var open []*os.File
				for range 20 {
					if f, err := os.Open(os.DevNull); err == nil {
						open = append(open, f)
					}
				}
				for _, f := range open {
					f.Close()
				}
			}
		})
	}
	defer others.Wait()
	defer close(stop)
	var level sandbox.Level
	for i := range 12 {
		b, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		g := b.Guarantees()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if i == 0 {
			level = g.Level
		}
		if g.Level != level {
			t.Fatalf("opened at level %s, then at %s: %v", level, g.Level, g.Missing)
		}
	}
}
