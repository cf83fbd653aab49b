// Package guest is process 1 of a sandbox: it builds the root file system, starts commands and serves files.
package guest

import "trajgen/sandbox/internal/wire"

// Names under which this program is run again, and where it lies in a sandbox.
const (
	Name    = "trajgen-guest"
	Program = "/.trajgen"
)

// Tests is a file system of its own, for the verifier's files.
const Tests = "/tests"

// Kinds of request, the first number of a message from the runner. The second is an id that the reply repeats.
const (
	KindStart = iota + 1
	KindKill
	KindKillAll
	KindStat
	KindOpen
	KindWrite     // files with their content
	KindWriteBulk // one file, whose content is a memory file that comes along
	KindList
	KindRemove // paths
	KindCount  // answered with how many processes there are beside the guest
)

// Kinds of message to the runner.
const (
	KindReply = iota + 1
	KindExit
	// KindListeners comes first when the network is NetworkCarried: after an id of 0 the reason why not all connections
	// are caught, "" if they are, and whether more such messages follow. The sockets come along: the first of all is for
	// names, the others are for connections.
	KindListeners
)

// Codes of a reply.
const (
	CodeOK = iota
	CodeErrno
	CodeNotRegular
	CodeNotFound
)

// Which descriptors come with a KindStart, in this order.
const (
	FDStdin = 1 << iota
	FDStdout
	FDStderr
	FDSocket
	FDMerged   // stderr is stdout
	FDTerminal // none but the socket: all three are a terminal, whose other end comes with the reply
)

// Start asks for a command.
type Start struct {
	Helper bool
	Args   []string
	Env    []string
	Dir    string
	FDs    int64
	Rows   int64 // of the terminal
	Cols   int64
}

// Encode appends s.
func (s *Start) Encode(e *wire.Encoder) {
	e.Bool(s.Helper)
	e.Strings(s.Args)
	e.Strings(s.Env)
	e.String(s.Dir)
	e.Int(s.FDs)
	e.Int(s.Rows)
	e.Int(s.Cols)
}

// Decode takes s.
func (s *Start) Decode(d *wire.Decoder) {
	s.Helper, s.Args, s.Env, s.Dir, s.FDs = d.Bool(), d.Strings(), d.Strings(), d.String(), d.Int()
	s.Rows, s.Cols = d.Int(), d.Int()
}

// Exit tells how a command ended.
type Exit struct {
	Code, Signal int64
	Limits       int64 // that were in the way
	CPU          int64 // nanoseconds
}

// Encode appends x.
func (x *Exit) Encode(e *wire.Encoder) {
	e.Int(x.Code)
	e.Int(x.Signal)
	e.Int(x.Limits)
	e.Int(x.CPU)
}

// Decode takes x.
func (x *Exit) Decode(d *wire.Decoder) {
	x.Code, x.Signal, x.Limits, x.CPU = d.Int(), d.Int(), d.Int(), d.Int()
}

// Failure is why a request failed.
type Failure struct {
	Code  int64
	Errno int64
	Op    string
	Path  string
}

// Encode appends f.
func (f *Failure) Encode(e *wire.Encoder) {
	e.Int(f.Code)
	e.Int(f.Errno)
	e.String(f.Op)
	e.String(f.Path)
}

// Decode takes f.
func (f *Failure) Decode(d *wire.Decoder) {
	f.Code, f.Errno, f.Op, f.Path = d.Int(), d.Int(), d.String(), d.String()
}

// Info describes a file; Mode is that of the system.
type Info struct {
	Path    string
	Size    int64
	Mode    int64
	ModTime int64 // nanoseconds since 1970
}

// Encode appends i.
func (i *Info) Encode(e *wire.Encoder) {
	e.String(i.Path)
	e.Int(i.Size)
	e.Int(i.Mode)
	e.Int(i.ModTime)
}

// Decode takes i.
func (i *Info) Decode(d *wire.Decoder) {
	i.Path, i.Size, i.Mode, i.ModTime = d.String(), d.Int(), d.Int(), d.Int()
}

// Write is a file to write.
type Write struct {
	Path    string
	Data    []byte
	Mode    int64
	Replace bool

	bulk int // a descriptor to copy from instead of Data; 0 is none
}

// Encode appends w.
func (w *Write) Encode(e *wire.Encoder) {
	e.String(w.Path)
	e.Blob(w.Data)
	e.Int(w.Mode)
	e.Bool(w.Replace)
}

// Decode takes w.
func (w *Write) Decode(d *wire.Decoder) {
	w.Path, w.Data, w.Mode, w.Replace = d.String(), d.Blob(), d.Int(), d.Bool()
}

// Kinds of network.
const (
	NetworkNone = iota
	NetworkLoopback
	NetworkCarried // what goes out is carried by the runner
)

// Boot is what the broker tells a new guest.
type Boot struct {
	Workdir   string
	System    bool  // the root is an image's, writable; else the toolchain of the Image, with a few writable places
	Layers    int64 // descriptors of detached mounts below the root, the uppermost first; 0 begins with nothing
	Fork      bool  // the layers hold what a sandbox was made of before
	Inodes    int64
	Single    bool // there is but one user id
	Shared    bool // the ids are those of other sandboxes, too
	Network   int64
	Ports     []int64 // that commands will want to reach, where not all can be caught
	Disk      int64
	Files     int64
	Processes int64 // limit to set on processes themselves; 0 where a cgroup does it
	Memory    int64 // likewise
	Limit     int64 // Counters.Limit
	// Descriptors that come with the message, after a memory file with the Image and the Layers, in this order.
	Join     int64 // cgroup files to join by
	Memories bool  // Counters.Memory
	Forks    bool  // Counters.Processes
	Slowed   bool  // Counters.CPU
	Peak     bool  // Counters.Peak
	Commands bool  // a cgroup directory to fork into
}

// Encode appends b.
func (b *Boot) Encode(e *wire.Encoder) {
	e.String(b.Workdir)
	e.Bool(b.System)
	e.Int(b.Layers)
	e.Bool(b.Fork)
	e.Int(b.Inodes)
	e.Bool(b.Single)
	e.Bool(b.Shared)
	e.Int(b.Network)
	e.Int(int64(len(b.Ports)))
	for _, port := range b.Ports {
		e.Int(port)
	}
	e.Int(b.Disk)
	e.Int(b.Files)
	e.Int(b.Processes)
	e.Int(b.Memory)
	e.Int(b.Limit)
	e.Int(b.Join)
	e.Bool(b.Memories)
	e.Bool(b.Forks)
	e.Bool(b.Slowed)
	e.Bool(b.Peak)
	e.Bool(b.Commands)
}

// Decode takes b.
func (b *Boot) Decode(d *wire.Decoder) {
	b.Workdir, b.System, b.Layers, b.Fork, b.Inodes = d.String(), d.Bool(), d.Int(), d.Bool(), d.Int()
	b.Single, b.Shared, b.Network = d.Bool(), d.Bool(), d.Int()
	for range d.Len() {
		b.Ports = append(b.Ports, d.Int())
	}
	b.Disk, b.Files = d.Int(), d.Int()
	b.Processes, b.Memory, b.Limit = d.Int(), d.Int(), d.Int()
	b.Join, b.Memories, b.Forks, b.Slowed, b.Peak, b.Commands = d.Int(), d.Bool(), d.Bool(), d.Bool(), d.Bool(), d.Bool()
}

// Image is what a root file system is made of, beside Directories. Binds are taken from the same path of the broker's
// root. Dirs come before what lies in them, and hold all that is missing of the others' parents.
type Image struct {
	Dirs  []Dir
	Links []Link
	Files []Write
	Binds []Bind
	// Pins are the directories between a writable one and a bind in it, the outermost first. They must not be renamed.
	Pins []string
}

// Dir is a directory.
type Dir struct {
	Path string
	Mode int64
}

// Link is a symbolic link.
type Link struct{ Path, Target string }

// Bind is a directory or file of the broker's root.
type Bind struct {
	Path string
	File bool
}

// Encode appends m.
func (m *Image) Encode(e *wire.Encoder) {
	e.Int(int64(len(m.Dirs)))
	for _, d := range m.Dirs {
		e.String(d.Path)
		e.Int(d.Mode)
	}
	e.Int(int64(len(m.Links)))
	for _, l := range m.Links {
		e.String(l.Path)
		e.String(l.Target)
	}
	e.Int(int64(len(m.Files)))
	for i := range m.Files {
		m.Files[i].Encode(e)
	}
	e.Int(int64(len(m.Binds)))
	for _, b := range m.Binds {
		e.String(b.Path)
		e.Bool(b.File)
	}
	e.Strings(m.Pins)
}

// Decode takes m.
func (m *Image) Decode(d *wire.Decoder) {
	for range d.Len() {
		m.Dirs = append(m.Dirs, Dir{Path: d.String(), Mode: d.Int()})
	}
	for range d.Len() {
		m.Links = append(m.Links, Link{Path: d.String(), Target: d.String()})
	}
	for range d.Len() {
		var w Write
		w.Decode(d)
		m.Files = append(m.Files, w)
	}
	for range d.Len() {
		m.Binds = append(m.Binds, Bind{Path: d.String(), File: d.Bool()})
	}
	m.Pins = d.Strings()
}
