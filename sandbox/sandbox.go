// Package sandbox runs untrusted commands. Each attempt of an episode has a sandbox of its own, which is thrown away
// afterwards.
//
// A backend opens sandboxes; a sandbox starts commands and reads and writes files. A backend's Guarantees say what it isolates;
// they are measured when it is opened, and never assumed.
package sandbox

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"time"

	"trajgen/sandbox/internal/egress"
)

// Backend opens sandboxes. It is safe for concurrent use.
type Backend interface {
	// Open makes a new sandbox that shares nothing with any other. An error is the machine's fault, never the agent's. ctx
	// covers the opening only.
	Open(ctx context.Context, spec Spec) (Sandbox, error)
	// Guarantees says what this backend isolates on this machine.
	Guarantees() Guarantees
	// Close ends every sandbox that is still open and frees what the backend holds. It is idempotent.
	Close() error
}

// Placer is a Backend that can refuse working directories without opening a sandbox.
type Placer interface {
	// CheckWorkdir says why dir cannot be the working directory, in an image or in the backend's own file system.
	CheckWorkdir(dir string, image bool) error
}

// Sandbox is one isolated machine. Its methods may be called from many goroutines at once.
//
// An error that wraps ErrGone means that the sandbox is lost: this is the machine's fault, and ends the attempt. Every other
// error is about the request (no such file, no such command) and may be shown to a model.
type Sandbox interface {
	// Start starts a command and returns when it runs. ctx covers the start only: the command goes on until it ends, is killed
	// or the sandbox is closed.
	Start(ctx context.Context, cmd Command) (Process, error)
	// Files are the sandbox's files, seen as its processes see them.
	Files() Files
	// Layout says where things are, as paths that processes of the sandbox use.
	Layout() Layout
	// KillAll ends every process that was started in the sandbox and all their descendants, and returns when none is left. With
	// native and docker it also removes the sandbox's shared memory, queues and semaphores of System V. The sandbox stays
	// usable.
	KillAll(ctx context.Context) error
	// Close ends the sandbox with everything in it. It is idempotent, waits until all is gone, and has a deadline of
	// its own.
	Close() error
}

// Snapshotter is a Sandbox that can be forked: Spec.From opens others from a snapshot of it.
type Snapshotter interface {
	Sandbox
	// Snapshot seals the files as they are, except those in Layout.Tests and below /proc and /dev; /dev/shm is included. The
	// sandbox goes on, and its later changes are not in the snapshot. A snapshot and the sandbox's next call together cost about as
	// much as an opening, however many files there are. ErrBusy means that processes are running; KillAll ends them.
	Snapshot(ctx context.Context) (Snapshot, error)
}

// Snapshot is a sealed state of a sandbox's files. It outlives the sandbox, and dies with its backend.
type Snapshot interface {
	// Close gives up the snapshot. Sandboxes that were opened from it go on. It is idempotent.
	Close() error
}

// Layered is a Snapshot whose uppermost layer can be read: what the sandbox's commands changed since it was opened, or since its
// previous snapshot.
type Layered interface {
	Snapshot
	// Layer calls visit with each change as layers of images have it, parents first: ".wh.NAME" for what was removed, and
	// ".wh..wh..opq" in a directory that hides what lies below.
	Layer(ctx context.Context, visit func(header *tar.Header, content io.Reader) error) error
}

// Terminal is a Process that was started with Command.TTY.
type Terminal interface {
	Process
	// Resize changes the size of the terminal and sends the command a SIGWINCH.
	Resize(ctx context.Context, size TTY) error
}

// Traffic is a Sandbox that counts what it reaches through NetworkAllowlist and NetworkFull.
type Traffic interface {
	// Connections returns every attempt so far, refused ones included, in the order in which they began: the first 10,000, and
	// then one without a host that says how many more there were. It works after Close, too.
	Connections() []Connection
}

// Connection is an attempt to reach something outside of a sandbox.
type Connection = egress.Connection

// Process is a command that was started. Wait and Kill may be called from many goroutines, and repeatedly.
type Process interface {
	// PID is the process's number inside the sandbox.
	PID() int
	// Wait returns when the command has ended and its output has been copied: all of it, or what came within 50 ms
	// when a descendant still holds the pipe. When ctx ends first the command goes on and Wait returns
	// context.Cause(ctx).
	Wait(ctx context.Context) (Exit, error)
	// Kill ends the command and its descendants, daemons included: SIGTERM, and SIGKILL after grace; SIGKILL at once when grace
	// is 0. It returns when the command is gone. A daemon that hides its origin may live on until KillAll.
	Kill(ctx context.Context, grace time.Duration) error
	// Socket is the runner's end of the stream that the command finds as descriptor 3. Nil unless Command.Socket.
	Socket() net.Conn
}

// Files reads and writes the sandbox's files. Relative paths start at Layout.Workdir. Symbolic links are followed
// inside the sandbox and can never lead out of it. Errors are *fs.PathError with fs.ErrNotExist, fs.ErrExist,
// fs.ErrPermission, ErrNotRegular (a device, pipe, socket or /proc file) or a system error; or wrap ErrGone.
type Files interface {
	// Stat describes the file that path leads to.
	Stat(ctx context.Context, path string) (Info, error)
	// Read returns up to limit bytes of a regular file from offset, and what Stat says of it.
	Read(ctx context.Context, path string, offset, limit int64) ([]byte, Info, error)
	// Write replaces files, each atomically (a temporary file in the same directory, then a rename), creating parent
	// directories. It stops at the first failure.
	Write(ctx context.Context, files ...FileWrite) error
	// List returns the entries of a directory, sorted by name.
	List(ctx context.Context, path string) ([]Info, error)
	// Remove removes each path, a directory with all below it. It removes a link and does not follow it, unless the link is on
	// the way to a path. A path that does not exist is not an error. The root of the sandbox, and paths outside of it, fail
	// with fs.ErrPermission; a mount point, such as the working directory may be, and a read-only path fail, too. Layout.Tests
	// can always be removed: where it is a mount point, Remove empties it. Remove stops at the first failure.
	Remove(ctx context.Context, paths ...string) error
}

// FileWrite is a file to write.
type FileWrite struct {
	Path string
	Data []byte
	// Mode of a new file; an existing file keeps its own unless Replace is set. 0 means 0644.
	Mode fs.FileMode
	// Replace removes whatever is at Path first, a directory or a link included, so that nothing the agent left there redirects
	// the data. It is for a verifier's files.
	Replace bool
}

// Perm is the mode of a new file.
func (w FileWrite) Perm() fs.FileMode {
	if w.Mode.Perm() == 0 {
		return 0o644
	}
	return w.Mode.Perm()
}

// Info describes a file.
type Info struct {
	Name    string
	Path    string // absolute, links resolved
	Size    int64
	Mode    fs.FileMode
	ModTime time.Time
}

// Layout is where things are in a sandbox.
type Layout struct {
	Workdir string // working directory of commands, holds the task's files
	Home    string
	Tmp     string
	// Tests is for the verifier's files. It is empty or does not exist until the runner writes there; native gives it space of
	// its own, so that a full disk leaves some for the verifier. Commands can write there, too: Files.Remove empties it.
	Tests string
	// ReadOnly is where Spec.ReadOnly lies; "" without one.
	ReadOnly string
	// Plain says that the backend knows the whole environment of commands, and that no variable in it is meant for a shell, as
	// functions and BASH_ENV are, nor for a shell to add to, as PYTHONPATH is. See Direct.
	Plain bool
}

// Spec is what a sandbox is made from. The zero value is a small machine without a network.
type Spec struct {
	// ID names the sandbox in listings and on disk: letters, digits, '-' and '_'.
	ID string
	// Image is the initial file system: a reference that the backend understands. "" is the backend's default.
	Image string
	// From opens a fork of a snapshot, which must be of the same backend. Image and Workdir must be empty then: the fork has
	// those of the snapshotted sandbox.
	From    Snapshot
	Workdir string            // "" is the image's, or the backend's default
	Env     map[string]string // beside PATH, HOME, LC_CTYPE (unless LANG is given), TERM, TZ and TMPDIR, which the backend sets, and the image's
	Network Network           // "" is NetworkLoopback; NetworkNone where a sandbox has no loopback of its own
	// Allow are the targets of NetworkAllowlist: "example.org", "*.example.org" for all names below it, an address or a CIDR
	// range, each with or without ":PORT". Without a port, 80 and 443 are allowed. A private address is allowed only by an
	// address or a range of private ones in this list, even if an allowed name resolves to it.
	Allow  []string
	Limits Limits
	// ReadOnly is a folder that commands cannot change, where Guarantees.FixedFolder says so. Snapshots do not include it: a fork
	// has the one of its own Spec.
	ReadOnly *Folder
	// Writable lets commands write everywhere in the default image, where Guarantees.WritableSystem says so: install programs, change
	// /etc. In another image they can anyway, and a fork is as its snapshot was.
	Writable bool
	// Services run beside the sandbox, where Guarantees.Services says so; Hosts are further names of the loopback address. Both must
	// be empty with From: a fork joins the network of the snapshotted sandbox if that has services, while that is open.
	Services []Service
	Hosts    []string
	// Bare leaves an image as it is, for commands that make another image of it: nothing adds directories that it lacks, and
	// Layout.Tests is its own. Only the native backend has it.
	Bare bool
}

// Network is what a sandbox can reach.
type Network string

// The network modes. NetworkAllowlist and NetworkFull carry TCP and resolve names, to addresses of 198.18.0.0/15 in the
// sandbox; the runner connects to the real ones. Neither reaches loopback, link-local, multicast and metadata addresses, nor
// those of the runner's machine. With NetworkAllowlist, connections to the ports of TLS and HTTP must name an allowed server.
const (
	NetworkNone      Network = "none"
	NetworkLoopback  Network = "loopback" // its own, not shared
	NetworkAllowlist Network = "allowlist"
	NetworkFull      Network = "full"
)

// Limits bound what a sandbox can use. Zero means the backend's default.
type Limits struct {
	Memory    int64   // bytes, all processes together; default 1 GiB
	Processes int     // default 256
	CPUs      float64 // processors' worth of time, such as 0.5; default no limit
	Disk      int64   // bytes that can be written, without Layout.Tests; default 512 MiB
	Inodes    int64   // files that can be made; default a 2048th of Disk, between 4,096 and 1 Mi
	Files     int     // open files of a process; default 1024
}

// Names of limits, in Guarantees and Exit.
const (
	LimitMemory    = "memory"
	LimitProcesses = "processes"
	LimitCPU       = "cpu"
	LimitDisk      = "disk"
	LimitInodes    = "inodes"
	LimitFiles     = "files"
	// LimitMachine appears in Exit only: the machine had no memory left outside of the sandbox.
	LimitMachine = "machine"
)

// Command is what to run.
type Command struct {
	// Args are the program and its arguments, not passed through a shell. The program is looked up in the sandbox's
	// PATH.
	Args []string
	// Helper runs a function that was registered with RegisterHelper, inside the sandbox and as confined as any command,
	// instead of Args[0]; Args are its arguments.
	Helper string
	Dir    string    // "" is Layout.Workdir
	Env    []string  // "K=V", added to the sandbox's environment; the last of a name wins
	Stdin  io.Reader // nil is empty
	// Stdout and Stderr receive the output; nil discards it. The same non-nil writer for both keeps the order in which the
	// command wrote. One goroutine each writes to them, and they must not block for long.
	Stdout, Stderr io.Writer
	// Socket gives the command a stream socket to the runner as descriptor 3.
	Socket bool
	// TTY runs the command on a terminal of its own, which is its standard input, output and error: Stdin is typed into it and
	// Stdout gets what appears on it; Stderr gets nothing. The end of Stdin does not hang up the terminal: send "\x04" for an
	// end of file. TERM is xterm unless Env or the sandbox sets it; a size of zero is 24 by 80.
	TTY *TTY
}

// TTY is the size of a terminal, in characters.
type TTY struct{ Rows, Cols uint16 }

// Exit is how a command ended.
type Exit struct {
	// Code is the exit status; 128+n when signal n ended it, as shells say.
	Code   int
	Signal int  // 0 when it exited by itself
	OOM    bool // the memory limit killed a process while it ran
	// Limits are the limits that affected the sandbox while the command ran, sorted: LimitMemory and LimitMachine killed a
	// process, LimitProcesses refused a fork, LimitDisk and LimitInodes left no room at the end, LimitCPU slowed it down.
	Limits []string
	CPU    time.Duration
}

// Level is how strongly a sandbox is isolated.
type Level string

// The levels, strongest first.
const (
	LevelStrong   Level = "strong"   // own namespaces, shifted ids, hard limits on memory and processes
	LevelUser     Level = "user"     // own namespaces, but a single id or no hard limits
	LevelLandlock Level = "landlock" // no namespaces
	LevelNone     Level = "none"
)

// AtLeast reports whether l is as strong as other.
func (l Level) AtLeast(other Level) bool {
	return slices.Index(levels, l) <= slices.Index(levels, other)
}

var levels = []Level{LevelStrong, LevelUser, LevelLandlock, LevelNone}

// ParseLevel returns the level with a name.
func ParseLevel(name string) (Level, error) {
	if !slices.Contains(levels, Level(name)) {
		return "", fmt.Errorf("unknown isolation level %q (have strong, user, landlock, none)", name)
	}
	return Level(name), nil
}

// Guarantees is what a backend isolates, measured and not assumed.
type Guarantees struct {
	Backend string `json:"backend"`
	Level   Level  `json:"level"`
	// Isolation says how the sandbox is separated, for files, processes, network, ids, calls and kernel: own (one of its own),
	// shifted, single or host (ids), filtered (calls, files), shared or none. Own quotas, where the backend promises them, keep
	// a sandbox from using up what the kernel has for all processes of a user, or of the machine.
	Isolation map[string]string `json:"isolation"`
	Limits    map[string]string `json:"limits"` // name of a limit → hard, soft or none
	Network   []Network         `json:"network"`
	Images    bool              `json:"images"` // Spec.Image may name one
	// StoredImages says that Spec.Image may name an image of Options.Images, such as one that was built.
	StoredImages bool `json:"-"`
	Snapshots    bool `json:"snapshots"` // its sandboxes are Snapshotters
	// FixedSystem says that, in the default image, commands cannot change programs and their configuration.
	FixedSystem bool `json:"fixed_system"`
	// WritableSystem says that Spec.Writable may be set: what commands change then is the sandbox's own.
	WritableSystem bool `json:"writable_system"`
	Services       bool `json:"services"` // Spec.Services may be given
	// FixedFolder says that commands can neither change Spec.ReadOnly nor put another folder in its place.
	FixedFolder bool     `json:"fixed_folder"`
	Missing     []string `json:"missing,omitempty"` // why the level is not higher, and what to do about it
}

// ErrGone means that the sandbox is lost.
var ErrGone = errors.New("sandbox is gone")

// ErrBusy means that processes run in a sandbox where none may run.
var ErrBusy = errors.New("processes are running in the sandbox")

// ErrNotRegular means that a path leads to something that is not a regular file or directory.
var ErrNotRegular = errors.New("not a regular file")

// ErrNotFound means that the program of a command was not found or cannot be executed.
var ErrNotFound = errors.New("command not found")
