package self

import (
	"os"
	"os/signal"
	"syscall"
)

// HeedSignals keeps commands from being deaf: what this program was told to ignore, as a shell tells what it runs in the
// background, its children would have to ignore as well. It goes on ignoring it, as it has no handler.
func HeedSignals() {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}
