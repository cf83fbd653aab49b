package guest

import (
	"runtime"
	"sync"
)

// storedThreads is about how many threads this process ever has at work.
const storedThreads = 20

// storeThreads makes threads ahead of need, which the Go runtime keeps. This process may share a process limit with commands:
// after a fork bomb no thread can be made, and the runtime ends a program that needs one.
func storeThreads() {
	var held sync.WaitGroup
	release := make(chan struct{})
	for range storedThreads {
		held.Add(1)
		go func() {
			runtime.LockOSThread() // no other goroutine can use this thread meanwhile
			defer runtime.UnlockOSThread()
			held.Done()
			<-release
		}()
	}
	held.Wait()
	close(release)
}
