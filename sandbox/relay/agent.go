package relay

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"trajgen/sandbox"
	_ "trajgen/sandbox/carry" // helpers that backends run inside sandboxes: they register themselves
	"trajgen/sandbox/internal/bare"
	_ "trajgen/sandbox/internal/probe"
)

func init() {
	sandbox.RegisterHelper("agent", agent)
	if os.Getpid() == 1 && slices.Contains(os.Args, "agent") {
		runtime.LockOSThread() // in an init function, it keeps the first thread for main
	}
}

// agent serves a backend on its standard streams, to the runner that started it in a container or on another machine:
//
//	agent bare [--workdir DIR] [--home DIR] [--tmp DIR] [--tests DIR] [--shallow]   the one sandbox that this process runs in
//	agent host [--plain-ok] [--state-dir DIR]                                       sandboxes that this machine can make
//
// The first thread of process 1 only waits. Package os/signal blocks signals on a thread of its choice, and the Go runtime on
// threads that make others; with any signal blocked on the first thread, commands could end the process with it (see
// ignoreSignals of the guest).
func agent(args []string, _ io.Reader, _, stderr io.Writer) int {
	code := make(chan int)
	go func() { code <- serveStreams(args, stderr) }()
	return <-code
}

func serveStreams(args []string, stderr io.Writer) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	// A log without a reader must not end the agent: it has to clean up.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	rw, err := standardStreams()
	if err != nil {
		fmt.Fprintln(stderr, "agent:", err)
		return 1
	}
	go func() {
		<-signals
		_ = rw.Close() // as if the client had hung up
	}()
	backend, err := openServed(args, logger)
	if err != nil {
		fmt.Fprintln(stderr, "agent:", err)
		refuse(rw, err)
		return 1
	}
	if err := Serve(rw, backend, logger); err != nil && !errors.Is(err, os.ErrClosed) {
		fmt.Fprintln(stderr, "agent:", err)
		return 1
	}
	return 0
}

// refuse sends the client the reason why nothing is served.
func refuse(rw io.ReadWriteCloser, reason error) {
	_, _ = newLink(rw).greet(hello{Failure: reason.Error()})
	_ = rw.Close()
}

// openServed opens the backend that the arguments name.
func openServed(args []string, logger *slog.Logger) (sandbox.Backend, error) {
	if len(args) == 0 {
		return nil, errors.New("nothing to serve was named (have bare, host)")
	}
	flags := flag.NewFlagSet("agent "+args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	switch args[0] {
	case "bare":
		options := bare.Options{Logger: logger}
		flags.StringVar(&options.Workdir, "workdir", "", "working directory of commands")
		flags.StringVar(&options.Home, "home", "", "home directory of commands")
		flags.StringVar(&options.Tmp, "tmp", "", "directory of temporary files")
		flags.StringVar(&options.Tests, "tests", "", "directory of a verifier's files")
		flags.BoolVar(&options.Shallow, "shallow", false, "remove directories that lie deep in one another in the end")
		if err := flags.Parse(args[1:]); err != nil {
			return nil, err
		}
		return bare.Open(options)
	case "host":
		plain := flags.Bool("plain-ok", false, "serve plain processes where nothing better can be had")
		stateDir := flags.String("state-dir", "", "what has to be on disk while sandboxes live")
		if err := flags.Parse(args[1:]); err != nil {
			return nil, err
		}
		return openHost(sandbox.Options{StateDir: *stateDir, Logger: logger}, *plain)
	}
	return nil, fmt.Errorf("cannot serve %q (have bare, host)", args[0])
}

func openHost(opts sandbox.Options, plain bool) (sandbox.Backend, error) {
	native, err := sandbox.Open("native", opts)
	if err == nil || !plain {
		return native, err
	}
	local, localErr := sandbox.Open("local", opts)
	if localErr != nil {
		return nil, errors.Join(err, localErr)
	}
	return plainHost{local, err.Error()}, nil
}

// plainHost adds the reason why it is not native to its guarantees.
type plainHost struct {
	sandbox.Backend
	reason string
}

func (p plainHost) Guarantees() sandbox.Guarantees {
	g := p.Backend.Guarantees()
	g.Missing = append([]string{p.reason}, g.Missing...)
	return g
}
