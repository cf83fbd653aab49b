package self

import (
	"os"
	"os/signal"
	"syscall"
)

// HeedSignals resets ignored signals, which children would inherit: a shell makes background jobs ignore some. This program
// goes on ignoring them.
func HeedSignals() {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}
