package native_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// TestCloseWhileOpening closes backends while sandboxes are being opened: who opens one is told, and no call waits for ever.
func TestCloseWhileOpening(t *testing.T) {
	for round := range 5 {
		b := sandboxtest.Open(t, "native", sandbox.Options{})
		var all sync.WaitGroup
		for opener := range 16 {
			all.Go(func() {
				for n := 0; ; n++ {
					sb, err := b.Open(t.Context(), sandbox.Spec{ID: fmt.Sprintf("opened-%d-%d", opener, n)})
					if err != nil {
						if !errors.Is(err, sandbox.ErrGone) {
							t.Errorf("got %v, want ErrGone", err)
						}
						return
					}
					_ = sb.Close()
				}
			})
		}
		time.Sleep(time.Duration(20*(round+1)) * time.Millisecond)
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		ended := make(chan struct{})
		go func() { all.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("a sandbox is still being opened")
		}
	}
}
