package local

import (
	"fmt"
	"os"
	"runtime"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/embedded"
	"trajgen/sandbox/internal/self"
	"trajgen/sandbox/internal/wire"
)

// helper returns the path of the program that runs helpers: the small one, which starts faster than this program, where it is
// built in and memory files can be executed.
func (l *backend) helper() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return "", fmt.Errorf("start a helper: backend is closed: %w", sandbox.ErrGone)
	}
	if l.program == nil {
		program, err := embedded.Helper(runtime.GOARCH)
		if err != nil {
			return "", err
		}
		if program == nil {
			return os.Executable()
		}
		if l.program, err = wire.Program(self.Helper, program); err != nil {
			return os.Executable()
		}
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), l.program.Fd()), nil
}
