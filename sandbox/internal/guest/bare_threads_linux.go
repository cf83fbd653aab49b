package guest

import (
	"runtime"
	"sync"
)

// storedThreads are about as many as this process ever has at work.
const storedThreads = 20

// storeThreads makes threads ahead of need, which the Go runtime keeps. Commands may share a limit of processes with this
// one: once a fork bomb has used it up, there are none to be had, and the runtime ends a program that gets none.
func storeThreads() {
	var held sync.WaitGroup
	release := make(chan struct{})
	for range storedThreads {
		held.Add(1)
		go func() {
			runtime.LockOSThread() // no other goroutine can have it meanwhile
			defer runtime.UnlockOSThread()
			held.Done()
			<-release
		}()
	}
	held.Wait()
	close(release)
}
