package native

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/embedded"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/self"
	"trajgen/sandbox/internal/wire"
)

// programs are the executables of brokers, guests and helpers.
type programs struct {
	// broker is executed as the broker: the built-in small program, in sealed memory, so that /proc/PID/exe of a guest leads to
	// no file of the host; else this program.
	broker *os.File
	// guests says that guests run the broker's program, too. Else they run the helper.
	guests bool
	// helper is the program in the sandboxes: the built-in small one, or this one.
	helper *os.File
}

func (p *programs) close() {
	for _, file := range []*os.File{p.broker, p.helper} {
		if file != nil {
			file.Close()
		}
	}
}

// lastOf is the path of the last of a new process's files, for a program that it inherits. By the number that the file has in this
// process it might not be found: the new process moves other files to free numbers, and knows no more than those that it inherits.
func lastOf(files []*os.File) string { return "/proc/self/fd/" + strconv.Itoa(len(files)-1) }

// openPrograms opens the built-in programs, or this one where there are none.
func openPrograms(builtIn *embedded.Programs) (p programs, err error) {
	if builtIn == nil {
		if p.broker, err = os.Open("/proc/self/exe"); err == nil {
			p.helper, err = os.Open("/proc/self/exe")
		}
		return p, err
	}
	fd, err := wire.SealedFile(builtIn.Helper)
	if err != nil {
		return p, err
	}
	p.helper = os.NewFile(uintptr(fd), self.Helper)
	p.broker, p.guests, err = brokerProgram(builtIn.Sandboxd)
	return p, err
}

// brokerProgram falls back to this program, which a sandbox cannot see, where memory files cannot be executed.
func brokerProgram(sandboxd []byte) (file *os.File, sealed bool, err error) {
	file, err = wire.Program(guest.Name, sandboxd)
	if errors.Is(err, unix.EACCES) { // by the sysctl vm.memfd_noexec
		file, err = os.Open("/proc/self/exe")
		return file, false, err
	}
	return file, err == nil, err
}
